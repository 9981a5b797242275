"""Opening a store: it works, or the error names the store and the remedy and nothing is changed."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, text

import scrapy_frontier
from scrapy_frontier.errors import SchemaMismatch, StoreError
from scrapy_frontier.store import schema
from scrapy_frontier.store.opening import Store, open_store

OPEN_AND_CLOSE = """
import sys
from scrapy_frontier.store.opening import open_store
print("ready", flush=True)
sys.stdin.readline()
open_store(sys.argv[1], create=True).close()
assert "alembic" not in sys.modules, "Alembic is loaded though nothing is to be migrated"
"""

DIE_WHILE_CREATING = """
import os, signal, sys
from scrapy_frontier.store import standing
from scrapy_frontier.store.opening import open_store
standing.mark = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
open_store(sys.argv[1], create=True)
"""


def python(script: str, url: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", script, url],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def marks(store: Store) -> dict[str, str]:
    with store.reader() as reader:
        rows = reader.execute(text("SELECT key, value FROM meta"))
        return {row.key: row.value for row in rows}


def set_mark(url: str, key: str, value: str) -> None:
    with open_store(url) as store, store.writer_connection().begin():
        store.writer_connection().execute(
            text("UPDATE meta SET value = :value WHERE key = :key"), {"key": key, "value": value}
        )


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where a store is."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    open_store(url, create=True).close()
    return url


# Creating


def test_new_store_is_marked_and_opens_again(tmp_path: Path) -> None:
    """A store says what it is, its schema, and which version made it; it is empty of runs."""
    path = tmp_path / "crawl.db"
    with open_store(f"sqlite:///{path}", create=True) as store:
        assert store.path == path
        assert store.database.name == "sqlite"
        created = marks(store)
        assert int(created.pop("created_ms")) > 1_700_000_000_000
        assert created == {
            "product": "scrapy_frontier",
            "schema": schema.SCHEMA_VERSION,
            "version": scrapy_frontier.__version__,
        }
    assert list(tmp_path.iterdir()) == [path]
    with open_store(f"sqlite:///{path}") as store, store.reader() as reader:
        assert reader.execute(text("SELECT count(*) FROM run")).scalar_one() == 0


@pytest.mark.parametrize("name", ["a b.db", "50%20.db", "né#1.db", "{x}.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    """What means something in a URI means nothing in the path of a store."""
    path = tmp_path / name
    url = URL.create("sqlite", database=str(path)).render_as_string()
    open_store(url, create=True).close()
    assert list(tmp_path.iterdir()) == [path]
    open_store(url, read_only=True).close()


def test_relative_path_is_fixed_at_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that changes its directory later still works on the same store."""
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///crawl.db", create=True) as store:
        monkeypatch.chdir("/")
        assert store.path == tmp_path / "crawl.db"
        assert marks(store)["product"] == "scrapy_frontier"


def test_processes_may_create_one_store_at_once(tmp_path: Path) -> None:
    """Each of them opens it; one has created it."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    processes = [python(OPEN_AND_CLOSE, url) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("now\n")
        process.stdin.flush()
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said
    with open_store(url) as store:
        assert marks(store)["product"] == "scrapy_frontier"


def test_death_while_creating_leaves_nothing_half_made(tmp_path: Path) -> None:
    """The file is then empty: reported as such, and made into a store by the next crawl."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    python(DIE_WHILE_CREATING, url).communicate()
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"crawl\.db is empty: no crawl has written to it"):
            open_store(url, read_only=read_only)
    with open_store(url, create=True) as store:
        assert marks(store)["product"] == "scrapy_frontier"


# Refusing


@pytest.mark.parametrize("read_only", [True, False])
def test_missing_store(tmp_path: Path, read_only: bool) -> None:
    """Only a crawl makes a store; a typing error in a command makes none."""
    with pytest.raises(StoreError, match=r"there is no store at .*crawl\.db; check the path"):
        open_store(f"sqlite:///{tmp_path / 'crawl.db'}", read_only=read_only)
    assert list(tmp_path.iterdir()) == []


def test_missing_directory(tmp_path: Path) -> None:
    """Directories are the operator's."""
    with pytest.raises(StoreError, match=r"the directory .*gone of the store .* create it"):
        open_store(f"sqlite:///{tmp_path / 'gone' / 'crawl.db'}", create=True)


def test_directory_in_place_of_a_file(tmp_path: Path) -> None:
    """The error shows a path that would do."""
    with pytest.raises(StoreError, match=r"is a directory; name a file in it: .*/crawl\.db"):
        open_store(f"sqlite:///{tmp_path}", create=True)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("crawl.db", "'crawl.db' is not the URL of a store; write sqlite:///crawl.db"),
        ("", "'' is not the URL of a store"),
        ("postgresql+psycopg2://u:secret@h/db", "'postgresql+psycopg2' is not supported"),
        ("postgresql+psycopg://u:secret@h", "names no database"),
        ("postgresql+psycopg://u:se:cret@secret@h:port/db", "is not the URL of a store"),
        ("postgresql://h:port/db?user=u&password=secret", "is not the URL of a store"),
        ("mysql://u:secret@h/db", "stores of the kind 'mysql' are not supported"),
        ("sqlite+aiosqlite:///x.db", "stores of the kind 'sqlite+aiosqlite' are not supported"),
        ("sqlite://crawl.db", "an SQLite store's URL has a path and nothing else"),
        ("sqlite:///crawl.db?mode=ro", "an SQLite store's URL has a path and nothing else"),
        ("mysql://u:secret@h:port/db", "is not the URL of a store"),
    ],
)
def test_other_urls(url: str, said: str) -> None:
    """The error repeats the URL, without its password, and shows one that would do."""
    with pytest.raises(StoreError) as caught:
        open_store(url, create=True)
    assert said in str(caught.value)
    assert re.search("write (sqlite:///|postgresql)", str(caught.value))
    assert "secret" not in str(caught.value)


def test_memory_cannot_be_opened_for_reading() -> None:
    """There would never be anything in it."""
    with pytest.raises(StoreError, match="seen only by the process that made it"):
        open_store("sqlite://", read_only=True)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE music (title)",
        "CREATE TABLE meta (name, content)",
        "CREATE TABLE meta (key, value)",
        "CREATE VIEW meta AS SELECT 'product' AS key, 'another' AS value",
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_database_of_something_else(tmp_path: Path, statement: str, read_only: bool) -> None:
    """It is refused, and not a byte of it is changed."""
    path = tmp_path / "music.db"
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaMismatch, match=r"music\.db is an SQLite database of something else"):
        open_store(f"sqlite:///{path}", create=not read_only, read_only=read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [True, False])
def test_newer_store(url: str, read_only: bool) -> None:
    """A store of a newer schema is refused; both versions and who wrote it are named."""
    set_mark(url, "version", "9.1.0")
    set_mark(url, "schema", "9999")
    with pytest.raises(SchemaMismatch, match="upgrade it, or use another store") as caught:
        open_store(url, read_only=read_only)
    for named in ("schema 9999", "9.1.0", scrapy_frontier.__version__, schema.SCHEMA_VERSION):
        assert named in str(caught.value)


def test_older_store_is_not_migrated_by_a_reader(url: str) -> None:
    """A report changes nothing; the error says how the store gets its new schema."""
    set_mark(url, "schema", "0000")
    with pytest.raises(SchemaMismatch, match=r"schema 0000, .* `scrapy frontier migrate`"):
        open_store(url, read_only=True)


def test_reader_store_does_not_write(url: str) -> None:
    """A store opened for reading has no writing connection."""
    with open_store(url, read_only=True) as store, pytest.raises(StoreError, match="for reading"):
        store.writer_connection()


# Without permission


@pytest.fixture
def as_nobody(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The test goes on as a user who owns nothing, for no permission binds root."""
    if os.geteuid() != 0:
        yield
        return
    ours = tmp_path_factory.getbasetemp().parent
    if "PYTEST_XDIST_WORKER" in os.environ:  # the folder of a worker is in that of the session
        ours = ours.parent
    for directory in (tmp_path, *tmp_path.parents):
        if directory.is_relative_to(ours):
            directory.chmod(directory.stat().st_mode | 0o011)
        elif not directory.stat().st_mode & 0o001:
            pytest.skip(f"{directory} is closed to others")
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


unix_only = pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")


@unix_only
def test_directory_without_permission(tmp_path: Path, url: str, as_nobody: None) -> None:
    """The directory needs write permission too, for the write-ahead log."""
    if os.access(tmp_path, os.W_OK):
        tmp_path.chmod(0o555)
    with pytest.raises(StoreError, match=r"the directory .* cannot be written, and crawl\.db kee"):
        open_store(url)


@unix_only
@pytest.mark.parametrize(
    ("mode", "read_only", "said"),
    [(0o444, False, "cannot be written"), (0o000, True, "cannot be read")],
)
def test_file_without_permission(
    tmp_path: Path, url: str, mode: int, read_only: bool, said: str, request: pytest.FixtureRequest
) -> None:
    """The error names the file and the permission it needs."""
    tmp_path.chmod(0o777)
    (tmp_path / "crawl.db").chmod(mode)
    request.getfixturevalue("as_nobody")
    with pytest.raises(StoreError, match=rf"crawl\.db {said}; give this user"):
        open_store(url, read_only=read_only)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, that a test can mount read-only."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root on Linux")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def freeze(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def test_read_only_file_system(disk: Path) -> None:
    """There a store can be read, not written; the error says so before anything is tried."""
    url = f"sqlite:///{disk / 'crawl.db'}"
    open_store(url, create=True).close()
    open_store(url, read_only=True).close()
    assert (disk / "crawl.db-wal").stat().st_size == 0
    (disk / "crawl.db-shm").unlink()
    freeze(disk)
    with pytest.raises(StoreError, match=r"the directory .* cannot be written"):
        open_store(url)
    with open_store(url, read_only=True) as store:
        assert marks(store)["product"] == "scrapy_frontier"


def test_unfinished_store_on_a_read_only_file_system(disk: Path) -> None:
    """A copy with its log, but without a place for the readers' files, is refused, not misread."""
    url = f"sqlite:///{disk / 'crawl.db'}"
    with open_store(url, create=True):
        log = (disk / "crawl.db-wal").read_bytes()
        main = (disk / "crawl.db").read_bytes()
    (disk / "crawl.db").write_bytes(main)
    (disk / "crawl.db-wal").write_bytes(log)
    freeze(disk)
    with pytest.raises(StoreError, match="check that its directory exists and that this user may"):
        open_store(url, read_only=True)


# Closing


def test_close_empties_the_log_and_may_be_repeated(url: str, tmp_path: Path) -> None:
    """After the last close the file alone is the store."""
    store = open_store(url)
    with store.writer_connection().begin():
        store.writer_connection().execute(text("INSERT INTO meta VALUES ('a', 'b')"))
    store.close()
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["crawl.db"]


def test_open_transaction_is_undone_by_close(url: str) -> None:
    """What was not committed is not kept."""
    store = open_store(url)
    store.writer_connection().begin()
    store.writer_connection().execute(text("INSERT INTO meta VALUES ('half', 'done')"))
    store.close()
    with open_store(url) as store:
        assert "half" not in marks(store)
