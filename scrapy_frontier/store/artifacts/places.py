"""Where artifacts lie: named files, each written once, whole or not at all."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from scrapy_frontier import failpoints
from scrapy_frontier.errors import ArtifactError

TOUCHED_FOR_S: Final = 600.0
"""Seconds for which a file that this process has written or touched needs no further touch."""

KNOWN_LIMIT: Final = 100_000
"""Names that are remembered as touched."""

_TEMPORARY: Final = "tmp"
_ASIDE: Final = ".swept"


class Kept(NamedTuple):
    """A file as a listing shows it; `changed_at` is in seconds since the epoch."""

    name: str
    changed_at: float
    size: int


class Place(Protocol):
    """A folder of artifacts. Names are `ab/abcd....gz`; every method may be called from any thread.

    Failures are `ArtifactError`.
    """

    url: str

    def put(self, name: str, content: bytes) -> None:
        """Make the file durable under this name, and young: a sweep leaves it alone for its grace period."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading. Raises `ArtifactError` with `is_missing` where there is none."""

    def listing(self) -> Iterator[Kept]:
        """All files, in no order."""

    def remove_if_old(self, name: str, before: float) -> bool:
        """Remove a file unless it was written or touched since `before`; whether it is gone now."""


class LocalPlace:
    """A folder of this machine. A file is synced, then renamed, then its directory is synced."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = str(root)
        self._numbers = itertools.count()
        self._touched: dict[str, float] = {}

    def put(self, name: str, content: bytes) -> None:
        """Write a file that is not there yet; one that is gets a new time, and its directory is synced.

        One of another length was cut off by other hands, and is written anew.
        """
        now = time.monotonic()
        if now - self._touched.get(name, -TOUCHED_FOR_S) < TOUCHED_FOR_S:
            return
        with _errors(f"writing evidence to {self.root / name}"):
            path = self.root / name
            if not self._is_touched(path, len(content)):
                self._write(path, content)
            _sync_directory(path.parent)
        if len(self._touched) >= KNOWN_LIMIT:
            self._touched.clear()
        self._touched[name] = now

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        with _errors(f"reading evidence from {self.root / name}"):
            return (self.root / name).open("rb")

    def listing(self) -> Iterator[Kept]:
        """All files, what an interrupted write or sweep has left among them."""
        with _errors(f"listing the evidence in {self.root}"):
            if not self.root.is_dir():
                return
            for folder in sorted(path for path in self.root.iterdir() if path.is_dir()):
                for path in folder.iterdir():
                    with suppress(FileNotFoundError):
                        found = path.stat()
                        name = f"{folder.name}/{path.name}"
                        yield Kept(name, found.st_mtime, found.st_size)

    def remove_if_old(self, name: str, before: float) -> bool:
        """Move the file aside, look at its time again, and only then remove it.

        Whoever touches it in between is seen, and gets it back; whoever comes later finds none and writes it anew.
        """
        path = self.root / name
        aside = path if name.endswith(_ASIDE) else path.with_name(path.name + _ASIDE)
        with _errors(f"sweeping {path}"):
            try:
                path.replace(aside)
                if aside.stat().st_mtime >= before:
                    aside.replace(aside.with_name(aside.name.removesuffix(_ASIDE)))
                    return False
                aside.unlink()
            except FileNotFoundError:
                return False
            self._touched.pop(name, None)
        return True

    def restore(self, name: str) -> None:
        """Give a file its name back that an interrupted sweep had moved aside."""
        path = self.root / name
        with _errors(f"restoring {path}"), suppress(FileNotFoundError):
            path.replace(path.with_name(path.name.removesuffix(_ASIDE)))

    def _is_touched(self, path: Path, size: int) -> bool:
        try:
            os.utime(path)
            return path.stat().st_size == size
        except FileNotFoundError:
            return False

    def _write(self, path: Path, content: bytes) -> None:
        self._make_directory(path.parent)
        temporary = self.root / _TEMPORARY / f"{os.getpid()}-{next(self._numbers)}-{path.name}"
        self._make_directory(temporary.parent)
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            failpoints.reach("artifact.synced")
            temporary.replace(path)
            failpoints.reach("artifact.named")
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _make_directory(self, path: Path) -> None:
        if path.is_dir():
            return
        for missing in reversed([path, *path.parents]):
            if not missing.is_dir():
                missing.mkdir(exist_ok=True)
                _sync_directory(missing.parent)


def is_leftover(name: str) -> bool:
    """Whether a name is what an interrupted write has left behind."""
    return name.startswith(f"{_TEMPORARY}/")


def is_aside(name: str) -> bool:
    """Whether a name is what an interrupted sweep has left behind."""
    return name.endswith(_ASIDE)


def plain_name(name: str) -> str:
    """The name that a file had before a sweep moved it aside."""
    return name.removesuffix(_ASIDE)


def _sync_directory(path: Path) -> None:
    if (
        os.name != "posix"
    ):  # elsewhere a directory cannot be opened, and a rename is durable by itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArtifactError(f"{what}: there is no such file", is_missing=True) from error
    except OSError as error:
        raise ArtifactError(
            f"{what}: {error}; free space or mend the place that FRONTIER_ARTIFACTS names, then start again: what was"
            " committed stays"
        ) from error
