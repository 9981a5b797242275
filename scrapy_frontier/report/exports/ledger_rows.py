"""Pages of transitions, identities and attempts, as exports write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.exports.moment import Moment, Stand, stands
from scrapy_frontier.report.names import Codes, label
from scrapy_frontier.states import Disposition, Event, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

_NOTHING: Final = Stand(0, 0, 0, 0, 0, 0)

_TRANSITIONS: Final = (
    "SELECT t.seq, x.run_id, t.identity_id, i.key, i.url, t.prev_seq, t.attempt_id, a.generation,"
    " t.event, t.from_to, t.disposition, t.at_ms, r.code, t.detail, t.evidence, x.session_id,"
    " s.worker, p.digest FROM transition AS t"
    " JOIN context AS x ON x.context_id = t.context_id AND x.run_id = :run"
    " JOIN session AS s ON s.session_id = x.session_id"
    " JOIN policy AS p ON p.policy_id = x.policy_id"
    " LEFT JOIN identity AS i ON i.identity_id = t.identity_id"
    " LEFT JOIN attempt AS a ON a.attempt_id = t.attempt_id"
    " LEFT JOIN reason AS r ON r.reason_id = t.reason_id"
    " WHERE t.seq > :after AND t.seq <= :upto ORDER BY t.seq"
)
_IDENTITIES: Final = (
    "SELECT i.identity_id, i.run_id, i.key, i.method, i.url, o.origin, i.kind, i.depth, i.source_id,"
    " f.name AS family"
    " FROM identity AS i JOIN origin AS o ON o.origin_id = i.origin_id"
    " LEFT JOIN family AS f ON f.family_id = i.family_id"
    " WHERE i.run_id = :run AND i.identity_id > :after AND i.identity_id <= :upto"
    " ORDER BY i.identity_id"
)
_ATTEMPTS: Final = (
    "SELECT a.attempt_id, s.run_id, a.identity_id, i.url, a.session_id, s.worker, a.generation,"
    " a.dispatched_ms, a.finished_ms, a.status, a.size, a.payload, a.outcome_id"
    " FROM attempt AS a JOIN session AS s ON s.session_id = a.session_id AND s.run_id = :run"
    " LEFT JOIN identity AS i ON i.identity_id = a.identity_id"
    " WHERE a.attempt_id > :after AND a.attempt_id <= :upto ORDER BY a.attempt_id"
)


def page(connection: Connection, query: str, moment: Moment, after: int, upto: int) -> list[Any]:
    """The rows of a query about the moment's run with ids above `after`, up to `upto`."""
    parameters = {"run": moment.run_id, "after": after, "upto": upto}
    return list(connection.execute(text(query), parameters))


def transitions(
    connection: Connection, moment: Moment, after: int, upto: int
) -> list[tuple[Any, ...]]:
    """Transitions with their texts; a generation is that of the attempt they belong to."""
    return [
        (
            row.seq,
            row.run_id,
            row.identity_id,
            hexed(row.key),
            row.url,
            row.prev_seq or None,
            row.attempt_id or None,
            row.generation,
            label(Event, row.event),
            label(State, row.from_to >> 4),
            label(State, row.from_to & 15),
            label(Disposition, row.disposition) if row.disposition else None,
            row.at_ms,
            row.code,
            row.detail,
            hexed(row.evidence),
            row.session_id,
            row.worker,
            row.digest,
        )
        for row in page(connection, _TRANSITIONS, moment, after, upto)
    ]


def identities(
    connection: Connection, moment: Moment, after: int, upto: int
) -> list[tuple[Any, ...]]:
    """Identities as they stood at the moment; `since` is when they had come there."""
    rows = page(connection, _IDENTITIES, moment, after, upto)
    stood = stands(connection, (row.identity_id for row in rows), moment)
    codes = Codes.of(connection)
    found = []
    for row in rows:
        stand = stood.get(row.identity_id, _NOTHING)
        found.append(
            (
                row.identity_id,
                row.run_id,
                hexed(row.key),
                row.method,
                row.url,
                row.origin,
                label(ReferenceKind, row.kind),
                row.depth,
                row.source_id or None,
                row.family,
                label(State, stand.state),
                label(Disposition, stand.disposition) if stand.disposition else None,
                codes[stand.reason_id] if stand.reason_id else None,
                stand.at_ms or None,
                stand.attempt_id or None,
                stand.seq,
            )
        )
    return found


def attempts(
    connection: Connection, moment: Moment, after: int, upto: int
) -> list[tuple[Any, ...]]:
    """Attempts; one that was under way at the moment has brought nothing yet."""
    rows = page(connection, _ATTEMPTS, moment, after, upto)
    stood = stands(connection, (row.identity_id for row in rows), moment)
    codes = Codes.of(connection)
    return [(*row[:8], *_brought(row, stood.get(row.identity_id, _NOTHING), codes)) for row in rows]


def _brought(row: Any, stand: Stand, codes: Codes) -> tuple[Any, ...]:
    """End, status, size, payload and outcome, as they were on record at the moment."""
    if stand.attempt_id == row.attempt_id and stand.state == State.FETCHING:
        return None, None, None, None, None
    ended_ms, outcome = row.finished_ms, row.outcome_id
    if stand.attempt_id == row.attempt_id and stand.state == State.FETCHED:
        # What its page made of it came later; the response alone is of the moment.
        ended_ms, outcome = stand.at_ms, stand.reason_id
    return ended_ms, row.status, row.size, hexed(row.payload), codes[outcome] if outcome else None


def hexed(content: Any) -> str | None:
    """Bytes in hexadecimal digits."""
    return None if content is None else bytes(content).hex()
