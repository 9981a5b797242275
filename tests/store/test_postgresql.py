"""What is PostgreSQL's own: where a store may be, who may use it, and what the server says when it fails."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from apply_bench import NOW, Bench, reference
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from store_kinds import Databases

from scrapy_frontier.errors import RunLocked, StoreError
from scrapy_frontier.policy.leases import LeasePolicy
from scrapy_frontier.report.verify import verify
from scrapy_frontier.store import migrations, schema
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.location import locate, masked
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.messages import Expire, Reclaimed
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.postgresql import engines
from scrapy_frontier.store.postgresql.cursor import pyformat
from scrapy_frontier.store.postgresql.database import POSTGRESQL
from scrapy_frontier.store.postgresql.trouble import trouble_of

pytestmark = pytest.mark.postgresql


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """An empty store."""
    with open_store(databases.store_url(), create=True) as made:
        yield made


def with_(url: str, **changes: Any) -> str:
    """A URL with other parts."""
    return make_url(url).set(**changes).render_as_string(hide_password=False)


# Where it is, and who may use it


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"database": "no_such"}, "there is no such database; make it with createdb"),
        ({"username": "no_such"}, "refused the login; check user and password"),
        ({"query": {}, "host": "127.0.0.1", "port": 1}, "cannot be reached; check that it runs"),
        ({"query": {}, "host": "no.such.host.invalid"}, "cannot be reached; check that it runs"),
    ],
)
def test_a_server_that_cannot_be_used(
    databases: Databases, changes: dict[str, Any], said: str
) -> None:
    """The error names the store and the remedy, and not the password."""
    url = with_(databases.url_of("postgres"), password="p:zq/w", **changes)
    for arguments in ({"create": True}, {"read_only": True}):
        with pytest.raises(StoreError) as caught:
            open_store(url, **arguments)
        assert said in str(caught.value)
        assert "opening postgresql+psycopg://" in str(caught.value)
        assert "zq" not in str(caught.value)
        assert not caught.value.is_retryable


def test_a_password_is_never_shown(databases: Databases) -> None:
    """Not in the URL of a store, its repr, or what is made of it."""
    for url in (
        with_(databases.store_url(), password="p:zq@w/?x"),
        f"{databases.store_url()}&password=zq%20w",
    ):
        with open_store(url, create=True) as store:
            assert "***" in store.url
            for shown in (store.url, repr(store), repr(locate(url))):
                assert "zq" not in shown
    assert masked("postgresql://u:p:w@x@h/d?a=b&sslpassword=p") == (
        "postgresql://u:***@h/d?a=b&sslpassword=***"
    )


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "scrapy_frontier.store.postgresql.location.find_spec",
        lambda name: None if name == "psycopg" else find(name),
    )
    with pytest.raises(StoreError, match=r"pip install 'scrapy-frontier\[postgres\]'"):
        open_store("postgresql+psycopg://u@h/db")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_any_spelling_means_psycopg(scheme: str, databases: Databases) -> None:
    """The names that PostgreSQL's own tools take are taken too."""
    url = databases.store_url().replace("postgresql+psycopg", scheme)
    with open_store(url, create=True) as store:
        assert store.dialect_name == "postgresql"
        assert store.path is None


def test_another_encoding_is_refused(databases: Databases) -> None:
    """URLs and texts of any language must fit in."""
    databases.run(
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    try:
        with pytest.raises(StoreError, match=r"encoding LATIN1.*ENCODING 'UTF8'"):
            open_store(databases.url_of("latin"), create=True)
    finally:
        databases.run("DROP DATABASE latin WITH (FORCE)")


def test_an_old_server_is_refused() -> None:
    """With the version that is needed."""
    with pytest.raises(StoreError, match="PostgreSQL 14 is too old, 15 is needed"):
        engines.check_server(140011, "UTF8")


def test_rights_that_are_missing_are_named(databases: Databases) -> None:
    """Who may not make tables is told what to grant; who may read, reads."""
    url = databases.new_url()
    name = make_url(url).database
    databases.run(
        "CREATE ROLE guest LOGIN",
        "REVOKE CREATE ON SCHEMA public FROM public",
        database=name,
    )
    guest = with_(url, username="guest")
    try:
        with pytest.raises(StoreError, match="lacks a right; give it CONNECT"):
            open_store(guest, create=True)
        with open_store(url, create=True) as store:
            Bench(store).refer("a")
        with pytest.raises(StoreError, match="lacks a right"):
            open_store(guest, read_only=True)
        databases.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest", database=name)
        with open_store(guest, read_only=True) as store:
            assert verify(store).is_sound
    finally:
        databases.run("DROP OWNED BY guest", "DROP ROLE guest", database=name)


def test_an_ordinary_role_is_enough(databases: Databases) -> None:
    """Who may make tables in the schema makes the store, owns it, and works on it."""
    url = databases.new_url()
    name = make_url(url).database
    databases.run("CREATE ROLE owner LOGIN", "CREATE SCHEMA AUTHORIZATION owner", database=name)
    try:
        with open_store(with_(url, username="owner"), create=True) as store:
            bench = Bench(store)
            with RunLock(store, bench.run.run_id):
                bench.finish(bench.fetch("a")[0])
            bench.assert_sound()
    finally:
        databases.run("DROP OWNED BY owner", "DROP ROLE owner", database=name)


def test_two_stores_in_two_schemas_of_one_database(databases: Databases) -> None:
    """Each has its own tables, ids and locks; the search path of the URL chooses."""
    url = databases.new_url()
    databases.run("CREATE SCHEMA a", "CREATE SCHEMA b", database=make_url(url).database)
    one, two = (f"{url}&options=-csearch_path%3D{name}" for name in "ab")
    with open_store(one, create=True) as a, open_store(two, create=True) as b:
        with RunLock(a, 1), RunLock(b, 1), a.writer_connection().begin():
            Bench(b).refer("b")  # does not wait for the transaction of the other
        Bench(a).refer("a")
        for store in (a, b):
            assert verify(store).identities == 1
    with pytest.raises(StoreError, match="no schema of the connection's search_path exists"):
        open_store(f"{url}&options=-csearch_path%3Dno_such", create=True)


# What is lost


def end_sessions(databases: Databases, store: Store) -> None:
    """What an administrator or a restart of the server does."""
    name = make_url(store.url).database
    databases.run(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )


def test_a_lost_connection_is_not_replaced(databases: Databases, store: Store) -> None:
    """The run's lock went with it: another process may have taken the run, so this one writes no more."""
    bench = Bench(store)
    bench.refer("a")
    lock = RunLock(store, bench.run.run_id)
    lock.acquire()
    end_sessions(databases, store)
    with pytest.raises(StoreError, match="the connection to the server is lost") as caught:
        bench.refer("b")
    assert not caught.value.is_retryable
    for _ in range(2):
        with pytest.raises(StoreError, match=r"lost, and the run's lock with it|is lost"):
            bench.refer("c")
    lock.release()
    with open_store(databases.url_of(str(make_url(store.url).database))) as again:
        with RunLock(again, bench.run.run_id):
            other = Bench(again, bench.run)
            other.refer("d")
        other.assert_sound()
        assert other.account.identities.discovered == 2


def test_readers_connect_again(databases: Databases, store: Store) -> None:
    """A reader holds nothing: after the first error it finds the server again."""
    bench = Bench(store)
    bench.refer("a")
    assert bench.rows("SELECT count(*) FROM current") == [(1,)]
    end_sessions(databases, store)
    with suppress(StoreError):
        bench.rows("SELECT 1")
    assert bench.rows("SELECT count(*) FROM current") == [(1,)]


def test_a_lock_is_lost_with_its_store(databases: Databases) -> None:
    """A store that is closed holds no run."""
    url = databases.store_url()
    with open_store(url, create=True) as one, open_store(url) as two:
        lock = RunLock(one, 3)
        lock.acquire()
        with pytest.raises(RunLocked, match=r"session \d+ of the server"):
            RunLock(two, 3).acquire()
        one.close()
        with RunLock(two, 3):
            pass
        lock.release()


# What the server says


class Said(Exception):
    """As psycopg raises it."""

    def __init__(self, sqlstate: str | None, message: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("code", "words", "is_retryable"),
    [
        ("40001", "can be tried again", True),
        ("40P01", "can be tried again", True),
        ("55P03", "another process holds", True),
        ("57014", "cancelled", True),
        ("57P03", "starting or stopping", True),
        ("57P01", "connection to the server is lost", False),
        ("08006", "connection to the server is lost", False),
        ("25P03", "connection to the server is lost", False),
        ("53100", "disk is full", False),
        ("53200", "out of a resource", False),
        ("53300", "no more connections", False),
        ("42501", "lacks a right", False),
        ("25006", "only reads", False),
        ("28P01", "refused the login", False),
        ("3D000", "no such database", False),
        ("23514", "contradict the schema", False),
        ("23001", "contradict the schema", False),
        ("58030", "could not read or write its files", False),
        ("XX001", "files are damaged", False),
        ("42P01", "the database refused", False),
    ],
)
def test_every_failure_has_its_remedy(code: str, words: str, is_retryable: bool) -> None:
    """By the SQLSTATE; only what passes by itself is tried again."""
    trouble = trouble_of(Said(code))
    assert words in trouble.advice
    assert trouble.is_retryable is is_retryable


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('connection failed: FATAL:  password authentication failed for user "u"', "login"),
        ('connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.1"', "login"),
        ('connection failed: FATAL:  database "x" does not exist', "no such database"),
        ("connection failed: FATAL:  sorry, too many clients already", "no more connections"),
        ("connection failed: FATAL:  the database system is starting up", "starting"),
        ("connection failed: Connection refused", "cannot be reached"),
        ("connection timeout expired", "cannot be reached"),
        ("consuming input failed: server closed the connection unexpectedly", "is lost"),
        ("the connection is closed", "is lost"),
    ],
)
def test_a_connection_that_fails_has_no_code(message: str, words: str) -> None:
    """Then the message tells."""
    assert words in trouble_of(Said(None, message)).advice


# Statements and schema


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT ? + ?", "SELECT %s + %s"),
        ("SELECT a % 16 FROM t", "SELECT a %% 16 FROM t"),
        ("a LIKE 'x?%' AND b = ?", "a LIKE 'x?%%' AND b = %s"),
        ("SELECT 'it''s ?', \"odd?\" FROM t", "SELECT 'it''s ?', \"odd?\" FROM t"),
    ],
)
def test_one_style_of_parameters(statement: str, expected: str) -> None:
    """`?` on every database; what stands in quotes is left alone."""
    assert pyformat(statement) == expected


def objects(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Columns, constraints, indexes, triggers, functions and sequences of the schema."""
    queries = {
        "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default"
        " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
        "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
        " FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
        " AND contype <> 'n' ORDER BY 1, 2",
        "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
        "functions": "SELECT proname, prosrc FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace ORDER BY 1",
        "sequences": "SELECT sequencename FROM pg_sequences ORDER BY 1",
    }
    return {
        kind: [tuple(row) for row in connection.execute(text(query))]
        for kind, query in queries.items()
    }


def test_sum_of_migrations_is_the_schema(databases: Databases) -> None:
    """A store migrated from nothing and a new one have the same tables, checks and triggers."""
    engine = POSTGRESQL.writing_engine(locate(databases.new_url()), "FULL", create=True)
    with engine.connect() as connection, connection.begin():
        migrations.upgrade(connection, None)
        migrated = objects(connection)
    engine.dispose()
    with open_store(databases.new_url(), create=True) as store, store.reader() as reader:
        created = objects(reader)
    assert migrated == created
    assert len(created["triggers"]) >= 3
    assert len(created["constraints"]) > 20


def test_a_migration_that_fails_leaves_nothing(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DDL is undone with its transaction, and the store stays what it was."""
    url = databases.new_url()
    open_store(url, create=True).close()

    def upgrade(connection: Connection, _found: str | None) -> None:
        connection.exec_driver_sql("CREATE TABLE novelty (x integer)")
        connection.exec_driver_sql("SELECT * FROM no_such_table")

    monkeypatch.setattr(schema, "SCHEMA_VERSION", "9999")
    monkeypatch.setattr(migrations, "upgrade", upgrade)
    with pytest.raises(StoreError, match="no_such_table"):
        open_store(url)
    monkeypatch.undo()
    with open_store(url) as store, store.reader() as reader:
        assert reader.scalar(text("SELECT to_regclass('novelty')")) is None


def test_the_ledger_cannot_be_truncated(store: Store) -> None:
    """Nor by the one statement that SQLite does not have (invariant 10)."""
    Bench(store).refer("a")
    connection = store.writer_connection()
    with pytest.raises(Exception, match="append-only"), connection.begin():
        connection.exec_driver_sql("TRUNCATE transition")


@pytest.mark.parametrize(("synchronous", "expected"), [("FULL", "on"), ("NORMAL", "off")])
def test_durability_is_chosen(databases: Databases, synchronous: str, expected: str) -> None:
    """FRONTIER_SYNCHRONOUS is the server's synchronous_commit."""
    with open_store(databases.store_url(), create=True, synchronous=synchronous) as store:
        ((found,),) = engines.ask(store.writer_connection(), "SHOW synchronous_commit")
        assert found == expected


@pytest.mark.parametrize("wrong_by_ms", [-(10**12), 10**12])
def test_leases_expire_by_the_clock_of_the_server(store: Store, wrong_by_ms: int) -> None:
    """Which is one for all: a worker whose own clock is wrong takes no lease too early, and none too late."""
    bench = Bench(store)
    run = bench.run
    bench.applier = Applier(run.run_id, run.context_id, run.session_id, LeasePolicy(1.0, 3))
    bench.load()
    lease = bench.dispatch(bench.refer("a").identity_id)
    taken: list[Reclaimed] = []
    bench.apply(Expire(NOW + wrong_by_ms, taken.extend))
    assert taken == []
    time.sleep(1.05)
    bench.apply(Expire(NOW + wrong_by_ms, taken.extend))
    assert [one.generation for one in taken] == [lease.generation]
    bench.assert_sound()


def test_a_writer_leaves_no_transaction_open(store: Store) -> None:
    """Between two transactions the session is idle: it hinders no vacuum, and holds no lock but the run's."""
    bench = Bench(store)
    bench.apply(*[reference(str(number)) for number in range(100)])
    lock = RunLock(store, 1)
    with lock:
        raw: Any = store.writer_connection().connection.driver_connection
        assert raw.info.transaction_status.name == "IDLE"
        store.data_version()
        assert raw.info.transaction_status.name == "IDLE"
