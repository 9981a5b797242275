"""Opening a store: checked, created or migrated as needed, and handed out as one writer and many
short readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Final

from sqlalchemy import Connection, Engine

from scrapy_frontier import failpoints
from scrapy_frontier.errors import ConfigError, StoreError
from scrapy_frontier.store import sqlite
from scrapy_frontier.store.database import Database, Library, Location, Lock
from scrapy_frontier.store.deadline import Deadline
from scrapy_frontier.store.location import locate
from scrapy_frontier.store.place import Place
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
        library: Library,
        reading: Engine,
        writing: Connection | None = None,
        lock: Lock | None = None,
    ) -> None:
        self._location = location
        self._reading = reading
        self._writing = writing
        self._lock = lock
        self._place = Place(location.path)
        self.library = library
        self.database: Database = location.database

    @property
    def url(self) -> str:
        """The URL it was opened by, without a password."""
        return self._location.url

    @property
    def path(self) -> Path | None:
        """The absolute path of its file; None for a store in memory or on a server."""
        return self._location.path

    @property
    def is_temporary(self) -> bool:
        """Whether it ends with this process."""
        return self._location.is_temporary

    @property
    def dialect_name(self) -> str:
        """SQLAlchemy's name of its kind of database."""
        return self.database.name

    def run_lock(self, run_id: int) -> Lock:
        """The lock of a run."""
        return self.database.run_lock(self._location, self._writing or self._reading, run_id)

    def writer_connection(self) -> Connection:
        """The one connection that writes; each transaction on it keeps out other writers from its start."""
        if self._writing is None:
            raise StoreError(
                f"{self.url} was opened for reading; open it for writing, and only once"
            )
        return self._writing

    @contextmanager
    def durably(self) -> Iterator[None]:
        """What is committed in this block survives a power cut, whatever `synchronous` says.

        Begins outside a transaction of the writing connection, and ends there.
        """
        with (
            store_errors(f"writing to {self.url}"),
            self.database.durably(self.writer_connection()),
        ):
            yield

    @contextmanager
    def reader(self, deadline: Deadline | None = None) -> Iterator[Connection]:
        """A snapshot of the store, from the first statement to the end of the block.

        Keep it short: while it is open, the write-ahead log cannot be reset and grows. Raises `ReadTooLong` where it
        is not done by the deadline.
        """
        with (
            store_errors(f"reading {self.url}"),
            self._reading.connect() as connection,
            nullcontext() if deadline is None else deadline.kept(self.database.stopper(connection)),
            connection.begin(),
        ):
            yield connection

    def check_place(self) -> None:
        """Raise a `StoreError` where the files being written are no longer those under the store's name."""
        self._place.check(self.url)

    def checkpoint(self, mode: str = "PASSIVE") -> tuple[int, int, int]:
        """Copy the write-ahead log into the store; only between two transactions of the writer, in
        its thread.

        Returns whether it was held up (1 or 0), the frames in the log, and how many of them are
        copied; (0, -1, -1) where there is no log, or it is the server's.
        """
        if mode not in CHECKPOINT_MODES:
            raise ValueError(f"checkpoint mode {mode!r}: one of {', '.join(CHECKPOINT_MODES)}")
        failpoints.reach("checkpoint.before")
        with store_errors(f"checkpointing {self.url}"):
            taken = self.database.checkpoint(self.writer_connection(), mode)
        failpoints.reach("checkpoint.after")
        return taken

    def data_version(self) -> int:
        """A number that changes whenever another connection has written since it was last asked
        for.
        """
        with store_errors(f"reading {self.url}"):
            return self.database.data_version(self.writer_connection())

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
    """Open the store at `url` (`sqlite:///path`, `sqlite://` for one in memory,
    `postgresql+psycopg://user@host/database`), or raise a `StoreError`.

    For writing, a missing store is made if `create` says so and an older one is migrated, each in
    one transaction; any number of processes may do so at once. For reading, nothing is changed.
    Directories and databases of a server are never made. `synchronous` is FULL or NORMAL (see
    `sqlite.SYNCHRONOUS`). A store in memory is always made.
    """
    if synchronous not in sqlite.SYNCHRONOUS:
        raise ConfigError(f"synchronous = {synchronous!r}: one of {', '.join(sqlite.SYNCHRONOUS)}")
    location = locate(url)
    with store_errors(f"opening {location.url}"):
        if read_only:
            return _open_for_reading(location)
        return _open_for_writing(location, synchronous, create=create or location.is_temporary)


def _open_for_reading(location: Location) -> Store:
    location.check_readable()
    database = location.database
    reading = database.reading_engine(location)
    try:
        with reading.connect() as connection, connection.begin():
            library = database.library_of(connection)
            check_current(connection, location.url)
    except BaseException:
        reading.dispose()
        raise
    return Store(location, library, reading)


def _open_for_writing(location: Location, synchronous: str, *, create: bool) -> Store:
    location.check_writable(create=create)
    database = location.database
    writing = database.writing_engine(location, synchronous, create=create)
    with ExitStack() as undo:
        undo.callback(writing.dispose)
        connection = writing.connect()
        undo.callback(connection.close)
        library = database.library_of(connection)
        library.check_age()
        lock = database.store_lock(location, library)
        lock.acquire()
        undo.callback(lock.release)
        bring_up_to_date(connection, location.url, create=create)
        undo.pop_all()
    return Store(location, library, database.reading_engine(location), connection, lock)
