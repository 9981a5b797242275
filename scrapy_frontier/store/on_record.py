"""What concerns identities without a lease, and what is only recorded."""

from __future__ import annotations

from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.states import Event, State
from scrapy_frontier.store import rows, schema
from scrapy_frontier.store.batch import Batch
from scrapy_frontier.store.messages import (
    Due,
    Emission,
    HealthSampled,
    OriginTiming,
    PageRendered,
    Rejected,
    Requeue,
    RobotsFetched,
    SituationTold,
    Tally,
    Transit,
)
from scrapy_frontier.store.on_reference import UNSERIALISABLE
from scrapy_frontier.store.visits import add_visit, serve_waiting


def due(batch: Batch, message: Due) -> None:
    moved = 0
    for identity_id in message.identity_ids:
        standing = batch.standings.get(identity_id)
        if standing is None or not 0 < standing.due_ms <= message.at_ms:
            continue
        event = Event.BECOME_DUE if standing.state == State.RETRYABLE else Event.RELEASE
        batch.append(standing, event, message.at_ms)
        batch.schedule(standing)
        moved += 1
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, moved))


def transit(batch: Batch, message: Transit) -> None:
    moved = 0
    for identity_id in message.identity_ids:
        standing = batch.standings.get(identity_id)
        if standing is None:
            continue
        try:
            if message.event is Event.CANCEL and standing.state == State.ADMITTED:
                batch.append(standing, Event.ENQUEUE, message.at_ms)
            batch.append(
                standing, message.event, message.at_ms, message.reason, message.disposition
            )
        except IllegalTransition as error:
            batch.refuse(error, identity_id)
            continue
        moved += 1
        if standing.state == State.ADMITTED:
            batch.append(standing, Event.ENQUEUE, message.at_ms)
        if standing.state == State.SCHEDULED:
            batch.schedule(standing)
        if standing.state == State.TERMINAL:
            serve_waiting(batch, standing, message.at_ms)
        elif standing.state == State.SUPPRESSED:
            # The rule holds for the URL, not for one request.
            batch.drop_waiting_visits(identity_id)
        elif standing.state == State.DEFERRED and message.reason.code == UNSERIALISABLE:
            # Its request is lost, but one that waits behind it is not.
            serve_waiting(batch, standing, message.at_ms, Event.RELEASE)
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, moved))


def requeue(batch: Batch, message: Requeue) -> None:
    """A new attempt of what has come to its end; anything else goes its own way, and is left alone."""
    standing = batch.standings.get(message.identity_id)
    is_taken = standing is not None and standing.state == State.TERMINAL
    if standing is not None and is_taken:
        standing.visit_id = add_visit(batch, message.record, standing.rank, 0, standing)
        batch.append(standing, Event.REVISIT, message.at_ms, message.reason)
        batch.schedule(standing)
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, is_taken))


def emission(batch: Batch, message: Emission) -> None:
    count = batch.emission(message.source, message.kind)
    count.others.extend(_identity(batch, target) for target in message.targets)
    count.excluded += message.excluded
    count.rejected += len(message.rejected)
    count.observations.extend(
        (_identity(batch, target), text) for target, text in message.observations
    )
    for rejected in message.rejected:
        batch.rejections.append(_rejection(batch, message, rejected))


def _identity(batch: Batch, target: int | bytes) -> int:
    return target if isinstance(target, int) else batch.by_key[target]


def _rejection(batch: Batch, message: Emission, rejected: Rejected) -> rows.Row:
    batch.counters.rejection += 1
    return (
        batch.counters.rejection,
        batch.run_id,
        message.source.identity_id,
        message.kind,
        batch.reason_id(rejected.code),
        rejected.observed,
    )


def origin_timing(batch: Batch, message: OriginTiming) -> None:
    before = batch.origin_clocks.get(message.origin_id, 0)
    batch.origin_clocks[message.origin_id] = max(before, message.next_eligible_ms)


def robots_fetched(batch: Batch, message: RobotsFetched) -> None:
    batch.robots[message.origin] = (
        message.origin,
        message.record,
        message.digest,
        message.at_ms,
    )
    if message.text is not None:
        batch.robots_texts[message.digest] = message.text


def health_sampled(batch: Batch, message: HealthSampled) -> None:
    batch.counters.health_sample += 1
    batch.health_samples.append(
        (
            batch.counters.health_sample,
            batch.run_id,
            message.gate,
            message.at_ms,
            message.code,
            message.concurrency,
            message.interval_ms,
            message.inputs,
            message.state,
        )
    )
    batch.health[message.gate] = (
        batch.run_id,
        message.gate,
        message.state,
        int(message.is_calm),
        message.at_ms,
    )


def tally(batch: Batch, message: Tally) -> None:
    batch.tally(message.kind, message.name, message.count, message.example)


def situation_told(batch: Batch, message: SituationTold) -> None:
    row = (batch.run_id, message.at_ms, message.record)
    rows.insert(batch.cursor, schema.situation, [row], rows.SITUATION_UPSERT)


def page_rendered(batch: Batch, message: PageRendered) -> None:
    """A page that is rendered twice in one attempt counts once."""
    run_id, attempt_id = batch.run_id, message.attempt_id
    page = (attempt_id, run_id, message.identity_id, message.wall_ms, message.rule)
    if rows.insert(batch.cursor, schema.rendering, [page], rows.RENDERING_INSERT):
        asked = [
            (attempt_id, origin, kind, outcome, run_id, count, size)
            for origin, kind, outcome, count, size in message.sub_requests
        ]
        rows.insert(batch.cursor, schema.sub_request, asked)
