"""Many rows in one step of the database: the contract of a cursor, and how SQLite keeps it.

A statement with many rows is one call into SQLite, which runs without Python's interpreter lock; a statement a row
would hand the lock back and forth with the event loop. Row counts come from a fixed ladder so that statements are
prepared once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

from sqlalchemy import Table

from scrapy_frontier.store import schema

LADDER: Final = (64, 16, 4, 1)

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """An UPDATE of many rows of a table, each found by its key.

    A row to write holds the value of `key`, then those of `columns`. `where`: a condition that a row must meet too, in
    which `v` is the row to write.
    """

    table: str
    key: str
    columns: tuple[str, ...]
    where: str = ""

    @property
    def head(self) -> str:
        """The statement up to FROM."""
        moved = ", ".join(f'"{name}" = v."{name}"' for name in self.columns)
        return f'UPDATE "{self.table}" SET {moved}'

    @property
    def tail(self) -> str:
        """The statement from WHERE on."""
        return f'WHERE "{self.table}"."{self.key}" = v."{self.key}"{self.where and f" AND {self.where}"}'


class Cursor(Protocol):
    """The part of PEP 249 used here, with `?` for each parameter on every database, and rows in bulk."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: str, parameters: Any = ..., /) -> Any: ...

    def fetchall(self) -> Sequence[Any]: ...

    def fetchmany(self, size: int, /) -> Sequence[Any]: ...

    def fetchone(self) -> Any: ...

    def close(self) -> None: ...

    def insert_rows(self, table: Table, rows: Sequence[Row], suffix: str) -> int:
        """Insert whole rows, values in the order of the table's columns; return how many rows changed."""

    def change_rows(self, change: Change, rows: Sequence[Row]) -> int:
        """Write the columns of many rows; return how many rows changed."""

    def select_in(self, head: str, values: Sequence[Any], before: Row, tail: str) -> Iterator[Row]:
        """The rows of `head IN (values) tail`; `before` are the parameters of the head."""

    def now_ms(self, at_ms: int) -> int:
        """The time of the clock that all processes share; `at_ms` is this one's."""


class SqliteCursor:
    """A cursor of an SQLite driver. Its methods are the driver's own: a call costs what it costs there."""

    __slots__ = ("_raw", "close", "execute", "fetchall", "fetchmany", "fetchone")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.close = raw.close
        self.execute = raw.execute
        self.fetchall = raw.fetchall
        self.fetchmany = raw.fetchmany
        self.fetchone = raw.fetchone

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return int(self._raw.rowcount)

    def insert_rows(self, table: Table, rows: Sequence[Row], suffix: str) -> int:
        """See `Cursor`."""
        changed = 0
        for start, size in steps(len(rows)):
            flat = [value for row in rows[start : start + size] for value in row]
            self._raw.execute(_insert(table.name, size, suffix), flat)
            changed += self._raw.rowcount
        return changed

    def change_rows(self, change: Change, rows: Sequence[Row]) -> int:
        """See `Cursor`."""
        changed = 0
        for start, size in steps(len(rows)):
            flat = [value for row in rows[start : start + size] for value in row]
            self._raw.execute(_change(change, size), flat)
            changed += self._raw.rowcount
        return changed

    def select_in(self, head: str, values: Sequence[Any], before: Row, tail: str) -> Iterator[Row]:
        """See `Cursor`."""
        for start, size in steps(len(values)):
            self._raw.execute(
                _select_in(head, size, tail), (*before, *values[start : start + size])
            )
            yield from self._raw.fetchall()

    def now_ms(self, at_ms: int) -> int:
        """All processes are on one machine."""
        return at_ms


def steps(count: int) -> Iterator[tuple[int, int]]:
    """Cut `count` rows into (start, size) steps whose sizes stand on the ladder."""
    start = 0
    for size in LADDER:
        while count - start >= size:
            yield start, size
            start += size


@cache
def _insert(table: str, size: int, suffix: str) -> str:
    columns = [column.name for column in schema.metadata.tables[table].columns]
    row = f"({', '.join('?' * len(columns))})"
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({names}) VALUES {", ".join([row] * size)}{suffix}'


@cache
def _change(change: Change, size: int) -> str:
    names = (change.key, *change.columns)
    row = f"({', '.join('?' * len(names))})"
    # SQLite calls the columns of VALUES column1, column2, ... and takes no other names for them.
    named = ", ".join(f'column{number} AS "{name}"' for number, name in enumerate(names, 1))
    rows = f"(SELECT {named} FROM (VALUES {', '.join([row] * size)})) AS v"
    return f"{change.head} FROM {rows} {change.tail}"


@cache
def _select_in(head: str, size: int, tail: str) -> str:
    return f"{head} IN ({', '.join('?' * size)}){tail}"
