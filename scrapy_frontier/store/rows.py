"""Rows in bulk: the few statements of the hot path, each writing many rows in one step of the database.

A statement with many rows is one call into SQLite, which runs without Python's interpreter lock; a statement a row
would hand the lock back and forth with the event loop. Row counts come from a fixed ladder so that statements are
prepared once. What differs on another database belongs here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Table

from scrapy_frontier.store import schema

LADDER: Final = (64, 16, 4, 1)

RANKS: Final = 2**31
"""Ranks lie between minus this and this."""

Row = tuple[Any, ...]


class Cursor(Protocol):
    """The part of PEP 249 used here."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: str, parameters: Any = ..., /) -> Any: ...

    def fetchall(self) -> Sequence[Any]: ...

    def fetchone(self) -> Any: ...


def cursor_of(connection: Connection) -> Cursor:
    """A raw cursor inside the transaction of `connection`; SQLAlchemy's own execution costs more than the row."""
    return connection.connection.cursor()


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


def insert(cursor: Cursor, table: Table, rows: Sequence[Row], suffix: str = "") -> int:
    """Insert whole rows, values in the order of the table's columns; return how many rows changed."""
    changed = 0
    for start, size in steps(len(rows)):
        flat = [value for row in rows[start : start + size] for value in row]
        cursor.execute(_insert(table.name, size, suffix), flat)
        changed += cursor.rowcount
    return changed


PROJECTION_UPSERT: Final = (
    " ON CONFLICT(identity_id) DO UPDATE SET "
    + ", ".join(
        f'"{column.name}" = excluded."{column.name}"'
        for column in schema.current.columns
        if column.name not in {"identity_id", "run_id", "origin_id"}
    )
    + " WHERE excluded.last_seq > current.last_seq"
)

TALLY_UPSERT: Final = (
    " ON CONFLICT(run_id, kind, name) DO UPDATE SET count = tally.count + excluded.count,"
    " example = coalesce(tally.example, excluded.example)"
)

ROBOTS_UPSERT: Final = (
    " ON CONFLICT(origin) DO UPDATE SET record = excluded.record, digest = excluded.digest,"
    " updated_ms = excluded.updated_ms"
)

ROBOTS_TEXT_INSERT: Final = " ON CONFLICT(digest) DO NOTHING"

HEALTH_UPSERT: Final = (
    " ON CONFLICT(run_id, gate) DO UPDATE SET state = excluded.state, is_calm = excluded.is_calm,"
    " updated_ms = excluded.updated_ms"
)

SEED_UPSERT: Final = " ON CONFLICT(identity_id) DO UPDATE SET requests = excluded.requests"

_FINISH_ATTEMPT: Final = (
    "UPDATE attempt SET finished_ms = v.column2, status = v.column3, size = v.column4, payload = v.column5,"
    " outcome_id = v.column6 FROM (VALUES {rows}) AS v WHERE attempt.attempt_id = v.column1"
)

_RENEW: Final = (
    "UPDATE attempt SET expires_ms = v.column2 FROM (VALUES {rows}) AS v"
    " WHERE attempt.attempt_id = v.column1"
)

_ORIGIN_TIMING: Final = (
    "UPDATE origin SET next_eligible_ms = v.column2 FROM (VALUES {rows}) AS v"
    " WHERE origin.origin_id = v.column1 AND origin.next_eligible_ms < v.column2"
)


@cache
def _update(template: str, width: int, size: int) -> str:
    row = f"({', '.join('?' * width)})"
    return template.format(rows=", ".join([row] * size))


def _update_many(cursor: Cursor, template: str, rows: Sequence[Row]) -> None:
    for start, size in steps(len(rows)):
        part = rows[start : start + size]
        cursor.execute(
            _update(template, len(part[0]), size), [value for row in part for value in row]
        )


def finish_attempts(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: attempt id, finished_ms, status, size, payload, outcome id."""
    _update_many(cursor, _FINISH_ATTEMPT, rows)


def renew_leases(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: attempt id, expires_ms."""
    _update_many(cursor, _RENEW, rows)


def lease_now_ms(_: Cursor, at_ms: int) -> int:
    """The time by which leases are granted and expire.

    Here it is the writer's, `at_ms`: one process writes. On a database that many write to it is the database's own
    clock, which alone is the same for all of them.
    """
    return at_ms


def move_origin_clocks(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: origin id, next_eligible_ms. A clock never goes back."""
    _update_many(cursor, _ORIGIN_TIMING, rows)


@cache
def _select_in(head: str, size: int, tail: str) -> str:
    return f"{head} ({', '.join('?' * size)}){tail}"


def _select(
    cursor: Cursor, head: str, values: Sequence[Any], *, before: Row = (), tail: str = ""
) -> Iterator[Row]:
    for start, size in steps(len(values)):
        cursor.execute(_select_in(head, size, tail), (*before, *values[start : start + size]))
        yield from cursor.fetchall()


_STANDING: Final = "SELECT {} FROM current WHERE identity_id IN".format(
    ", ".join(f'"{column.name}"' for column in schema.current.columns)
)


def standings(cursor: Cursor, identity_ids: Iterable[int]) -> Iterator[Row]:
    """The projection's rows of these identities, values in the order of the table's columns."""
    return _select(cursor, _STANDING, list(identity_ids))


def identities_by_key(
    cursor: Cursor, run_id: int, keys: Iterable[bytes]
) -> Iterator[tuple[bytes, int]]:
    """(key, identity id) of the keys that this run holds."""
    head = "SELECT key, identity_id FROM identity WHERE run_id = ? AND key IN"
    return (
        (bytes(key), number) for key, number in _select(cursor, head, list(keys), before=(run_id,))
    )


def origins_by_name(cursor: Cursor, run_id: int, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """(origin, origin id) of the origins that this run holds."""
    head = "SELECT origin, origin_id FROM origin WHERE run_id = ? AND origin IN"
    return ((name, number) for name, number in _select(cursor, head, list(names), before=(run_id,)))


def robots_record(cursor: Cursor, origin: str) -> tuple[str, bytes | None] | None:
    """(record, text) of an origin's robots.txt, None where nothing is known of it."""
    cursor.execute(
        "SELECT r.record, t.text FROM robots AS r LEFT JOIN robots_text AS t ON t.digest = r.digest"
        " WHERE r.origin = ?",
        (origin,),
    )
    row = cursor.fetchone()
    return None if row is None else (row[0], None if row[1] is None else bytes(row[1]))


def troubled_gates(cursor: Cursor, run_id: int) -> list[tuple[str, str]]:
    """(gate, state of its health) of the gates of a run that were not at ease."""
    cursor.execute("SELECT gate, state FROM health WHERE run_id = ? AND is_calm = 0", (run_id,))
    return list(cursor.fetchall())


def count_timed(cursor: Cursor, run_id: int, origin_ids: Sequence[int]) -> int:
    """How many identities of these origins wait for a time."""
    found = _select(
        cursor,
        "SELECT count(*) FROM current WHERE due_ms > 0 AND run_id = ? AND origin_id IN",
        list(origin_ids),
        before=(run_id,),
    )
    return sum(int(row[0]) for row in found)


def count_scheduled(cursor: Cursor, origin_id: int) -> int:
    """How many identities of an origin are scheduled."""
    cursor.execute("SELECT count(*) FROM current WHERE state = 3 AND origin_id = ?", (origin_id,))
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def deferred_by(cursor: Cursor, origin_id: int, code: str) -> list[int]:
    """The identities of an origin that are deferred for a reason."""
    cursor.execute(
        "SELECT identity_id FROM current JOIN reason USING (reason_id)"
        " WHERE state = 8 AND origin_id = ? AND code = ?",
        (origin_id, code),
    )
    return [row[0] for row in cursor.fetchall()]


def excluded_by_robots(
    cursor: Cursor, origin_id: int, after: int, limit: int
) -> list[tuple[int, str, int]]:
    """(identity id, URL, whether waived) of the origin's identities that its robots.txt excludes."""
    cursor.execute(
        "SELECT c.identity_id, i.url,"
        " instr(coalesce(CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END, ''),"
        " '\"dont_obey_robotstxt\":true') > 0"
        " FROM current AS c JOIN identity AS i USING (identity_id)"
        " LEFT JOIN visit AS v ON v.visit_id = c.visit_id"
        " LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
        " WHERE c.origin_id = ? AND c.identity_id > ?"
        " AND c.state = 9 AND r.code = 'robots.disallow'"
        " ORDER BY c.identity_id LIMIT ?",
        (origin_id, after, limit),
    )
    return list(cursor.fetchall())


_HEAD: Final = (
    "SELECT c.identity_id, c.origin_id, o.origin, c.rank, i.method, i.url,"
    " CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END, i.depth"
    " FROM current AS c JOIN identity AS i ON i.identity_id = c.identity_id"
    " JOIN origin AS o ON o.origin_id = c.origin_id"
    " LEFT JOIN visit AS v ON v.visit_id = c.visit_id WHERE "
)


def heads(cursor: Cursor, identity_ids: Iterable[int]) -> Iterator[Row]:
    """What a `Head` holds, for these identities."""
    return _select(cursor, f"{_HEAD} c.identity_id IN", list(identity_ids))


def lane_heads(
    cursor: Cursor, origin_id: int, first: tuple[int, int], rank_max: int, limit: int
) -> list[Row]:
    """The first scheduled identities of an origin from (rank, identity id) `first` on, up to `rank_max`, in order."""
    rank, identity_id = first
    # Two ranges: a row comparison would search by rank alone. The state is a literal so that the partial index serves.
    order = " ORDER BY c.rank, c.identity_id LIMIT ?"
    head = f"{_HEAD} c.state = 3 AND c.origin_id = ? AND"
    cursor.execute(
        f"{head} c.rank = ? AND c.identity_id >= ?{order}", (origin_id, rank, identity_id, limit)
    )
    found = list(cursor.fetchall())
    if len(found) < limit and rank < rank_max:
        cursor.execute(
            f"{head} c.rank > ? AND c.rank <= ?{order}",
            (origin_id, rank, rank_max, limit - len(found)),
        )
        found += cursor.fetchall()
    return found


def due_times(cursor: Cursor, run_id: int, first: tuple[int, int], limit: int) -> list[Row]:
    """(due_ms, identity id) of the soonest waiting times from `first` on, in that order."""
    cursor.execute(
        "SELECT due_ms, identity_id FROM current WHERE due_ms > 0 AND run_id = ? AND due_ms >= ?"
        " AND (due_ms, identity_id) >= (?, ?) ORDER BY due_ms, identity_id LIMIT ?",
        (run_id, first[0], *first, limit),
    )
    return list(cursor.fetchall())


def waiting_counts(cursor: Cursor, run_id: int) -> tuple[int, int]:
    """How many identities of a run are scheduled, and how many wait for a time."""
    cursor.execute(
        "SELECT coalesce(sum(state = 3), 0), coalesce(sum(due_ms > 0), 0) FROM current WHERE run_id = ?",
        (run_id,),
    )
    row = cursor.fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def timings_after(cursor: Cursor, run_id: int, now_ms: int) -> list[tuple[str, int]]:
    """(origin, next_eligible_ms) of the origins that are to be left alone for a while."""
    cursor.execute(
        "SELECT origin, next_eligible_ms FROM origin WHERE run_id = ? AND next_eligible_ms > ?",
        (run_id, now_ms),
    )
    return list(cursor.fetchall())


def scheduled_origins(cursor: Cursor, run_id: int, limit: int) -> list[tuple[int, str]]:
    """(origin id, origin) of origins that have a scheduled identity."""
    cursor.execute(
        "SELECT o.origin_id, o.origin FROM origin AS o WHERE o.run_id = ? AND EXISTS"
        " (SELECT 1 FROM current AS c WHERE c.state = 3 AND c.origin_id = o.origin_id)"
        " ORDER BY o.origin_id LIMIT ?",
        (run_id, limit),
    )
    return list(cursor.fetchall())
