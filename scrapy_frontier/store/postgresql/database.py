"""The contract of `store.database`, kept by PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import CheckConstraint, Connection, Engine, ForeignKey, Table

from scrapy_frontier.store import schema
from scrapy_frontier.store.postgresql import engines
from scrapy_frontier.store.postgresql.cursor import PostgresqlCursor
from scrapy_frontier.store.postgresql.engines import ask
from scrapy_frontier.store.postgresql.location import PostgresqlLocation
from scrapy_frontier.store.postgresql.locks import SessionRunLock

_EXAMPLES: Final = 100

_CANCEL_TIMEOUT_S: Final = 5

_STREAMS: Final = itertools.count(1)

_TABLES: Final = """
SELECT c.relname FROM pg_class AS c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
AND NOT EXISTS (SELECT 1 FROM pg_depend AS d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
"""

_META: Final = """
SELECT count(*) FROM pg_attribute
WHERE attrelid = to_regclass(format('%I.meta', current_schema())) AND attname IN ('key', 'value')
"""

_TRIGGERS: Final = """
SELECT tgname FROM pg_trigger
WHERE tgrelid = to_regclass(format('%I.transition', current_schema()))
AND NOT tgisinternal AND tgenabled IN ('O', 'A')
"""

_SIZE: Final = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""


@dataclass(frozen=True)
class PostgresqlServer:
    """The server, as it names itself."""

    version: str
    number: int

    @property
    def name(self) -> str:
        """Its name in one word."""
        return "postgresql"

    @property
    def has_wal_reset_fault(self) -> bool:
        """A fault of SQLite."""
        return False

    def advice(self) -> str | None:
        """Nothing is known against it."""
        return None

    def check_age(self) -> None:
        """Raise a `StoreError` if it is too old."""
        engines.check_server(self.number, "UTF8")

    def __str__(self) -> str:
        return f"PostgreSQL {self.version}"


@dataclass(frozen=True)
class NoLock:
    """Any number of processes may write to a store on a server."""

    def acquire(self) -> None:
        """Nothing to take."""

    def release(self) -> None:
        """Nothing to give back."""

    def holder(self) -> str:
        """Nobody."""
        return "nobody"

    def is_held(self) -> bool | None:
        """Never."""
        return False


class PostgresqlDatabase:
    """A server with any number of writers, which take turns."""

    name = "postgresql"
    title = "a PostgreSQL database"
    remedy = "give the store a database, or a schema first in the search_path, of its own"

    def writing_engine(
        self, location: PostgresqlLocation, synchronous: str, *, create: bool
    ) -> Engine:
        """Transactions start with an advisory lock. Databases are never made."""
        return engines.writing_engine(location, synchronous)

    def reading_engine(self, location: PostgresqlLocation) -> Engine:
        """Transactions are REPEATABLE READ, READ ONLY."""
        return engines.reading_engine(location)

    def library_of(self, connection: Connection) -> PostgresqlServer:
        """The server at the other end."""
        info: Any = connection.connection.driver_connection
        return PostgresqlServer(
            info.info.parameter_status("server_version").split()[0], info.info.server_version
        )

    def store_lock(self, location: PostgresqlLocation, library: PostgresqlServer) -> NoLock:
        """None: writers take turns by transaction."""
        return NoLock()

    def run_lock(
        self, location: PostgresqlLocation, connection: Connection | Engine, run_id: int
    ) -> SessionRunLock:
        """An advisory lock of the writing session."""
        return SessionRunLock(location, connection, run_id)

    def prepare(self, connection: Connection) -> None:
        """A server is set up by its administrator."""

    def survey(self, connection: Connection) -> tuple[bool, bool]:
        """Of the schema in force. What belongs to an extension is none of ours and does no harm."""
        tables = ask(connection, _TABLES)
        ((columns,),) = ask(connection, _META)
        return not tables, columns == 2

    def marks(self, connection: Connection) -> dict[str, str]:
        """See `Database`."""
        return dict(ask(connection, "SELECT key, value FROM meta"))

    def data_version(self, connection: Connection) -> int:
        """Transactions of all writers less those of this connection."""
        writing: engines.Writing = connection.info["writing"]
        return writing.writes - writing.own

    def checkpoint(self, connection: Connection, mode: str) -> tuple[int, int, int]:
        """The server makes its own."""
        return 0, -1, -1

    def durably(self, connection: Connection) -> AbstractContextManager[None]:
        """See `Database`. The server flushes its log up to the commit, and so all that lies before."""
        return engines.flushing(connection)

    @contextmanager
    def unlinked(self, connection: Connection) -> Iterator[None]:
        """Tables are altered where they stand."""
        yield

    def dangling_references(self, connection: Connection) -> Sequence[tuple[Any, ...]]:
        """(table, key, table referred to): a superuser can write past a foreign key, and a dump can be restored so."""
        return [
            (table.name, key, foreign.column.table.name)
            for table in schema.metadata.sorted_tables
            for foreign in table.foreign_keys
            for (key,) in ask(connection, _dangling(table, foreign))
        ]

    def damage(self, connection: Connection) -> tuple[list[str], bool]:
        """Rows that contradict the schema. The server's files are checked by `pg_amcheck`, not by its users."""
        broken = [
            f"row {row} of table {table} refers to no row of table {parent}"
            for table, row, parent in self.dangling_references(connection)
        ]
        forbidden = [
            f"CHECK constraint failed in {table.name}: {check.name}, by {count} rows"
            for table in schema.metadata.sorted_tables
            for check in table.constraints
            if isinstance(check, CheckConstraint)
            for (count,) in ask(connection, _violations(table, check))
            if count
        ]
        return forbidden + broken, True

    def ledger_triggers(self, connection: Connection) -> set[str]:
        """See `Database`."""
        return {name for (name,) in ask(connection, _TRIGGERS)}

    @contextmanager
    def unguarded(self, connection: Connection) -> Iterator[None]:
        """The trigger is out of force; nobody else sees the store without it."""
        switch = 'ALTER TABLE transition {} TRIGGER "transition_no_DELETE"'
        connection.exec_driver_sql(switch.format("DISABLE"))
        yield
        connection.exec_driver_sql(switch.format("ENABLE"))

    def compact(self, connection: Connection) -> None:
        """Autovacuum does it."""

    def cursor(self, connection: Connection) -> PostgresqlCursor:
        """See `Database`."""
        return PostgresqlCursor(connection.connection.cursor())

    def stream(self, connection: Connection) -> PostgresqlCursor:
        """A cursor of the server."""
        raw: Any = connection.connection.driver_connection
        return PostgresqlCursor(raw.cursor(name=f"frontier_{next(_STREAMS)}"))

    def stopper(self, connection: Connection) -> Callable[[], None]:
        """By the server's own way to cancel a query, over a connection of its own."""
        raw: Any = connection.connection.driver_connection

        def stop() -> None:
            from psycopg import Error

            # A statement that has ended meanwhile, or a server that has gone: nothing is left to end.
            with suppress(Error):
                raw.cancel_safe(timeout=_CANCEL_TIMEOUT_S)

        return stop

    def size(self, connection: Connection) -> int:
        """Bytes of the store's tables and indexes."""
        ((size,),) = ask(connection, _SIZE)
        return int(size)


def _dangling(table: Table, foreign: ForeignKey) -> str:
    (key,) = table.primary_key.columns
    child, parent = foreign.parent.name, foreign.column
    return (
        f'SELECT "{key.name}" FROM "{table.name}" AS child WHERE child."{child}" IS NOT NULL AND NOT EXISTS'
        f' (SELECT 1 FROM "{parent.table.name}" AS parent WHERE parent."{parent.name}" = child."{child}")'
        f" LIMIT {_EXAMPLES}"
    )


def _violations(table: Table, check: CheckConstraint) -> str:
    return f'SELECT count(*) FROM "{table.name}" WHERE NOT ({check.sqltext})'


POSTGRESQL: Final = PostgresqlDatabase()
