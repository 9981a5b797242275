"""SQLite as the store's database: see `store.database` for the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine

from scrapy_frontier.store import schema, sqlite
from scrapy_frontier.store.bulk import SqliteCursor
from scrapy_frontier.store.database import Lock
from scrapy_frontier.store.location import SqliteLocation
from scrapy_frontier.store.locks import FileRunLock, StoreLock
from scrapy_frontier.store.sqlite import SqliteLibrary, ask, set_pragma

_EXAMPLES: Final = 100

_SURVEY: Final = """
SELECT (SELECT count(*) FROM sqlite_master),
       (SELECT count(*) FROM pragma_table_info('meta') WHERE name IN ('key', 'value'))
"""


class SqliteDatabase:
    """A file with one writer at a time, and readers beside it by the write-ahead log."""

    name = "sqlite"
    title = "an SQLite database"
    remedy = "name another file for the store"

    def writing_engine(self, location: SqliteLocation, synchronous: str, *, create: bool) -> Engine:
        """Transactions start with BEGIN IMMEDIATE."""
        return sqlite.writing_engine(location.uri(mode="rwc" if create else "rw"), synchronous)

    def reading_engine(self, location: SqliteLocation) -> Engine:
        """Connections are opened `mode=ro`; `immutable` where nobody can write."""
        frozen = {"immutable": "1"} if location.is_frozen else {}
        return sqlite.reading_engine(location.uri(mode="ro", **frozen))

    def library_of(self, connection: Connection) -> SqliteLibrary:
        """The SQLite really in use."""
        return sqlite.library_of(connection)

    def store_lock(self, location: SqliteLocation, library: SqliteLibrary) -> StoreLock:
        """A file beside the store."""
        return StoreLock(location.path, location.url, library)

    def run_lock(
        self, location: SqliteLocation, connection: Connection | Engine, run_id: int
    ) -> Lock:
        """A file beside the store; always free in memory."""
        return FileRunLock(location, run_id)

    def prepare(self, connection: Connection) -> None:
        """The write-ahead log."""
        sqlite.enter_wal(connection)

    def survey(self, connection: Connection) -> tuple[bool, bool]:
        """See `Database`."""
        ((objects, columns),) = ask(connection, _SURVEY)
        return not objects, columns == 2

    def marks(self, connection: Connection) -> dict[str, str]:
        """See `Database`."""
        return dict(ask(connection, "SELECT key, value FROM meta"))

    def data_version(self, connection: Connection) -> int:
        """SQLite's own: it changes when, and only when, another connection has written."""
        ((version,),) = ask(connection, "PRAGMA data_version")
        return int(version)

    def checkpoint(self, connection: Connection, mode: str) -> tuple[int, int, int]:
        """Whether it was held up (1 or 0), the frames in the log, and how many of them are copied."""
        (row,) = ask(connection, f"PRAGMA wal_checkpoint({mode})")
        held_up, frames, copied = row
        return held_up, frames, copied

    def durably(self, connection: Connection) -> AbstractContextManager[None]:
        """See `Database`."""
        return sqlite.flushing(connection.connection)

    @contextmanager
    def unlinked(self, connection: Connection) -> Iterator[None]:
        """Switch foreign keys off, which SQLite allows only outside a transaction.

        A table that is rebuilt is dropped on the way, and would take the rows that refer to it along
        (sqlite.org/lang_altertable.html, section 7).
        """
        set_pragma(connection.connection, "foreign_keys", 0)
        try:
            yield
        finally:
            set_pragma(connection.connection, "foreign_keys", 1)

    def dangling_references(self, connection: Connection) -> Sequence[tuple[Any, ...]]:
        """(table, row id, table referred to, number of the key)."""
        return ask(connection, "PRAGMA foreign_key_check")

    def damage(self, connection: Connection) -> tuple[list[str], bool]:
        """SQLite's check of the file, its CHECK constraints and foreign keys."""
        found = ask(connection, f"PRAGMA integrity_check({_EXAMPLES})")
        problems = [str(text) for (text,) in found if text != "ok"]
        is_readable = all("constraint" in problem for problem in problems)
        broken = [
            f"row {row} of table {table} refers to no row of table {parent}"
            for table, row, parent, _ in self.dangling_references(connection)
        ]
        return [f"integrity_check: {problem}" for problem in problems] + broken, is_readable

    def ledger_triggers(self, connection: Connection) -> set[str]:
        """See `Database`."""
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'transition'"
        return {name for (name,) in ask(connection, query)}

    @contextmanager
    def unguarded(self, connection: Connection) -> Iterator[None]:
        """The trigger is dropped and made again; nobody else sees the store without it."""
        (guard,) = (one for one in schema.GUARDS[self.name] if "BEFORE DELETE" in one)
        connection.exec_driver_sql("DROP TRIGGER transition_no_DELETE")
        yield
        connection.exec_driver_sql(guard)

    def compact(self, connection: Connection) -> None:
        """By VACUUM."""
        ask(connection, "VACUUM")

    def cursor(self, connection: Connection) -> SqliteCursor:
        """See `Database`."""
        return SqliteCursor(connection.connection.cursor())

    def stream(self, connection: Connection) -> SqliteCursor:
        """SQLite finds the rows of an answer as they are fetched."""
        return self.cursor(connection)

    def stopper(self, connection: Connection) -> Callable[[], None]:
        """See `Database`."""
        interrupt: Callable[[], None] = connection.connection.driver_connection.interrupt  # type: ignore[union-attr]
        return interrupt

    def size(self, connection: Connection) -> int:
        """Bytes of the file, without its write-ahead log."""
        ((path,),) = ask(connection, "SELECT file FROM pragma_database_list WHERE name = 'main'")
        return Path(path).stat().st_size if path else 0


SQLITE: Final = SqliteDatabase()
