"""What a reference does to the ledger: a new identity, a further visit, or one more edge."""

from __future__ import annotations

from typing import Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.budgets import PLACE_DEPTH
from scrapy_frontier.policy.scope import SCOPE_ALLOWED_DOMAINS
from scrapy_frontier.states import Event, State
from scrapy_frontier.store import on_budget
from scrapy_frontier.store.batch import Batch, Standing
from scrapy_frontier.store.families import TRAP, family_id
from scrapy_frontier.store.messages import Head, Known, Reference
from scrapy_frontier.store.on_rank import reason_of_place
from scrapy_frontier.store.visits import add_visit, hold

DEPTH_LIMIT: Final = "depth.limit"
"""Rule that holds an identity until a way to it is found that is no longer than DEPTH_LIMIT."""

TOO_DEEP: Final = (DEPTH_LIMIT, PLACE_DEPTH)
"""Rules that a shorter way to a URL lifts."""

UNSERIALISABLE: Final = "request.unserialisable"
"""Rule that holds an identity whose request lived in memory only and died with its process."""


def reference(batch: Batch, message: Reference) -> None:
    identity_id = batch.by_key.get(message.key)
    count = batch.emission(message.source, message.kind)
    is_new = identity_id is None
    if identity_id is None:
        standing = _discover(batch, message)
        identity_id = standing.identity_id
        count.fresh.append(identity_id)
        is_taken = standing.state != State.SUPPRESSED
    else:
        standing = batch.standings[identity_id]
        is_taken = False
        is_released = _is_released(batch, message, standing)
        if is_released or not _is_replayed(batch, message.seed, identity_id):
            count.others.append(identity_id)
            count.excluded += standing.state == State.SUPPRESSED
            is_taken = _again(batch, message, standing, is_released=is_released)
    if message.seed:
        batch.seeds[identity_id] = max(batch.seeds.get(identity_id, 0), message.seed)
    if message.kind == ReferenceKind.REDIRECT and not is_new and not is_taken:
        # The page has been asked for before: the callback of this chain does not get it a second time.
        batch.tally("redirect", "joined", example=message.url)
    if message.waiver:
        batch.tally("waiver", message.waiver, example=message.url)
    if message.on_commit is not None:
        is_suppressed = standing.state == State.SUPPRESSED
        is_held = standing.state == State.DEFERRED and batch.has_reason(
            standing, UNSERIALISABLE, *TOO_DEEP
        )
        is_hop = message.kind == ReferenceKind.REDIRECT
        rule = batch.code_of(standing.reason_id) if is_hop and is_suppressed else ""
        known = Known(
            identity_id, standing.origin_id, is_new, is_suppressed, is_held, is_taken, rule
        )
        batch.committed.answers.append((message.on_commit, known))


def _is_released(batch: Batch, message: Reference, standing: Standing) -> bool:
    """Whether this reference gives what a deferred identity lacks: a request, or a shorter way to it."""
    if standing.state != State.DEFERRED:
        return False
    if batch.has_reason(standing, UNSERIALISABLE):
        return True
    if message.is_visit and batch.code_of(standing.reason_id).startswith(TRAP):
        # Somebody wants this very page.
        return True
    return (
        message.verdict.event is Event.ENQUEUE
        and batch.has_reason(standing, *TOO_DEEP)
        and on_budget.breach_of(batch, message.claims) is None
    )


def _is_let_in(batch: Batch, message: Reference, standing: Standing) -> bool:
    """Whether the waiver of this request lifts what had excluded the identity."""
    return (
        message.waiver is not None
        and standing.state == State.SUPPRESSED
        and batch.has_reason(standing, SCOPE_ALLOWED_DOMAINS)
    )


def _discover(batch: Batch, message: Reference) -> Standing:
    origin_id = _origin_id(batch, message)
    batch.counters.identity += 1
    number = batch.counters.identity
    batch.by_key[message.key] = number
    batch.identities.append(
        (
            number,
            batch.run_id,
            message.key,
            origin_id,
            message.method,
            message.url,
            _source_id(batch, message),
            message.kind,
            message.depth,
            message.record,
            family_id(batch, message.family) if message.family else 0,
        )
    )
    standing = Standing(number, batch.run_id, origin_id, 0, 0, 0, message.rank, 0, 0, 0, 0, 0)
    batch.standings[number] = standing
    batch.append(standing, Event.DISCOVER, message.at_ms)
    verdict = message.verdict
    if verdict.event is not Event.ENQUEUE:
        batch.append(standing, verdict.event, message.at_ms, verdict.reason)
        return standing
    if not message.is_direct and on_budget.is_held(batch, standing, message.claims, message.at_ms):
        return standing
    batch.append(standing, Event.ADMIT, message.at_ms, verdict.reason)
    if message.is_direct:
        return standing
    placed = reason_of_place(batch, message, standing)
    if message.due_ms > message.at_ms:
        hold(batch, standing, message.due_ms, message.at_ms)
        return standing
    batch.append(standing, Event.ENQUEUE, message.at_ms, placed)
    batch.schedule(standing, _head(message, standing))
    return standing


def _source_id(batch: Batch, message: Reference) -> int:
    """The page that this identity is a child of; none where its attempt has lost the page to another one.

    The other one answers for all that belongs to the page. The emission names the page in any case.
    """
    source = message.source
    standing = batch.standings.get(source.identity_id)
    is_late = (
        standing is not None and source.attempt_id and standing.attempt_id != source.attempt_id
    )
    return 0 if is_late else source.identity_id


def _is_replayed(batch: Batch, seed: int, identity_id: int) -> bool:
    """Whether this seed request is in the ledger already: a resumed `start()` yields it a second time."""
    if not seed:
        return False
    if identity_id not in batch.seeds:
        batch.cursor.execute("SELECT requests FROM seed WHERE identity_id = ?", (identity_id,))
        found = batch.cursor.fetchone()
        if found is None:
            return False
        batch.seeds[identity_id] = int(found[0])
    return seed <= batch.seeds[identity_id]


def _again(batch: Batch, message: Reference, standing: Standing, *, is_released: bool) -> bool:
    """A further reference to a known identity: most are duplicates and change nothing. Whether it is fetched."""
    if message.is_direct:
        # Its issuer takes it when there is a place; until then it stands in no queue.
        return message.verdict.event is Event.ENQUEUE
    if is_released:
        if batch.has_reason(standing, *TOO_DEEP):
            on_budget.accept(batch, message.claims)
        _take_visit(batch, message, standing, Event.RELEASE)
    elif message.verdict.event is not Event.ENQUEUE:
        return False
    elif _is_let_in(batch, message, standing):
        _readmit(batch, message, standing)
    elif not message.is_visit:
        return False
    elif standing.state == State.SUPPRESSED:
        _readmit(batch, message, standing)
    elif standing.state == State.TERMINAL:
        _take_visit(batch, message, standing, Event.REVISIT)
    else:
        add_visit(batch, message.record, message.rank, message.due_ms, standing, is_waiting=True)
        batch.set_waiting(standing.identity_id, True)
    return True


def _take_visit(batch: Batch, message: Reference, standing: Standing, event: Event) -> None:
    standing.visit_id = add_visit(batch, message.record, message.rank, 0, standing)
    standing.rank = message.rank
    batch.append(standing, event, message.at_ms, message.verdict.reason)
    _schedule_or_hold(batch, message, standing)


def _readmit(batch: Batch, message: Reference, standing: Standing) -> None:
    standing.visit_id = add_visit(batch, message.record, message.rank, 0, standing)
    standing.rank = message.rank
    batch.append(standing, Event.READMIT, message.at_ms, message.verdict.reason)
    batch.append(standing, Event.ENQUEUE, message.at_ms)
    _schedule_or_hold(batch, message, standing)


def _schedule_or_hold(batch: Batch, message: Reference, standing: Standing) -> None:
    if message.due_ms > message.at_ms:
        hold(batch, standing, message.due_ms, message.at_ms)
    else:
        batch.schedule(standing, _head(message, standing))


def _head(message: Reference, standing: Standing) -> Head:
    return Head(
        standing.identity_id,
        standing.origin_id,
        message.origin,
        standing.rank,
        message.method,
        message.url,
        message.record,
        message.depth,
        message.payload,
    )


def _origin_id(batch: Batch, message: Reference) -> int:
    known = batch.new_origins.get(message.origin)
    if known is None:
        batch.counters.origin += 1
        known = batch.new_origins[message.origin] = batch.counters.origin
        batch.origins.append((known, batch.run_id, message.origin, message.partition, 0))
    return known
