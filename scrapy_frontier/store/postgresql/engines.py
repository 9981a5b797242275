"""Connections to PostgreSQL, set up the way the ledger needs them.

The writing connection takes an advisory lock at the start of each transaction and so writes alone: ids are the highest
plus one, and no transaction commits before one with lower ids. It is one connection for the life of the store, for the
lock of the run is held by it: once lost, it is not replaced, because another process may have taken the run meanwhile.
"""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from scrapy_frontier.errors import StoreError
from scrapy_frontier.store.guards import WRITES_SEQUENCE

if TYPE_CHECKING:
    from scrapy_frontier.store.postgresql.location import PostgresqlLocation

BUSY_TIMEOUT_S: Final = 5
"""How long a statement waits for a lock before it fails as busy."""

CONNECT_TIMEOUT_S: Final = 10

OLDEST: Final = 15
"""The first version of the server that the tests run on."""

SYNCHRONOUS: Final = {"NORMAL": "off", "FULL": "on"}
"""`synchronous_commit` by the setting: FULL survives a power cut; with NORMAL the last commits may be missing."""

_WRITER: Final = 0
"""The second half of the writers' lock; a run's is its id, from 1 on."""

_ALIVE: Final = (
    # A host that vanished must not hold a run for hours.
    ("tcp_keepalives_idle", "30"),
    ("tcp_keepalives_interval", "10"),
    ("tcp_keepalives_count", "3"),
)
_COMMON: Final = (("client_encoding", "UTF8"), ("TimeZone", "UTC"), *_ALIVE)


@dataclass
class Writing:
    """What is kept beside the writing connection: the class of its locks, and how often anyone has written."""

    lock_class: int
    writes: int = 0
    own: int = 0


def writing_engine(location: PostgresqlLocation, synchronous: str) -> Engine:
    """An engine that connects once; each transaction excludes other writers of the store."""
    engine = create_engine(location.target, poolclass=NullPool, isolation_level="READ COMMITTED")
    settings = (
        *_COMMON,
        ("lock_timeout", f"{BUSY_TIMEOUT_S}s"),
        ("synchronous_commit", SYNCHRONOUS[synchronous]),
        # A process that is stopped in a transaction must not stop all others.
        ("idle_in_transaction_session_timeout", "60s"),
    )
    is_connected = False

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, _args: object, options: Any) -> None:
        nonlocal is_connected
        if is_connected:
            raise StoreError(
                f"the connection to {location.url} was lost, and the run's lock with it; start the "
                "run again: what was committed stays"
            )
        _name(options)

    @event.listens_for(engine, "connect")
    def _set_up(raw: Any, record: Any) -> None:
        nonlocal is_connected
        _prepare(raw, settings)
        record.info["writing"] = Writing(lock_class(raw))
        is_connected = True

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        _exclude_others(connection.connection.driver_connection, connection.info["writing"])

    return engine


def reading_engine(location: PostgresqlLocation) -> Engine:
    """An engine for short snapshots; its transactions are read-only and see one moment."""
    engine = create_engine(location.target, poolclass=QueuePool, isolation_level="REPEATABLE READ")

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, _args: object, options: Any) -> None:
        _name(options)

    @event.listens_for(engine, "connect")
    def _set_up(raw: Any, _record: object) -> None:
        _prepare(raw, (*_COMMON, ("default_transaction_read_only", "on")))

    return engine


def _name(options: dict[str, Any]) -> None:
    """Say who connects, for whoever looks at the server's sessions, and do not wait for ever."""
    options.setdefault("application_name", f"scrapy_frontier {os.getpid()} {socket.gethostname()}")
    options.setdefault("connect_timeout", CONNECT_TIMEOUT_S)


def _prepare(raw: Any, settings: tuple[tuple[str, str], ...]) -> None:
    from scrapy_frontier.store.postgresql.values import register

    register(raw)
    check_server(raw.info.server_version, raw.info.parameter_status("server_encoding"))
    values = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    raw.execute(f"SELECT {values}", [part for setting in settings for part in setting])
    raw.commit()


def check_server(version: int, encoding: str | None) -> None:
    """Raise a `StoreError` for a server that the store cannot live on. `version` is 150003 for 15.3."""
    if version < OLDEST * 10_000:
        raise StoreError(
            f"PostgreSQL {version // 10_000} is too old, {OLDEST} is needed; use a newer server"
        )
    if encoding != "UTF8":
        raise StoreError(
            f"the database has the encoding {encoding}, and URLs and texts of any language need "
            "UTF8; make one by CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )


def lock_class(raw: Any) -> int:
    """The first half of the store's advisory locks: two stores may live in two schemas of one database."""
    (schema,) = raw.execute("SELECT current_schema()").fetchone()
    if schema is None:
        raise StoreError(
            "no schema of the connection's search_path exists; make it by CREATE SCHEMA, or correct "
            "the search_path of the role or of the store's URL"
        )
    number = zlib.crc32(f"scrapy_frontier {schema}".encode())
    raw.commit()
    return number - 2**32 if number >= 2**31 else number


def _exclude_others(raw: Any, writing: Writing) -> None:
    """Wait for the other writers of the store, and learn whether any has written since the last time.

    Two statements in one step. The lock is given back by the server at the end of the transaction, after what was
    committed can be seen. The sequence counts the transactions of all writers; it is not there in a new database.
    """
    try:
        cursor = raw.execute(
            f"SELECT pg_advisory_xact_lock({writing.lock_class}, {_WRITER});"
            f" SELECT nextval(to_regclass('{WRITES_SEQUENCE}'))",
            prepare=False,
        )
        cursor.nextset()
        writing.writes = cursor.fetchone()[0] or 0
        writing.own += 1
    except BaseException:
        raw.rollback()
        raise


@contextmanager
def flushing(connection: Connection) -> Iterator[None]:
    """Commits of this block are flushed to the disk before they return, whatever the engine was made with."""
    ((before,),) = ask(connection, "SHOW synchronous_commit")
    _set_commits(connection, SYNCHRONOUS["FULL"])
    try:
        yield
    finally:
        _set_commits(connection, before)


def _set_commits(connection: Connection, value: str) -> None:
    raw: Any = connection.connection.driver_connection
    raw.execute("SELECT set_config('synchronous_commit', %s, false)", (value,))
    raw.commit()


def ask(connection: Connection, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """The rows of a statement, past SQLAlchemy's own execution; outside a transaction it leaves none open."""
    raw: Any = connection.connection.driver_connection
    # TransactionStatus.IDLE; psycopg begins a transaction with any statement.
    was_idle = raw.info.transaction_status == 0
    try:
        cursor = raw.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []
    finally:
        if was_idle and not raw.closed:
            raw.rollback()
