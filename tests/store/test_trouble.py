"""Whatever the database or the disk does, the error says what happened, where, and the cure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from scrapy_frontier.errors import SchemaMismatch, StoreError
from scrapy_frontier.store import sqlite
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.sqlite import DRIVER
from scrapy_frontier.store.trouble import store_errors, trouble_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'crawl.db'}", create=True) as store:
        yield store


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(store: Store, rows: int = 1000) -> None:
    connection = store.writer_connection()
    with store_errors(f"writing to {store.url}"):
        for number in range(rows):
            with connection.begin():
                row = {"key": f"{number}", "value": "x" * 4096}
                connection.execute(text("INSERT INTO meta VALUES (:key, :value)"), row)


def count(store: Store) -> int:
    with store.reader() as reader:
        return int(reader.execute(text("SELECT count(*) FROM meta")).scalar_one())


def test_full_disk(small_disk: Path) -> None:
    """A full disk stops the writer with the cure; what was committed stays and is whole."""
    with open_store(f"sqlite:///{small_disk / 'crawl.db'}", create=True) as store:
        marks = count(store)
        with pytest.raises(StoreError, match=r"writing to sqlite:///.*: the disk is full; free"):
            fill(store)
        written = count(store) - marks
    assert 0 < written < 1000
    with open_store(store.url) as store:
        assert count(store) == marks + written
        assert sqlite.ask(store.writer_connection(), "PRAGMA integrity_check") == [("ok",)]


def test_full_database(store: Store) -> None:
    """The same where SQLite itself says that no page is left."""
    sqlite.ask(store.writer_connection(), "PRAGMA max_page_count = 100")
    with pytest.raises(StoreError, match="the disk is full; free some space") as caught:
        fill(store)
    assert not caught.value.is_retryable
    assert count(store) > 4


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are a Unix matter")
def test_refused_write(tmp_path: Path) -> None:
    """A write that the operating system refuses (here: a limit on file size) names the disk."""
    script = (
        "import resource, sys\n"
        "from test_trouble import fill, open_store\n"
        "with open_store(sys.argv[1], create=True) as store:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "    fill(store)\n"
    )
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    command = [sys.executable, "-c", script, url]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "StoreError: writing to" in ended.stderr
    assert "the operating system refused a read or write; look for a failing" in ended.stderr
    with open_store(url) as store:
        assert count(store) > 4


def test_busy_store_is_worth_another_try(store: Store) -> None:
    """While another process writes, the error says that waiting may help."""
    assert store.path is not None
    other = sqlite.writing_engine(f"{store.path.as_uri()}?mode=rw", "FULL")
    connection = other.connect()
    sqlite.set_pragma(connection.connection, "busy_timeout", 0)
    with (
        store.writer_connection().begin(),
        pytest.raises(StoreError, match="another process holds the store") as caught,
        store_errors("writing"),
    ):
        connection.begin()
    with connection.begin():
        connection.exec_driver_sql("INSERT INTO meta VALUES ('second', 'try')")
    connection.close()
    other.dispose()
    assert caught.value.is_retryable


def test_damaged_store(store: Store) -> None:
    """A damaged file is reported as such, with what is to be done with it."""
    fill(store, 50)
    store.close()
    assert store.path is not None
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(StoreError, match=r"the store is damaged; .* restore a backup") as caught:
        open_store(store.url)
    assert not caught.value.is_retryable


def test_file_that_is_no_database(tmp_path: Path) -> None:
    """Any other file is refused and left as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    for read_only in (True, False):
        with pytest.raises(SchemaMismatch, match=r"notes\.txt: this file is not an SQLite"):
            open_store(f"sqlite:///{path}", read_only=read_only)
    assert path.read_text() == "not a database " * 100


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO meta VALUES ('schema', 'twice')",
        "INSERT INTO rejection VALUES (1, 1, 0, 0, 0, NULL)",
        "INSERT INTO run VALUES (1, '', '', 'unheard of', 0, NULL, NULL, NULL, 1)",
        "INSERT INTO run VALUES (1, '', '', 'running', 0, NULL, NULL, NULL, 77)",
        "INSERT INTO seed VALUES (1, 'text in a column of integers')",
    ],
    ids=["unique", "not null", "check", "foreign key", "strict"],
)
def test_rows_against_the_schema(store: Store, statement: str) -> None:
    """The schema's constraints hold, and the error tells them from trouble with the disk."""
    connection = store.writer_connection()
    with (
        pytest.raises(StoreError, match="the rows contradict the schema"),
        store_errors("writing"),
        connection.begin(),
    ):
        connection.exec_driver_sql(statement)


def test_ledger_is_append_only(store: Store) -> None:
    """A transition can be neither changed nor deleted, by anyone."""
    connection = store.writer_connection()
    with connection.begin():
        connection.exec_driver_sql(
            "INSERT INTO transition VALUES (1, 1, 0, 0, 1, 1, 0, 0, 0, 0, NULL, NULL)"
        )
    for statement in ("UPDATE transition SET at_ms = 1", "DELETE FROM transition"):
        with (
            pytest.raises(StoreError, match="the ledger is append-only"),
            store_errors("writing"),
            connection.begin(),
        ):
            connection.exec_driver_sql(statement)


def test_raw_driver_errors_are_mapped_too(store: Store) -> None:
    """The hot path uses the driver's cursor; its errors get the same words."""
    with (
        pytest.raises(StoreError, match=r"writing: the database refused \(OperationalError: no"),
        store_errors("writing"),
    ):
        sqlite.ask(store.writer_connection(), "SELECT * FROM no_such_table")


def test_other_errors_pass_unchanged() -> None:
    """A fault of the caller is not dressed up as one of the store."""
    with pytest.raises(KeyError), store_errors("writing"):
        raise KeyError("name")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (5, "database is locked"),
        (6, "database table is locked"),
        (8, "attempt to write a readonly database"),
        (10, "disk I/O error"),
        (11, "database disk image is malformed"),
        (13, "database or disk is full"),
        (14, "unable to open database file"),
        (15, "locking protocol"),
        (19, "constraint failed"),
        (26, "file is not a database"),
    ],
)
def test_code_and_message_say_the_same(code: int, message: str) -> None:
    """Python 3.10's module gives no code: the library's text for the code is read instead."""
    bare = DRIVER.OperationalError(message)
    coded = DRIVER.OperationalError("")
    coded.sqlite_errorcode = code | 0x100
    assert trouble_of(bare) is trouble_of(coded)
    assert trouble_of(bare) is not trouble_of(DRIVER.OperationalError("no such table: x"))
