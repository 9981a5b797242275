"""The statements of the hot path. How a database takes many rows at once is its cursor's affair: `store.bulk`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from scrapy_frontier.policy import budgets
from scrapy_frontier.store import schema
from scrapy_frontier.store.bulk import Change
from scrapy_frontier.store.bulk import Cursor as Cursor
from scrapy_frontier.store.bulk import Row as Row
from scrapy_frontier.store.database import database_named

RANKS: Final = 2**31
"""Ranks lie between minus this and this."""


def cursor_of(connection: Connection) -> Cursor:
    """A cursor inside the transaction of `connection`; SQLAlchemy's own execution costs more than the row."""
    return database_named(connection.dialect.name).cursor(connection)


def stream_of(connection: Connection) -> Cursor:
    """A cursor for one long answer, read by `fetchmany`: it is never in memory whole."""
    return database_named(connection.dialect.name).stream(connection)


def insert(cursor: Cursor, table: Table, rows: Sequence[Row], suffix: str = "") -> int:
    """Insert whole rows, values in the order of the table's columns; return how many rows changed."""
    return cursor.insert_rows(table, rows, suffix) if rows else 0


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

BUDGET_UPSERT: Final = (
    " ON CONFLICT(run_id, rule, pattern) DO UPDATE SET most = excluded.most, used = excluded.used,"
    " held = excluded.held, first_id = excluded.first_id, first_ms = excluded.first_ms"
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

SITUATION_UPSERT: Final = (
    " ON CONFLICT(run_id) DO UPDATE SET at_ms = excluded.at_ms, record = excluded.record"
)

RENDERING_INSERT: Final = " ON CONFLICT(attempt_id) DO NOTHING"

LIKENESS_INSERT: Final = " ON CONFLICT(attempt_id) DO NOTHING"

SEED_UPSERT: Final = " ON CONFLICT(identity_id) DO UPDATE SET requests = excluded.requests"

_FINISH_ATTEMPT: Final = Change(
    "attempt", "attempt_id", ("finished_ms", "status", "size", "payload", "outcome_id")
)

_RENEW: Final = Change("attempt", "attempt_id", ("expires_ms",))

_RANK: Final = Change("current", "identity_id", ("rank",))

_ORIGIN_TIMING: Final = Change(
    "origin", "origin_id", ("next_eligible_ms",), "origin.next_eligible_ms < v.next_eligible_ms"
)


def change(cursor: Cursor, what: Change, rows: Sequence[Row]) -> int:
    """Write columns of many rows, each found by its key; return how many rows changed."""
    return cursor.change_rows(what, rows) if rows else 0


def finish_attempts(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: attempt id, finished_ms, status, size, payload, outcome id."""
    change(cursor, _FINISH_ATTEMPT, rows)


def renew_leases(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: attempt id, expires_ms."""
    change(cursor, _RENEW, rows)


def lease_now_ms(cursor: Cursor, at_ms: int) -> int:
    """The time by which leases are granted and expire.

    On SQLite it is the writer's, `at_ms`: all processes are on one machine. On a server it is the server's own clock,
    which alone is the same for all of them.
    """
    return cursor.now_ms(at_ms)


def move_ranks(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: identity id, rank."""
    change(cursor, _RANK, rows)


def earlier_run(cursor: Cursor, run_id: int) -> int:
    """The last run of the same spider before this one that has ended by itself; 0 where there is none."""
    cursor.execute(
        "SELECT coalesce(max(e.run_id), 0) FROM run AS e JOIN run AS r ON r.spider = e.spider"
        " WHERE r.run_id = ? AND e.run_id < r.run_id AND e.state = 'finished'",
        (run_id,),
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def fetched_ms(cursor: Cursor, run_id: int, keys: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """(key, when it was fetched last) of the keys that a run has fetched."""
    head = (
        "SELECT i.key, a.finished_ms FROM identity AS i JOIN current AS c ON c.identity_id = i.identity_id"
        " JOIN attempt AS a ON a.attempt_id = c.attempt_id"
        " WHERE i.run_id = ? AND a.finished_ms IS NOT NULL AND i.key"
    )
    return (
        (bytes(key), int(ms)) for key, ms in _select(cursor, head, list(keys), before=(run_id,))
    )


def move_origin_clocks(cursor: Cursor, rows: Sequence[Row]) -> None:
    """Rows: origin id, next_eligible_ms. A clock never goes back."""
    change(cursor, _ORIGIN_TIMING, rows)


def _select(
    cursor: Cursor, head: str, values: Sequence[Any], *, before: Row = (), tail: str = ""
) -> Iterator[Row]:
    return cursor.select_in(head, values, before, tail) if values else iter(())


_STANDING: Final = "SELECT {} FROM current WHERE identity_id".format(
    ", ".join(f'"{column.name}"' for column in schema.current.columns)
)


def standings(cursor: Cursor, identity_ids: Iterable[int]) -> Iterator[Row]:
    """The projection's rows of these identities, values in the order of the table's columns."""
    return _select(cursor, _STANDING, list(identity_ids))


def identities_by_key(
    cursor: Cursor, run_id: int, keys: Iterable[bytes]
) -> Iterator[tuple[bytes, int]]:
    """(key, identity id) of the keys that this run holds."""
    head = "SELECT key, identity_id FROM identity WHERE run_id = ? AND key"
    return (
        (bytes(key), number) for key, number in _select(cursor, head, list(keys), before=(run_id,))
    )


def origins_by_name(cursor: Cursor, run_id: int, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """(origin, origin id) of the origins that this run holds."""
    head = "SELECT origin, origin_id FROM origin WHERE run_id = ? AND origin"
    return ((name, number) for name, number in _select(cursor, head, list(names), before=(run_id,)))


def budget_uses(cursor: Cursor, run_id: int, rule: str, patterns: Iterable[str]) -> Iterator[Row]:
    """(pattern, most, used, held, first_id, first_ms) of a rule's budgets that something was spent of."""
    head = (
        "SELECT pattern, most, used, held, first_id, first_ms FROM budget"
        " WHERE run_id = ? AND rule = ? AND pattern"
    )
    return _select(cursor, head, list(patterns), before=(run_id, rule))


def held_back(cursor: Cursor, run_id: int, reason_id: int, limit: int) -> list[int]:
    """The identities of a run that are deferred for a reason: first those that would be handed out first."""
    cursor.execute(
        "SELECT identity_id FROM current WHERE state = 8 AND run_id = ? AND reason_id = ?"
        " ORDER BY rank, identity_id LIMIT ?",
        (run_id, reason_id, limit),
    )
    return [row[0] for row in cursor.fetchall()]


def count_held_back(cursor: Cursor, run_id: int) -> int:
    """How many identities of a run wait beside its full queue."""
    cursor.execute(
        "SELECT count(*) FROM current AS c JOIN reason AS r ON r.reason_id = c.reason_id"
        " WHERE c.state = 8 AND c.run_id = ? AND r.code = ?",
        (run_id, budgets.PENDING),
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def bytes_by_origin(cursor: Cursor, run_id: int) -> list[Row]:
    """(origin or queue, bytes of its responses) of a run."""
    cursor.execute(
        "SELECT o.origin, sum(a.size) FROM attempt AS a"
        " JOIN identity AS i ON i.identity_id = a.identity_id"
        " JOIN origin AS o ON o.origin_id = i.origin_id"
        " WHERE i.run_id = ? AND a.size > 0 GROUP BY o.origin",
        (run_id,),
    )
    return list(cursor.fetchall())


def time_in_sessions_ms(cursor: Cursor, run_id: int, session_id: int) -> int:
    """The time that the sessions of a run before this one took, as far as the ledger shows it, in milliseconds."""
    cursor.execute(
        "SELECT coalesce(sum(coalesce(s.ended_ms, (SELECT max(coalesce(a.finished_ms, a.dispatched_ms))"
        " FROM attempt AS a WHERE a.session_id = s.session_id), s.started_ms) - s.started_ms), 0)"
        " FROM session AS s WHERE s.run_id = ? AND s.session_id < ?",
        (run_id, session_id),
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def pending_count(cursor: Cursor, run_id: int) -> int:
    """How many identities of a run stand in the queue or wait for another attempt."""
    cursor.execute(
        "SELECT count(*) FROM current WHERE run_id = ? AND state IN (3, 7)",
        (run_id,),
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def rendered_count(cursor: Cursor, run_id: int) -> int:
    """How many documents of a run were given to a browser."""
    cursor.execute("SELECT count(*) FROM rendering WHERE run_id = ?", (run_id,))
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def families_by_name(
    cursor: Cursor, run_id: int, names: Iterable[str]
) -> Iterator[tuple[str, int]]:
    """(name, family id) of the families that this run holds."""
    head = "SELECT name, family_id FROM family WHERE run_id = ? AND name"
    return ((name, number) for name, number in _select(cursor, head, list(names), before=(run_id,)))


def set_brakes(cursor: Cursor, rows: Iterable[Row]) -> None:
    """Rows: family id, rule, detail, braked_ms."""
    for number, rule, detail, at_ms in rows:
        cursor.execute(
            "UPDATE family SET rule = ?, detail = ?, braked_ms = ? WHERE family_id = ?",
            (rule, detail, at_ms, number),
        )


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
        "SELECT count(*) FROM current WHERE due_ms > 0 AND run_id = ? AND origin_id",
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


_RECORD: Final = "CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END"

_WAIVED: Final = '"dont_obey_robotstxt":true'
"""How the record of a request says that robots.txt is waived for it."""


def excluded_by_robots(
    cursor: Cursor, origin_id: int, after: int, limit: int
) -> list[tuple[int, str, int]]:
    """(identity id, URL, whether waived) of the origin's identities that its robots.txt excludes."""
    cursor.execute(
        "SELECT c.identity_id, i.url,"
        f" CASE WHEN replace({_RECORD}, '{_WAIVED}', '') <> {_RECORD} THEN 1 ELSE 0 END"
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
    return _select(cursor, f"{_HEAD} c.identity_id", list(identity_ids))


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


def scheduled_by_ranks(cursor: Cursor, run_id: int, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """How many identities of a run are scheduled with a rank in each of these ranges, both ends included."""
    counts = ", ".join(
        f"coalesce(sum(CASE WHEN rank BETWEEN {first} AND {last} THEN 1 ELSE 0 END), 0)"
        for first, last in ranges
    )
    cursor.execute(f"SELECT {counts} FROM current WHERE state = 3 AND run_id = ?", (run_id,))
    row = cursor.fetchone()
    return [int(count) for count in row] if row else [0] * len(ranges)


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
        "SELECT count(CASE WHEN state = 3 THEN 1 END), count(CASE WHEN due_ms > 0 THEN 1 END)"
        " FROM current WHERE run_id = ?",
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
