"""Every transition of one identity, from the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import label, parsed
from scrapy_frontier.states import Disposition, Event, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

# UNION, not UNION ALL: a damaged chain that comes back to itself must end.
_CHAIN: Final = (
    "WITH RECURSIVE chain(seq) AS (SELECT last_seq FROM current WHERE identity_id = :identity"
    " UNION SELECT t.prev_seq FROM transition AS t JOIN chain ON t.seq = chain.seq"
    " WHERE t.prev_seq > 0)"
)
_HISTORY: Final = (
    f"{_CHAIN} SELECT t.seq, t.at_ms, t.event, t.from_to, t.disposition, r.code, t.detail,"
    " t.attempt_id, t.evidence, s.session_id, s.worker, p.digest"
    " FROM chain JOIN transition AS t ON t.seq = chain.seq"
    " LEFT JOIN reason AS r ON r.reason_id = t.reason_id"
    " LEFT JOIN context AS x ON x.context_id = t.context_id"
    " LEFT JOIN session AS s ON s.session_id = x.session_id"
    " LEFT JOIN policy AS p ON p.policy_id = x.policy_id ORDER BY t.seq"
)
_LENGTH: Final = (
    f"{_CHAIN} SELECT count(*), coalesce(sum(CASE WHEN t.event = {Event.DISPATCH:d} THEN 1 END), 0)"
    " FROM chain JOIN transition AS t ON t.seq = chain.seq"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One transition. `detail` is what the reason was decided from, `evidence` a digest in hex."""

    seq: int
    at: str | None
    event: str
    source: str
    target: str
    disposition: str | None
    reason: str | None
    detail: Any
    attempt: int | None
    evidence: str | None
    session: int | None
    worker: str | None
    policy_version: str | None


def history(connection: Connection, identity_id: int) -> tuple[Step, ...]:
    """The transitions of an identity, oldest first; empty where there is no such identity."""
    rows = connection.execute(text(_HISTORY), {"identity": identity_id})
    return tuple(_step(row) for row in rows)


def length_of_history(connection: Connection, identity_id: int) -> tuple[int, int]:
    """(transitions, attempts) of an identity."""
    transitions, attempts = connection.execute(text(_LENGTH), {"identity": identity_id}).one()
    return int(transitions), int(attempts)


def _step(row: Any) -> Step:
    return Step(
        seq=row.seq,
        at=iso(row.at_ms),
        event=label(Event, row.event),
        source=label(State, row.from_to >> 4),
        target=label(State, row.from_to & 15),
        disposition=label(Disposition, row.disposition) if row.disposition else None,
        reason=row.code,
        detail=parsed(row.detail),
        attempt=row.attempt_id or None,
        evidence=row.evidence.hex() if row.evidence else None,
        session=row.session_id,
        worker=row.worker,
        policy_version=row.digest,
    )
