"""Who reads a store, by the locks that SQLite's readers hold: what keeps the log from being emptied.

A reader of the write-ahead log holds a shared lock on one of the bytes 123 to 127 of the file
`-shm` (sqlite.org/walformat.html, section 2.3.2; five read marks behind offset 120). Linux lists
all such locks; the file itself must not be opened, for closing it would drop SQLite's own locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_READ_MARKS: Final = range(123, 128)
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Reader:
    """A process with an open read of a store."""

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id} ({self.command})"


def readers_of(path: Path | None, locks: Path = Path("/proc/locks")) -> tuple[Reader, ...]:
    """Other processes that are in the middle of reading the store at `path`; none where it cannot be told."""
    if path is None:
        return ()
    try:
        shared = Path(f"{path}-shm").stat()
        lines = locks.read_text().splitlines()
    except OSError:
        return ()
    found = set(_holders(lines, shared))
    return tuple(Reader(number, _command(number)) for number in sorted(found - {os.getpid()}))


def _holders(lines: list[str], shared: os.stat_result) -> Iterator[int]:
    device = f"{os.major(shared.st_dev):02x}:{os.minor(shared.st_dev):02x}:{shared.st_ino}"
    for line in lines:
        fields = line.split()
        if len(fields) < 8 or fields[1] != "POSIX" or fields[-3] != device:
            continue
        if int(fields[-2]) in _READ_MARKS and fields[3] == "READ":
            yield int(fields[4])


def _command(process_id: int) -> str:
    try:
        words = Path(f"/proc/{process_id}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone meanwhile"
    command = b" ".join(words).decode(errors="replace").strip()
    return command if len(command) <= _SHOWN else f"{command[: _SHOWN - 3]}..."
