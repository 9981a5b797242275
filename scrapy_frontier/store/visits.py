"""Visits: further requests for an identity that has one already, and times that hold it."""

from __future__ import annotations

from typing import Final

from scrapy_frontier.states import Event, State
from scrapy_frontier.store.batch import Batch, Standing
from scrapy_frontier.store.messages import Reason

NOT_BEFORE: Final = "not_before"
"""Rule that holds an identity until a time its request asked for."""

REVISIT_WAITING: Final = Reason("visit.waiting")


def add_visit(
    batch: Batch,
    record: str | None,
    rank: int,
    due_ms: int,
    standing: Standing,
    *,
    is_waiting: bool = False,
) -> int:
    batch.counters.visit += 1
    number = batch.counters.visit
    batch.visits.append((number, standing.identity_id, record, rank, due_ms, int(is_waiting)))
    return number


def hold(batch: Batch, standing: Standing, due_ms: int, at_ms: int) -> None:
    reason = Reason(NOT_BEFORE, f'{{"due_ms": {due_ms}}}')
    batch.append(standing, Event.DEFER, at_ms, reason)
    batch.wait_until(standing, due_ms)


def serve_waiting(
    batch: Batch, standing: Standing, at_ms: int, event: Event = Event.REVISIT
) -> None:
    """Schedule an identity again for a visit in waiting, if there is one; by `event`, which its state must allow."""
    if not batch.is_waiting(standing.identity_id):
        return
    found, left = batch.take_waiting_visit(standing.identity_id)
    batch.set_waiting(standing.identity_id, left)
    if found is None:
        return
    standing.visit_id, standing.rank, due_ms = found
    batch.append(standing, event, at_ms, REVISIT_WAITING)
    if standing.state == State.ADMITTED:
        batch.append(standing, Event.ENQUEUE, at_ms)
    if due_ms > at_ms:
        hold(batch, standing, due_ms, at_ms)
    else:
        batch.schedule(standing)


def serve_after_attempt(batch: Batch, standing: Standing, at_ms: int) -> None:
    """An attempt has ended its identity. A request that was dropped says nothing of the others that wait."""
    if standing.state == State.TERMINAL:
        serve_waiting(batch, standing, at_ms)
    elif standing.state == State.SUPPRESSED:
        serve_waiting(batch, standing, at_ms, Event.READMIT)
