"""The promises of `store.database`, on each kind of database; most tests beside this one are made on each, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apply_bench import Bench, needs_two_writers, reference
from report_ledger import Ledger, account_of, crawl
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from store_kinds import Stores

from scrapy_frontier.errors import RunLocked, SchemaMismatch, StoreError
from scrapy_frontier.report.verify import verify
from scrapy_frontier.store import locks, schema
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.messages import Tally
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.rows import stream_of
from scrapy_frontier.store.standing import EmptyStore

CHILD = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.opening import open_store
url, action = sys.argv[1:3]
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.readline()
with open_store(url, create=True) as store:
    if action == "write":
        from apply_bench import Bench, reference
        bench = Bench(store)
        for number in range(15):
            bench.apply(*[reference(f"{os.getpid()}/{number}/{n}") for n in range(20)])
    elif action == "hold":
        lock = RunLock(store, 7)
        lock.acquire()
        sys.stdout.write("held\\n"); sys.stdout.flush()
        sys.stdin.readline()
    elif action == "die":
        store.writer_connection().begin()
        store.writer_connection().exec_driver_sql("INSERT INTO meta VALUES ('half', 'done')")
        os.kill(os.getpid(), signal.SIGKILL)
"""


@contextmanager
def child(url: str, action: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that opens the store and does something, once it is told to go on."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, action, str(Path(__file__).parent)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def go_on(*processes: subprocess.Popen[bytes]) -> None:
    """Let processes go on, all at once, when each of them has come so far."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()


# Made, opened, refused


def test_a_new_store_is_marked_and_opens_again(stores: Stores) -> None:
    """It says what it is and which schema it has, and is empty of runs."""
    url = stores.new_url()
    with open_store(url, create=True) as store, store.reader() as reader:
        marks = dict(reader.execute(text("SELECT key, value FROM meta")).all())
        assert (marks["product"], marks["schema"]) == (schema.PRODUCT, schema.SCHEMA_VERSION)
    with open_store(url, read_only=True) as store, store.reader() as reader:
        assert reader.scalar(text("SELECT count(*) FROM run")) == 0
    with open_store(url) as store:
        assert verify(store).is_sound


def test_a_place_without_a_store_is_left_alone(stores: Stores) -> None:
    """Only who says `create` makes a store."""
    url = stores.new_url()
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"start one|start a crawl"):
            open_store(url, read_only=read_only)
    if stores.kind == "postgresql":
        with pytest.raises(EmptyStore):
            open_store(url)


def test_a_database_of_something_else_is_refused(stores: Stores) -> None:
    """Nothing is changed in it, and the error says what to do."""
    url = stores.new_url()
    with open_store(url, create=True) as store, store.writer_connection().begin():
        store.writer_connection().exec_driver_sql("DELETE FROM meta WHERE key = 'product'")
    for arguments in ({"create": True}, {"read_only": True}):
        with pytest.raises(SchemaMismatch, match="database of something else; nothing was changed"):
            open_store(url, **arguments)


def test_a_newer_store_is_refused(stores: Stores) -> None:
    """By its schema, and by the name of the version that wrote it."""
    url = stores.new_url()
    with open_store(url, create=True) as store, store.writer_connection().begin():
        store.writer_connection().exec_driver_sql(
            "UPDATE meta SET value = '9999' WHERE key = 'schema'"
        )
    with pytest.raises(SchemaMismatch, match="has the schema 9999, given by scrapy_frontier"):
        open_store(url)


@needs_two_writers
def test_processes_may_make_one_store_at_once(stores: Stores) -> None:
    """One makes it, the others find it made."""
    url = stores.new_url()
    with child(url, "open") as one, child(url, "open") as two, child(url, "open") as three:
        go_on(one, two, three)
        assert [process.wait(60) for process in (one, two, three)] == [0, 0, 0]
    with open_store(url, read_only=True) as store:
        assert verify(store).is_sound


# Transactions


def test_a_transaction_of_a_killed_process_never_was(store_url: str) -> None:
    """Nothing of it is seen, and nobody waits for its lock."""
    with child(store_url, "die") as process:
        go_on(process)
        assert process.wait(60) == -signal.SIGKILL
    with open_store(store_url, create=True) as store:
        Bench(store).refer("a")
        with store.reader() as reader:
            assert reader.scalar(text("SELECT count(*) FROM meta WHERE key = 'half'")) == 0


def test_a_reader_sees_one_moment(store_url: str) -> None:
    """From its first statement to the end of the block, whatever is committed meanwhile."""
    with open_store(store_url, create=True) as store:
        bench = Bench(store)
        bench.refer("a")
        with store.reader() as reader:
            before = reader.scalar(text("SELECT count(*) FROM current"))
            bench.refer("b")
            assert reader.scalar(text("SELECT count(*) FROM transition")) == 3 * before
        assert bench.rows("SELECT count(*) FROM current") == [(2,)]


@pytest.mark.parametrize("statement", ["DELETE FROM current", "UPDATE run SET name = 'x'"])
def test_a_reader_cannot_write(store_url: str, statement: str) -> None:
    """The database refuses, not only the package."""
    with (
        open_store(store_url, create=True) as store,
        pytest.raises(StoreError, match=r"cannot be written|only reads"),
        store.reader() as reader,
    ):
        reader.execute(text(statement))


@pytest.mark.parametrize(
    "statement", ["UPDATE transition SET at_ms = 0 WHERE seq = 1", "DELETE FROM transition"]
)
def test_the_ledger_can_only_grow(stores: Stores, statement: str) -> None:
    """No statement changes or deletes a transition (invariant 10)."""
    bench = Bench(stores.open())
    bench.refer("a")
    connection = bench.store.writer_connection()
    with pytest.raises(DBAPIError, match="the ledger is append-only"), connection.begin():
        connection.exec_driver_sql(statement)
    bench.assert_sound()


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE current SET state = 77", "current_state"),
        ("UPDATE current SET state = 6", "current_disposition"),
        ("INSERT INTO transition VALUES (99, 1, 3, 0, 7, 18, 0, 0, 1, 0, NULL, NULL)", "legal"),
        ("UPDATE run SET state = 'odd'", "run_state"),
    ],
)
def test_the_database_knows_the_rules(stores: Stores, statement: str, constraint: str) -> None:
    """What the schema forbids is not written, whoever writes."""
    bench = Bench(stores.open())
    bench.refer("a")
    connection = bench.store.writer_connection()
    with pytest.raises(DBAPIError, match=constraint), connection.begin():
        connection.exec_driver_sql(statement)
    bench.assert_sound()


def test_any_text_is_kept(stores: Stores) -> None:
    """Quotes, signs that mean something in SQL or in a driver, other scripts; and NUL is told, if not kept."""
    bench = Bench(stores.open())
    odd = ["it's", 'a"b', "100%s ?", "{x}", "日本語", "\N{SNOWMAN}\U0001f600", "a\\b\tc\nd", "e\0f"]
    for number, name in enumerate(odd):
        bench.apply(Tally("odd", name, number + 1, example=name))
    found = dict(bench.rows("SELECT name, example FROM tally"))
    expected = [name.replace("\0", "\N{SYMBOL FOR NULL}") for name in odd]
    if stores.kind == "sqlite":
        expected = odd
    assert found == {name: name for name in expected}


@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 64, 65, 1000])
def test_rows_in_bulk_are_those_one_by_one(stores: Stores, count: int) -> None:
    """However many come at once, each is written once, with all its values."""
    bench = Bench(stores.open())
    bench.apply(
        *[reference(str(n), record=None if n % 3 else f'{{"n": {n}}}') for n in range(count)]
    )
    rows = bench.rows("SELECT url, record FROM identity ORDER BY identity_id")
    assert rows == [
        (f"http://a.example/{n}", None if n % 3 else f'{{"n": {n}}}') for n in range(count)
    ]
    bench.assert_sound()


def test_a_long_answer_comes_in_parts(stores: Stores) -> None:
    """It is complete and in order."""
    bench = Bench(stores.open())
    bench.apply(*[reference(str(number)) for number in range(500)])
    with bench.store.reader() as connection:
        cursor = stream_of(connection)
        cursor.execute("SELECT identity_id FROM current WHERE state = ? ORDER BY 1", (3,))
        parts = list(iter(lambda: list(cursor.fetchmany(64)), []))
        cursor.close()
    assert len(parts) == 8
    assert [row[0] for part in parts for row in part] == list(range(1, 501))


# Several processes


@needs_two_writers
def test_many_runs_may_write_to_one_store(store_url: str) -> None:
    """Three processes, a run each: no id is given twice, and each account adds up."""
    with (
        open_store(store_url, create=True),
        child(store_url, "write") as a,
        child(store_url, "write") as b,
        child(store_url, "write") as c,
    ):
        go_on(a, b, c)
        assert [process.wait(120) for process in (a, b, c)] == [0, 0, 0]
    with open_store(store_url, read_only=True) as store:
        found = verify(store)
        assert found.findings == ()
        assert found.identities == 3 * 15 * 20
        with store.reader() as reader:
            counts = reader.execute(text("SELECT run_id, count(*) FROM identity GROUP BY 1")).all()
            assert sorted(count for _, count in counts) == [300] * 3
            assert reader.scalar(text("SELECT max(seq) FROM transition")) == found.transitions


@needs_two_writers
def test_commits_come_in_the_order_of_ids(store_url: str) -> None:
    """Who has seen a transition has seen all with a lower seq: the ledger of a store can be read on by seq."""
    with (
        open_store(store_url, create=True) as store,
        child(store_url, "write") as a,
        child(store_url, "write") as b,
    ):
        go_on(a, b)
        while a.poll() is None or b.poll() is None:
            with store.reader() as reader:
                highest, count = reader.execute(
                    text("SELECT coalesce(max(seq), 0), count(*) FROM transition")
                ).one()
                assert highest == count
        assert count > 0


def test_a_run_has_one_process_until_that_is_dead(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names the holder and what to do; kill -9 of the holder frees the run at once."""
    monkeypatch.setattr(locks, "PATIENCE_S", 0.2)
    with open_store(store_url, create=True) as store:
        lock = RunLock(store, 7)
        assert lock.is_held() is False
        with child(store_url, "hold") as process:
            go_on(process)
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            assert lock.is_held() is True
            with pytest.raises(
                RunLocked, match=f"run 7 of .* {process.pid} .*another FRONTIER_RUN"
            ):
                lock.acquire()
            with RunLock(store, 8), open_store(store_url, read_only=True) as reading:
                assert RunLock(reading, 7).is_held() is True
            process.kill()
            process.wait()
        with lock:
            assert lock.is_held() is True
        with lock, pytest.raises(RunLocked):
            RunLock(store, 7).acquire()


# The same on both


def test_both_kinds_tell_the_same_of_one_crawl(stores: Stores) -> None:
    """The account of a crawl, to the last number and in the same order, does not depend on the database."""
    ledger, other = Ledger(stores.new_url()), Ledger()
    with ledger.store, other.store:
        for made in (ledger, other):
            crawl(made)
            made.close()
            made.begin("second")
            crawl(made)
        one, two = account_of(ledger).to_json(), account_of(other).to_json()
        assert one == two
        assert list(one) == list(two)
        assert verify(ledger.store) == verify(other.store)
