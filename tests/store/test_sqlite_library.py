"""The SQLite in use is named and judged, and its connections are what the ledger relies on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, text

from scrapy_frontier.errors import ConfigError, StoreError
from scrapy_frontier.store import sqlite
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.sqlite import SqliteLibrary


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'crawl.db'}", create=True) as store:
        yield store


@pytest.fixture(params=["file", "memory"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path / 'crawl.db'}"
    with open_store(url, create=True) as store:
        yield store


def write(store: Store, key: str) -> None:
    connection = store.writer_connection()
    with connection.begin():
        connection.execute(text("INSERT INTO meta VALUES (:key, '')"), {"key": key})


def has(connection: Connection, key: str) -> bool:
    found = connection.execute(text("SELECT 1 FROM meta WHERE key = :key"), {"key": key})
    return found.first() is not None


def another_writer(store: Store) -> Engine:
    assert store.path is not None
    return sqlite.writing_engine(f"{store.path.as_uri()}?mode=rw", "FULL")


def pragma(connection: Connection, name: str) -> object:
    return sqlite.ask(connection, f"PRAGMA {name}")[0][0]


# The library


@pytest.mark.parametrize(
    ("version", "is_faulty"),
    [
        ("3.40.1", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.45.0", True),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.2", True),
        ("3.51.3", False),
        ("3.53.4", False),
        ("4.0.0", False),
    ],
)
def test_wal_reset_fault_by_version(version: str, is_faulty: bool) -> None:
    """The fault is fixed in 3.51.3, and in 3.50.7 and 3.44.6 of their lines; advice only for it."""
    library = SqliteLibrary("sqlite3", version, "")
    assert library.has_wal_reset_fault is is_faulty
    advice = library.advice()
    assert (advice is not None) is is_faulty
    if advice:
        assert f"SQLite {version} (sqlite3)" in advice
        assert "pip install 'pysqlite3>=0.6.1'" in advice


def test_library_is_the_one_that_executes(any_store: Store) -> None:
    """The version and source id are those of the connection, not of a Python package."""
    with any_store.reader() as connection:
        row = connection.execute(text("SELECT sqlite_version(), sqlite_source_id()")).one()
    assert (any_store.library.version, any_store.library.source_id) == tuple(row)
    assert sqlite.DRIVER.__name__.startswith(any_store.library.module)


def test_too_old_library_is_refused() -> None:
    """A library without STRICT tables cannot hold the schema; the error names what can."""
    with pytest.raises(StoreError, match=r"SQLite 3\.36\.0 \(sqlite3\) is too old, 3\.37\.0"):
        SqliteLibrary("sqlite3", "3.36.0", "").check_age()
    SqliteLibrary("sqlite3", "3.37.0", "").check_age()


# The connections


def test_writer_is_durable_and_checkpoints_only_when_told(store: Store) -> None:
    """WAL with FULL synchronisation, foreign keys enforced, no checkpoint by itself."""
    connection = store.writer_connection()
    names = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "busy_timeout")
    assert [pragma(connection, name) for name in names] == ["wal", 2, 1, 0, sqlite.BUSY_TIMEOUT_MS]
    with connection.begin():
        for number in range(1200):
            row = {"key": f"{number}", "value": "x" * 4096}
            connection.execute(text("INSERT INTO meta VALUES (:key, :value)"), row)
    held_up, frames, copied = store.checkpoint("PASSIVE")
    assert held_up == 0
    assert frames == copied > 1000


def test_synchronous_can_be_normal(tmp_path: Path) -> None:
    """NORMAL is the one alternative to FULL; anything else is refused by name."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    with open_store(url, create=True, synchronous="NORMAL") as store:
        assert pragma(store.writer_connection(), "synchronous") == 1
    with pytest.raises(ConfigError, match="synchronous = 'OFF': one of NORMAL, FULL"):
        open_store(url, synchronous="OFF")


def test_pragma_that_does_not_take_is_an_error(store: Store) -> None:
    """SQLite ignores a pragma that it cannot obey; the frontier does not."""
    connection = store.writer_connection()
    with connection.begin(), pytest.raises(StoreError, match="foreign_keys = 0 did not take"):
        sqlite.set_pragma(connection.connection, "foreign_keys", 0)
    with pytest.raises(StoreError, match="no_such_pragma = 1 did not take"):
        sqlite.set_pragma(connection.connection, "no_such_pragma", 1)


def test_writer_holds_the_lock_from_the_start(store: Store) -> None:
    """BEGIN IMMEDIATE: a transaction of the writer keeps others from writing before it writes."""
    other = another_writer(store)
    with other.connect() as connection:
        sqlite.set_pragma(connection.connection, "busy_timeout", 0)
        with store.writer_connection().begin(), pytest.raises(Exception, match="locked"):
            connection.begin()
    other.dispose()


def test_commit_writes_and_rollback_undoes(any_store: Store) -> None:
    """A committed row is seen by a reader; a rolled back one is not, nor is a table."""
    write(any_store, "committed")
    connection = any_store.writer_connection()
    with connection.begin() as transaction:
        connection.execute(text("INSERT INTO meta VALUES ('undone', '')"))
        connection.execute(text("CREATE TABLE undone (x)"))
        transaction.rollback()
    with any_store.reader() as reader:
        assert has(reader, "committed")
        assert not has(reader, "undone")
        undone = reader.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'undone'"))
        assert undone.first() is None


def test_reader_sees_one_snapshot(store: Store) -> None:
    """What is committed while a reader is open is seen by the next reader only."""
    with store.reader() as reader:
        assert not has(reader, "later")
        write(store, "later")
        assert not has(reader, "later")
        _, frames, copied = store.checkpoint("PASSIVE")
        assert copied < frames
    with store.reader() as reader:
        assert has(reader, "later")


def test_reader_cannot_write(any_store: Store) -> None:
    """Only the one writing connection may."""
    with pytest.raises(StoreError, match="cannot be written"), any_store.reader() as reader:
        reader.exec_driver_sql("DELETE FROM meta")


def test_reader_leaves_the_log_alone(store: Store) -> None:
    """Opening, reading and closing a store for reading copies nothing out of the log."""
    write(store, "logged")
    assert store.path is not None
    files = [store.path, Path(f"{store.path}-wal")]
    before = [file.read_bytes() for file in files]
    with open_store(store.url, read_only=True) as other, other.reader() as reader:
        assert has(reader, "logged")
    assert [file.read_bytes() for file in files] == before


def test_data_version_tells_of_other_writers(store: Store) -> None:
    """It moves when another connection commits, and not for the writer's own commits."""
    before = store.data_version()
    write(store, "own")
    assert store.data_version() == before
    other = another_writer(store)
    with other.begin() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('other', '')")
    other.dispose()
    assert store.data_version() != before


def test_writer_works_in_a_thread_of_its_own(any_store: Store) -> None:
    """The connection is opened in one thread and used in another, while readers read."""

    def write_all() -> None:
        for number in range(50):
            write(any_store, f"{number}")

    thread = threading.Thread(target=write_all)
    thread.start()
    while thread.is_alive():
        with any_store.reader() as reader:
            has(reader, "49")
    with any_store.reader() as reader:
        assert has(reader, "49")


def test_stores_in_memory_are_apart() -> None:
    """Each `sqlite://` is a store of its own, gone when it is closed."""
    with open_store("sqlite://") as one, open_store("sqlite://") as other:
        write(one, "mine")
        with other.reader() as reader:
            assert not has(reader, "mine")
        assert one.checkpoint() == (0, -1, -1)
