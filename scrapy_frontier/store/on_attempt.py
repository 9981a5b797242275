"""What a dispatch, and what came of it, does to the ledger."""

from __future__ import annotations

from typing import Final

from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.states import Event, State
from scrapy_frontier.store import results, rows
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
        # A session that was opened later may have held the identity meanwhile: its generations are higher.
        own = batch.session_id << 32 | batch.granted
        lease.generation = max(own, standing.generation + 1)
        standing.attempt_id = lease.attempt_id
        standing.generation = lease.generation
        batch.append(
            standing,
            Event.DISPATCH,
            message.at_ms,
            message.reason,
            evidence=message.evidence,
        )
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
                rows.lease_now_ms(batch.cursor, message.at_ms) + batch.leases.length_ms,
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
    lease, finding = message.lease, message.finding
    standing = batch.standings.get(lease.identity_id)
    came = results.delivery(batch, message, standing)
    applied = came is results.Delivery.REPEATED
    if came is results.Delivery.CONFLICTING and finding is not None:
        results.set_aside(batch, lease, finding, message.at_ms)
    elif came is results.Delivery.FIRST:
        if standing is None or not is_current(standing, lease):
            code = message.reason.code
            results.keep_late(batch, lease, message.event, code, finding, message.at_ms)
        else:
            applied = _apply(batch, message, standing)
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, applied))


def _apply(batch: Batch, message: Move, standing: Standing) -> bool:
    try:
        batch.append(
            standing,
            message.event,
            message.at_ms,
            message.reason,
            message.disposition,
            message.evidence,
        )
    except IllegalTransition as error:
        batch.refuse(error, standing.identity_id)
        return False
    _finish(batch, message.lease, message.finding, message.at_ms)
    serve_after_attempt(batch, standing, message.at_ms)
    return True


def retry(batch: Batch, message: Retry) -> None:
    lease = message.lease
    standing = batch.standings.get(lease.identity_id)
    applied = False
    if standing is None or not is_current(standing, lease):
        code = message.reason.code
        results.keep_late(batch, lease, Event.FAIL, code, message.finding, message.at_ms)
    else:
        try:
            batch.append(standing, Event.FAIL, message.at_ms, message.reason)
            applied = True
        except IllegalTransition as error:
            batch.refuse(error, standing.identity_id)
        else:
            _finish(batch, lease, message.finding, message.at_ms)
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
    if finding is not None:
        batch.end_attempt(lease.attempt_id, at_ms, finding.outcome, finding)
