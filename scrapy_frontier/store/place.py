"""Whether the files that a store is written to are still those under its name.

A file that is deleted or replaced while SQLite has it open goes on to be written, out of sight, and
is gone for good when it is closed: everything would seem well until the end.
"""

from __future__ import annotations

from pathlib import Path

from scrapy_frontier.errors import StoreError


class Place:
    """The store's file and its write-ahead log, as they were when each was first seen."""

    def __init__(self, path: Path | None) -> None:
        self._files = [] if path is None else [path, path.with_name(f"{path.name}-wal")]
        self._seen: dict[Path, tuple[int, int]] = {}

    def check(self, url: str) -> None:
        """Raise a `StoreError` where one of them is gone or another one by now. Costs two looks at the disk."""
        for file in self._files:
            found = _identity(file)
            known = self._seen.get(file)
            if known is None:
                if found is not None:
                    self._seen[file] = found
            elif found != known:
                what = "was deleted" if found is None else "was replaced by another file"
                raise StoreError(
                    f"{file} {what} while {url} was being written: what was committed lately is in"
                    " no file that has a name. Put a backup back (`scrapy frontier backup FILE"
                    " --restore --overwrite`), or begin a new store; and find out who did it"
                )


def _identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from every other; None where there is none, or it cannot be told."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
