"""What a power cut can leave of a store: what was flushed, and any part of what was written since.

The write-ahead log is a header of 32 bytes and frames of 24 bytes and a page (sqlite.org/fileformat2.html, section 4).
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from .witness import FLUSHED

HEADER = 32

FRAME = 24 + 4096

DAMAGES = ("flushed", "frames", "bytes", "zeroed frame", "missing frames", "written")


def cut(store: Path, dice: random.Random) -> str:
    """Put in the place of a store what a power cut might have left of it; says what was done.

    The database file is only written by checkpoints, whose every page is flushed in the log before; so it is left as it
    was flushed, or as it was written.
    """
    log = store.with_name(store.name + "-wal")
    flushed_log = _flushed(log)
    written = log.read_bytes() if log.exists() else b""
    flushed = flushed_log.read_bytes() if flushed_log.exists() else b""
    how = dice.choice(DAMAGES)
    left = damage(flushed, written, how, dice)
    is_old = dice.random() < 0.5 and _flushed(store).exists()
    if is_old:
        shutil.copyfile(_flushed(store), store)
    log.write_bytes(left)
    store.with_name(store.name + "-shm").unlink(missing_ok=True)
    frames = (len(written) - HEADER) // FRAME
    safe = _common(flushed, written) // FRAME
    return f"{how}; {frames} frames written, {safe} flushed; the file {'old' if is_old else 'new'}"


def damage(flushed: bytes, written: bytes, how: str, dice: random.Random) -> bytes:
    """A log as a power cut might leave it. What was flushed is there in any case."""
    safe = _common(flushed, written)
    if safe < len(flushed) or how == "flushed":
        # The log was begun anew since: its first frames are no continuation of what was flushed.
        return flushed if how != "written" else written
    ends = [end for end in range(HEADER, len(written) + 1, FRAME) if end >= safe] or [len(written)]
    if how == "frames":
        return written[: dice.choice(ends)]
    if how == "bytes":
        return written[: dice.randint(safe, len(written))]
    left = bytearray(written)
    starts = [end for end in ends if end + FRAME <= len(written)]
    if how == "zeroed frame" and starts:
        start = dice.choice(starts)
        left[start : start + FRAME] = bytes(FRAME)
    if how == "missing frames":
        for start in starts:
            if dice.random() < 0.3:
                left[start : start + FRAME] = bytes(FRAME)
    return bytes(left)


def _flushed(path: Path) -> Path:
    return path.with_name(path.name + FLUSHED)


def _common(left: bytes, right: bytes) -> int:
    """How many bytes both begin with."""
    length = min(len(left), len(right))
    if left[:length] == right[:length]:
        return length
    return next(number for number in range(length) if left[number] != right[number])
