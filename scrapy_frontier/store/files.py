"""Files that are written whole or not at all, and never in the place of another by accident."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrapy_frontier import failpoints
from scrapy_frontier.errors import FrontierError


class OutputError(FrontierError):
    """A file cannot be written where it was asked for; the message says why and what to do."""


@contextmanager
def new_file(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A path to write to; at the end of the block what stands there is synced and named `target`.

    Raises `OutputError` where `target` exists and `overwrite` does not say that it may go. After an
    error nothing is left, and a `target` that was there is still what it was.
    """
    _check(target, overwrite=overwrite)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        failpoints.reach("file.written")
        sync(part)
        failpoints.reach("file.synced")
        _publish(part, target, overwrite=overwrite)
        failpoints.reach("file.named")
        sync(target.parent)
    except OSError as exc:
        raise OutputError(
            f"{target} could not be written: {exc}; free some space, or name another place"
        ) from exc
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have the disk keep a file, or the names in a folder, across a power cut."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot sync a folder
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check(target: Path, *, overwrite: bool) -> None:
    if target.is_dir():
        raise OutputError(f"{target} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise OutputError(f"the folder {target.parent} does not exist; create it, or name another")
    if target.exists() and not overwrite:
        raise _there(target)


def _there(target: Path) -> OutputError:
    return OutputError(f"{target} is there already; name another file, or say --overwrite")


def _publish(part: Path, target: Path, *, overwrite: bool) -> None:
    """A hard link fails where the name is taken, also by one that came a moment ago."""
    if overwrite:
        part.replace(target)
        return
    try:
        os.link(part, target)
    except FileExistsError as exc:
        raise _there(target) from exc
    except OSError:  # a file system without hard links
        if target.exists():
            raise _there(target) from None
        part.rename(target)
