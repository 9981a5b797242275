"""What a dispatch, and what came of it, does to the ledger."""

from __future__ import annotations

from typing import Final

from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.states import Event, State
from scrapy_frontier.store.batch import Batch, Standing, is_current
from scrapy_frontier.store.messages import Dispatch, Finding, Lease, Move, Reason, Retry
from scrapy_frontier.store.visits import add_visit, serve_after_attempt

DIRECT: Final = Reason("engine.direct")


def dispatch(batch: Batch, message: Dispatch) -> None:
    lease = message.lease
    standing = batch.standings.get(lease.identity_id)
    if standing is not None and message.is_direct:
        _queue_direct(batch, standing, message.at_ms)
    granted = standing is not None and standing.state == State.SCHEDULED
    if standing is not None and granted:
        batch.counters.attempt += 1
        batch.granted += 1
        lease.attempt_id = batch.counters.attempt
        lease.generation = batch.session_id << 32 | batch.granted
        standing.attempt_id = lease.attempt_id
        standing.generation = lease.generation
        batch.append(standing, Event.DISPATCH, message.at_ms, message.reason)
        batch.attempts.append(
            (
                lease.attempt_id,
                lease.identity_id,
                batch.session_id,
                standing.visit_id,
                lease.generation,
                message.at_ms,
                None,
                None,
                None,
                None,
                None,
            )
        )
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, granted))


def _queue_direct(batch: Batch, standing: Standing, at_ms: int) -> None:
    """Bring an identity that its issuer takes himself to the point where it is dispatched, in the same transaction."""
    if standing.state == State.TERMINAL:
        batch.append(standing, Event.REVISIT, at_ms, DIRECT)
    elif standing.state == State.SUPPRESSED:
        batch.append(standing, Event.READMIT, at_ms, DIRECT)
    if standing.state == State.ADMITTED:
        batch.append(standing, Event.ENQUEUE, at_ms)


def move(batch: Batch, message: Move) -> None:
    standing = batch.standings.get(message.lease.identity_id)
    applied = False
    delivered = _delivered_before(batch, message, standing)
    if delivered is not None:
        applied = delivered
    elif standing is None or not is_current(standing, message.lease):
        batch.tally("late", message.event.label, example=repr(message.lease))
    else:
        try:
            batch.append(
                standing, message.event, message.at_ms, message.reason, message.disposition
            )
            applied = True
        except IllegalTransition as error:
            batch.refuse(error, standing.identity_id)
        else:
            _finish(batch, message.lease, message.finding, message.at_ms)
            serve_after_attempt(batch, standing, message.at_ms)
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, applied))


def _delivered_before(batch: Batch, message: Move, standing: Standing | None) -> bool | None:
    """Whether a result came already, with the same payload (True) or with another one (False); else None.

    The first makes one logical result of however many deliveries, the second is never applied (invariant 6).
    """
    lease, finding = message.lease, message.finding
    if message.event is not Event.RESPOND or finding is None or standing is None:
        return None
    if standing.state == State.FETCHING and standing.attempt_id == lease.attempt_id:
        return None
    payload = batch.payload_of(lease.attempt_id)
    if payload is None:
        return None
    if payload == finding.payload:
        return True
    batch.tally("quarantined", "payload.conflict", example=repr(lease))
    return False


def retry(batch: Batch, message: Retry) -> None:
    standing = batch.standings.get(message.lease.identity_id)
    applied = False
    if standing is None or not is_current(standing, message.lease):
        batch.tally("late", Event.FAIL.label, example=repr(message.lease))
    else:
        try:
            batch.append(standing, Event.FAIL, message.at_ms, message.reason)
            applied = True
        except IllegalTransition as error:
            batch.refuse(error, standing.identity_id)
        else:
            _finish(batch, message.lease, message.finding, message.at_ms)
            standing.visit_id = add_visit(batch, message.record, message.rank, 0, standing)
            standing.rank = message.rank
            if message.due_ms > message.at_ms:
                batch.wait_until(standing, message.due_ms)
            else:
                batch.append(standing, Event.BECOME_DUE, message.at_ms)
                batch.schedule(standing, message.payload)
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, applied))


def _finish(batch: Batch, lease: Lease, finding: Finding | None, at_ms: int) -> None:
    if finding is None:
        return
    batch.finished_attempts.append(
        (
            lease.attempt_id,
            at_ms,
            finding.status,
            finding.size,
            finding.payload,
            batch.reason_id(finding.outcome),
        )
    )
