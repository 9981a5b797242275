"""Leases over time: renewed while work goes on, taken back when it does not.

That a lease has expired proves nothing about its worker. It only allows to take it back; from then on the generation
fences the worker off: what he still brings is late evidence (`store.results`).
"""

from __future__ import annotations

import json
from typing import Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.leases import EXPIRED
from scrapy_frontier.policy.retry import IDEMPOTENT
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store import rows
from scrapy_frontier.store.batch import Batch, Standing, is_current
from scrapy_frontier.store.messages import Expire, Reason, Reclaimed, Renew
from scrapy_frontier.store.visits import serve_after_attempt

EXPIRE_LIMIT: Final = 500
"""Leases taken back by one message at the most, so that its transaction stays short."""

ABANDONED: Final = Reason("engine.abandoned")
"""Whoever issued a request past the scheduler has let its lease expire: nobody else can take its answer."""

UNSAFE: Final = (
    f"(i.method NOT IN ({', '.join(repr(method) for method in sorted(IDEMPOTENT))})"
    " AND coalesce(CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END, '')"
    """ NOT LIKE '%"frontier_idempotent"_true%')"""
)
"""Whether the request of an identity must not be sent twice by itself; `c`, `i` and `v` are its rows."""

_EXPIRED: Final = (
    "SELECT c.identity_id, c.attempt_id, a.expires_ms, a.session_id, i.kind,"
    f" CASE WHEN {UNSAFE} THEN 0 ELSE 1 END FROM current AS c"
    " JOIN attempt AS a ON a.attempt_id = c.attempt_id JOIN identity AS i ON i.identity_id = c.identity_id"
    " LEFT JOIN visit AS v ON v.visit_id = c.visit_id"
    " WHERE c.run_id = ? AND c.state IN (4, 5) AND a.expires_ms <= ? ORDER BY c.identity_id LIMIT ?"
)
# Back to where the URL was last done with.
_EXPIRIES: Final = (
    "WITH RECURSIVE chain(seq, prev_seq, event, reason_id) AS"
    " (SELECT seq, prev_seq, event, reason_id FROM transition WHERE seq = ?"
    " UNION SELECT t.seq, t.prev_seq, t.event, t.reason_id FROM transition AS t JOIN chain AS c ON t.seq = c.prev_seq"
    f" WHERE c.event <> {Event.REVISIT:d})"
    " SELECT count(*) FROM chain JOIN reason USING (reason_id) WHERE reason.code = ?"
)


def renew(batch: Batch, message: Renew) -> None:
    """The full length from now on for each lease in force; compared in this transaction, as results are."""
    expires_ms = rows.lease_now_ms(batch.cursor, message.at_ms) + batch.leases.length_ms
    lost = []
    for lease in message.leases:
        if is_current(batch.standings.get(lease.identity_id), lease):
            batch.renewals[lease.attempt_id] = expires_ms
        else:
            lost.append(lease.attempt_id)
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, lost))


def expire(batch: Batch, message: Expire) -> None:
    """Take back what has expired; what this transaction has moved or renewed is alive, and looked at next time."""
    now_ms = rows.lease_now_ms(batch.cursor, message.at_ms)
    batch.cursor.execute(_EXPIRED, (batch.run_id, now_ms, EXPIRE_LIMIT))
    found = batch.cursor.fetchall()
    batch.read_standings(row[0] for row in found)
    reclaimed = []
    for identity_id, attempt_id, expires_ms, session_id, kind, may_repeat in found:
        if batch.has_moved(identity_id) or attempt_id in batch.renewals:
            continue
        inputs = {"expired_ms": expires_ms, "now_ms": now_ms, "session": session_id}
        reclaimed.append(
            _take_back(batch, identity_id, inputs, kind, message.at_ms, may_repeat=bool(may_repeat))
        )
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, reclaimed))


def _take_back(
    batch: Batch,
    identity_id: int,
    inputs: dict[str, int],
    kind: int,
    at_ms: int,
    *,
    may_repeat: bool,
) -> Reclaimed:
    standing = batch.standings[identity_id]
    expiry = batch.leases.on_expiry(_expiries(batch, standing) + 1, may_repeat=may_repeat)
    if standing.state == State.FETCHING:
        # What came of the attempt is known where it was answered, and stays on record.
        batch.end_attempt(standing.attempt_id, at_ms, expiry.code)
    batch.append(
        standing,
        expiry.event,
        at_ms,
        Reason(expiry.code, json.dumps({**inputs, "limit": batch.leases.max_expiries})),
        expiry.disposition,
    )
    if standing.state == State.SCHEDULED and kind in _ISSUED_BESIDE:
        batch.append(standing, Event.CANCEL, at_ms, ABANDONED, Disposition.CANCELLED)
    is_scheduled = standing.state == State.SCHEDULED
    if is_scheduled:
        batch.schedule(standing)
    serve_after_attempt(batch, standing, at_ms)
    return Reclaimed(identity_id, standing.attempt_id, standing.generation, is_scheduled)


_ISSUED_BESIDE: Final = frozenset({int(ReferenceKind.DIRECT), int(ReferenceKind.ROBOTS)})


def _expiries(batch: Batch, standing: Standing) -> int:
    batch.cursor.execute(_EXPIRIES, (standing.last_seq, EXPIRED))
    found = batch.cursor.fetchone()
    return int(found[0]) if found else 0
