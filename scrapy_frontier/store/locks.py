"""Locks between processes: files beside the store that the operating system frees with their
holder.

A lock left by a process that was killed is free; nothing has to be cleaned up by hand. The file
only carries the lock and the name of its holder: that it exists means nothing.
"""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from scrapy_frontier.errors import RunLocked, StoreError
from scrapy_frontier.store.sqlite import CURE, SqliteLibrary

if TYPE_CHECKING:
    from scrapy_frontier.store.database import Location
    from scrapy_frontier.store.opening import Store

PATIENCE_S: Final = 0.5
"""How long an acquisition waits: enough for a holder that is just ending."""


class ProcessLock:
    """A lock that one object, in one process, holds at a time; always free where `path` is None.

    Keep the object: the lock is given back when it is collected.
    """

    def __init__(self, path: Path | None, refusal: Callable[[str], str]) -> None:
        """`refusal` words the error, given who holds the lock."""
        self.path = path
        self._refusal = refusal
        self._lock = None if path is None else _file_lock(path)

    def acquire(self) -> None:
        """Take the lock, or raise `RunLocked`, which says who has it and what to do."""
        if self._lock is None:
            return
        try:
            self._lock.acquire(timeout=PATIENCE_S)
        except Timeout as exc:
            raise RunLocked(self._refusal(self.holder())) from exc
        except (OSError, NotImplementedError) as exc:
            raise StoreError(
                f"the lock file {self.path} cannot be used: {exc}; give this user write permission "
                "there, and keep the store on a local disk"
            ) from exc

    def release(self) -> None:
        """Give the lock back and remove its file. Does nothing where it is not held."""
        if self._lock is None or self.path is None or not self._lock.is_locked:
            return
        # Removed while held: whoever has opened the file meanwhile finds it gone once it gets the
        # lock, and opens anew. Windows refuses, and `filelock` removes it there.
        with suppress(OSError):
            self.path.unlink()
        self._lock.release(force=True)

    def is_held(self) -> bool | None:
        """Whether some object has the lock; None where that cannot be told. Needs to take it for a moment."""
        if self.path is None or self._lock is None:
            return None
        if self._lock.is_locked:
            return True
        if not self.path.exists():
            return False
        try:
            self.acquire()
        except RunLocked:
            return True
        except StoreError:
            return None
        self.release()
        return False

    def holder(self) -> str:
        """Who has the lock, as it wrote itself down."""
        unnamed = "another process"
        if self.path is None:
            return unnamed
        try:
            with self.path.open("rb") as file:
                file.seek(1)
                return file.read().decode(errors="replace") or unnamed
        except OSError:
            return unnamed

    def __enter__(self) -> ProcessLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class RunLock:
    """One process works on a run. Readers never take it; in memory it is always free."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._lock = store.run_lock(run_id)

    def acquire(self) -> None:
        """Take the lock, or raise `RunLocked`, which says who has it and what to do."""
        self._lock.acquire()

    def release(self) -> None:
        """Give the lock back. Does nothing where it is not held."""
        self._lock.release()

    def holder(self) -> str:
        """Who has the lock."""
        return self._lock.holder()

    def is_held(self) -> bool | None:
        """Whether a process works on the run; None where that cannot be told."""
        return self._lock.is_held()

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class FileRunLock(ProcessLock):
    """The lock of a run beside the file of its store."""

    def __init__(self, location: Location, run_id: int) -> None:
        super().__init__(
            _beside(location.path, f"run-{run_id}"),
            lambda holder: refusal_of_run(run_id, location.url, holder),
        )


def refusal_of_run(run_id: int, url: str, holder: str) -> str:
    """Why a run cannot be worked on now, and what to do."""
    return (
        f"run {run_id} of {url} is being crawled by {holder}; wait until it ends, stop that "
        "process, or crawl under another FRONTIER_RUN"
    )


class StoreLock(ProcessLock):
    """At most one process writes to a store as long as one of them has the WAL-reset fault.

    A process with a faulty SQLite holds the lock, and takes it only while nobody crawls; one with a
    sound SQLite only makes sure that nobody holds it.
    """

    def __init__(self, path: Path | None, url: str, library: SqliteLibrary) -> None:
        super().__init__(
            _beside(path, "writer"),
            lambda holder: (
                f"{url} is being written by {holder}, and one of the two processes has an SQLite "
                "with the WAL-reset fault: a store that two connections write to can be damaged. "
                f"Wait until the other ends, or give both a sound one. {CURE}"
            ),
        )
        self._store_path = path
        self._is_faulty = library.has_wal_reset_fault

    def acquire(self) -> None:
        """Keep out other writers, or raise `RunLocked`, which says who writes and what to do."""
        if self.path is None or self._store_path is None:
            return
        if self._is_faulty:
            super().acquire()
            self._check_runs(self._store_path)
        elif self.path.exists():
            super().acquire()
            self.release()

    def _check_runs(self, path: Path) -> None:
        try:
            for run_lock in path.parent.glob(f"{glob.escape(path.name)}.run-*.lock"):
                with ProcessLock(run_lock, self._refusal):
                    pass
        except StoreError:
            self.release()
            raise


def _beside(path: Path | None, name: str) -> Path | None:
    return None if path is None else path.with_name(f"{path.name}.{name}.lock")


def _file_lock(path: Path) -> FileLock:
    return FileLock(path, thread_local=False, fallback_to_soft=False, on_acquired=_sign)


def _sign(descriptor: int) -> None:
    """Write the holder into the file; its first byte is left alone, for Windows locks that one."""
    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(
        descriptor, f"\nprocess {os.getpid()} on {socket.gethostname()} since {since}".encode()
    )
