"""Opening a store: checked, created or migrated as needed, and handed out as one writer and many
short readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from sqlalchemy import Connection, Engine

from scrapy_frontier import failpoints
from scrapy_frontier.errors import ConfigError, StoreError
from scrapy_frontier.store import sqlite
from scrapy_frontier.store.location import Location, locate
from scrapy_frontier.store.locks import StoreLock
from scrapy_frontier.store.standing import bring_up_to_date, check_current
from scrapy_frontier.store.trouble import store_errors

CHECKPOINT_MODES: Final = ("PASSIVE", "FULL", "RESTART", "TRUNCATE")


class Store:
    """An open store. Made by `open_store`; close it, or use it as a context manager.

    The writing connection belongs to one thread at a time, any thread; `reader` may be called from
    all.
    """

    def __init__(
        self,
        location: Location,
        library: sqlite.SqliteLibrary,
        reading: Engine,
        writing: Connection | None = None,
        lock: StoreLock | None = None,
    ) -> None:
        self._location = location
        self._reading = reading
        self._writing = writing
        self._lock = lock
        self.library = library
        self.dialect_name = reading.dialect.name

    @property
    def url(self) -> str:
        """The URL it was opened by."""
        return self._location.url

    @property
    def path(self) -> Path | None:
        """The absolute path of its file; None for a store in memory."""
        return self._location.path

    def writer_connection(self) -> Connection:
        """The one connection that writes; each transaction on it starts with BEGIN IMMEDIATE."""
        if self._writing is None:
            raise StoreError(
                f"{self.url} was opened for reading; open it for writing, and only once"
            )
        return self._writing

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """A snapshot of the store, from the first statement to the end of the block.

        Keep it short: while it is open, the write-ahead log cannot be reset and grows.
        """
        with (
            store_errors(f"reading {self.url}"),
            self._reading.connect() as connection,
            connection.begin(),
        ):
            yield connection

    def checkpoint(self, mode: str = "PASSIVE") -> tuple[int, int, int]:
        """Copy the write-ahead log into the store; only between two transactions of the writer, in
        its thread.

        Returns whether it was held up (1 or 0), the frames in the log, and how many of them are
        copied; (0, -1, -1) in memory, where there is no log.
        """
        if mode not in CHECKPOINT_MODES:
            raise ValueError(f"checkpoint mode {mode!r}: one of {', '.join(CHECKPOINT_MODES)}")
        failpoints.reach("checkpoint.before")
        with store_errors(f"checkpointing {self.url}"):
            (row,) = sqlite.ask(self.writer_connection(), f"PRAGMA wal_checkpoint({mode})")
        failpoints.reach("checkpoint.after")
        held_up, frames, copied = row
        return held_up, frames, copied

    def data_version(self) -> int:
        """A number that changes when, and only when, another connection has written since it was
        last asked for.
        """
        with store_errors(f"reading {self.url}"):
            ((version,),) = sqlite.ask(self.writer_connection(), "PRAGMA data_version")
        return int(version)

    def close(self) -> None:
        """Close all connections; the last of a store empties its write-ahead log. A transaction
        still open is undone.
        """
        with store_errors(f"closing {self.url}"):
            self._reading.dispose()
            if self._writing is not None:
                self._writing.close()
                self._writing.engine.dispose()
                self._writing = None
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        use = "reading" if self._writing is None else "writing"
        return f"<Store {self.url} for {use}, {self.library}>"


def open_store(
    url: str, *, create: bool = False, read_only: bool = False, synchronous: str = "FULL"
) -> Store:
    """Open the store at `url` (`sqlite:///path`; `sqlite://` for one in memory), or raise a
    `StoreError`.

    For writing, a missing store is made if `create` says so and an older one is migrated, each in
    one transaction; any number of processes may do so at once. For reading, nothing is changed.
    Directories are never made. `synchronous` is FULL or NORMAL (see `sqlite.SYNCHRONOUS`). A store
    in memory is always made.
    """
    if synchronous not in sqlite.SYNCHRONOUS:
        raise ConfigError(f"synchronous = {synchronous!r}: one of {', '.join(sqlite.SYNCHRONOUS)}")
    location = locate(url)
    with store_errors(f"opening {url}"):
        if read_only:
            return _open_for_reading(location)
        return _open_for_writing(location, create or location.path is None, synchronous)


def _open_for_reading(location: Location) -> Store:
    location.check_readable()
    frozen = {"immutable": "1"} if location.is_frozen else {}
    reading = sqlite.reading_engine(location.uri(mode="ro", **frozen))
    try:
        with reading.connect() as connection, connection.begin():
            library = sqlite.library_of(connection)
            check_current(connection, location.url)
    except BaseException:
        reading.dispose()
        raise
    return Store(location, library, reading)


def _open_for_writing(location: Location, create: bool, synchronous: str) -> Store:
    location.check_writable(create=create)
    writing = sqlite.writing_engine(location.uri(mode="rwc" if create else "rw"), synchronous)
    with ExitStack() as undo:
        undo.callback(writing.dispose)
        connection = writing.connect()
        library = sqlite.library_of(connection)
        library.check_age()
        lock = StoreLock(location.path, location.url, library)
        undo.enter_context(lock)
        bring_up_to_date(connection, location.url, create=create)
        undo.pop_all()
    reading = sqlite.reading_engine(location.uri(mode="ro"))
    return Store(location, library, reading, connection, lock)
