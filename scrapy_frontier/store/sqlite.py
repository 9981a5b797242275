"""SQLite: the driver, the library really in use, and connections set up the way the ledger needs
them.

A store has one writing connection, which makes all commits and all checkpoints; every other
connection is opened `mode=ro`, cannot write and so never has a reason to checkpoint. That keeps
even a library with the WAL-reset fault safe inside one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

from scrapy_frontier.errors import StoreError


def _driver() -> ModuleType:
    try:
        from pysqlite3 import dbapi2
    except ImportError:  # no wheel for this platform
        from sqlite3 import dbapi2
    return dbapi2  # type: ignore[no-any-return]


DRIVER: Final[Any] = _driver()
"""The PEP 249 module of every connection to a store: pysqlite3, where it is installed, else the
standard library's.
"""

BUSY_TIMEOUT_MS: Final = 5000
"""How long a statement waits for another process before it fails as busy."""

PAGE_BYTES: Final = 4096
"""The size of a page, SQLite's default since 3.12."""

OLDEST: Final = (3, 37, 0)
"""The first SQLite with STRICT tables."""

_PRAGMAS: Final = (
    ("busy_timeout", BUSY_TIMEOUT_MS),
    ("foreign_keys", 1),
    ("temp_store", 2),
)
_WRITER_PRAGMAS: Final = (*_PRAGMAS, ("cache_size", -65_536), ("wal_autocheckpoint", 0))
_READER_PRAGMAS: Final = (*_PRAGMAS, ("cache_size", -16_384), ("query_only", 1))

_BACKPORTS: Final = {(3, 44): (3, 44, 6), (3, 50): (3, 50, 7)}
"""Lines of SQLite below 3.51.3 that got the fix of the WAL-reset fault, and the release that has
it.
"""

CURE: Final = (
    "Cure: pip install 'pysqlite3>=0.6.1'; where that has no wheel, a Python whose sqlite3 module "
    "is linked to SQLite 3.51.3 or newer (or 3.50.7, 3.44.6 of their lines)"
)

SYNCHRONOUS: Final = {"NORMAL": 1, "FULL": 2}
"""FULL: what was acknowledged survives a power cut. NORMAL: the last commits before one may be
missing.
"""


@dataclass(frozen=True)
class SqliteLibrary:
    """The SQLite that executes the statements, as it names itself; the version of a Python package
    proves nothing.
    """

    module: str
    version: str
    source_id: str

    @property
    def name(self) -> str:
        """Its name in one word."""
        return "sqlite"

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The version as numbers that compare."""
        major, minor, patch = map(int, self.version.split("."))
        return major, minor, patch

    @property
    def has_wal_reset_fault(self) -> bool:
        """Whether a checkpoint that races a commit of another connection can damage a store.

        Fixed in SQLite 3.51.3, and in 3.50.7 and 3.44.6 of their lines (sqlite.org/wal.html, the
        WAL-reset bug).
        """
        fixed_in = _BACKPORTS.get(self.numbers[:2], (3, 51, 3))
        return self.numbers < fixed_in

    def advice(self) -> str | None:
        """What the operator should know and do about this library; None where it is sound."""
        if not self.has_wal_reset_fault:
            return None
        return (
            f"{self} has the WAL-reset fault: a store that two connections write to can be "
            f"damaged, so only one process at a time may write to it. {CURE}"
        )

    def check_age(self) -> None:
        """Raise a `StoreError` if the library is too old for the schema."""
        if self.numbers < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise StoreError(
                f"{self} is too old, {oldest} is needed: pip install 'pysqlite3>=0.6.1', or use a "
                "newer Python"
            )

    def __str__(self) -> str:
        return f"SQLite {self.version} ({self.module})"


def library_of(connection: Connection) -> SqliteLibrary:
    """Ask the library behind `connection` for its name."""
    ((version, source_id),) = ask(connection, "SELECT sqlite_version(), sqlite_source_id()")
    return SqliteLibrary(DRIVER.__name__.partition(".")[0], version, source_id)


def ask(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement, past SQLAlchemy's own execution, which would begin a transaction."""
    cursor = connection.connection.cursor()
    try:
        cursor.execute(statement)
        return list(cursor.fetchall())
    finally:
        cursor.close()


def writing_engine(uri: str, synchronous: str) -> Engine:
    """An engine with one connection, whose every transaction starts with BEGIN IMMEDIATE.

    A transaction that began as a reader's cannot wait for the lock when it comes to write; one that
    is a writer's from its first statement can.
    """
    pragmas = (*_WRITER_PRAGMAS, ("synchronous", SYNCHRONOUS[synchronous]))
    return _engine(uri, StaticPool, pragmas, "BEGIN IMMEDIATE")


def reading_engine(uri: str) -> Engine:
    """An engine for short snapshots; its connections cannot write, whatever the URI says."""
    return _engine(uri, QueuePool, _READER_PRAGMAS, "BEGIN")


def _engine(
    uri: str,
    pool: type[StaticPool | QueuePool],
    pragmas: tuple[tuple[str, int], ...],
    begin: str,
) -> Engine:
    engine = create_engine("sqlite://", module=DRIVER, creator=_connector(uri), poolclass=pool)

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _record: object) -> None:
        for name, value in pragmas:
            set_pragma(connection, name, value)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _connector(uri: str) -> Callable[[], Any]:
    """`isolation_level=None` keeps the driver from transactions of its own: only then is our BEGIN
    the only one.

    The `autocommit` argument of Python 3.12 must stay unset: with True, commit() does nothing; with
    False, the driver has begun a deferred transaction already.
    """

    def connect() -> Any:
        return DRIVER.connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_TIMEOUT_MS / 1000,
        )

    return connect


def set_pragma(connection: Any, name: str, value: int) -> None:
    """Set one pragma and read it back: SQLite ignores in silence what it does not know or cannot
    do.
    """
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA {name} = {value}").fetchall()
        row = cursor.execute(f"PRAGMA {name}").fetchone()
    finally:
        cursor.close()
    if row is None or row[0] != value:
        raise StoreError(
            f"PRAGMA {name} = {value} did not take (it is {row[0] if row else 'unknown'}); this "
            "SQLite was built without it: use another, such as pysqlite3's"
        )


@contextmanager
def flushing(connection: Any) -> Iterator[None]:
    """Commits of this block are flushed to the disk, and all before them, whatever `synchronous` is otherwise.

    Outside a transaction: SQLite does not take the pragma inside one.
    """
    cursor = connection.cursor()
    try:
        (before,) = cursor.execute("PRAGMA synchronous").fetchone()
    finally:
        cursor.close()
    set_pragma(connection, "synchronous", SYNCHRONOUS["FULL"])
    try:
        yield
    finally:
        set_pragma(connection, "synchronous", before)


def enter_wal(connection: Connection) -> None:
    """Switch the store to the write-ahead log, for good; readers then never wait for the writer.

    The switch does not wait for another process as other statements do, hence the loop.
    """
    give_up_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            ((mode,),) = ask(connection, "PRAGMA journal_mode = WAL")
            break
        except DRIVER.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
    if mode not in {"wal", "memory"}:
        raise StoreError(
            f"the journal mode stays {mode!r}: this file system cannot hold a write-ahead log; put "
            "the store on a local disk"
        )
