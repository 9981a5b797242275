"""What each message does to the ledger. Runs on the writer's thread, inside its transaction.

An illegal move is refused here: it is logged, counted and never written; the rest of the transaction goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.states import Event, State
from scrapy_frontier.store import rows
from scrapy_frontier.store.batch import Batch, Counters, Standing, is_current
from scrapy_frontier.store.messages import (
    Dispatch,
    Due,
    Emission,
    Finding,
    Head,
    Known,
    Lease,
    Message,
    Move,
    OriginTiming,
    Read,
    Reason,
    Reference,
    Rejected,
    Retry,
    Tally,
    Transit,
)

logger = logging.getLogger(__name__)

ORIGINS_KEPT = 100_000

UNSERIALISABLE = "request.unserialisable"
"""Rule that holds an identity whose request lived in memory only and died with its process."""

NOT_BEFORE = "not_before"
"""Rule that holds an identity until a time its request asked for."""

REVISIT_WAITING = Reason("visit.waiting")


class Applier:
    """Turns messages into rows. Holds what outlives a transaction: interned codes, id counters, waiting visits."""

    def __init__(self, run_id: int, context_id: int, session_id: int) -> None:
        self.run_id = run_id
        self.context_id = context_id
        self.session_id = session_id
        self.refused = 0
        self._reasons: dict[str, int] = {}
        self._origins: dict[str, int] = {}
        self._waiting: set[int] = set()
        self._counters: Counters | None = None
        self._granted = 0
        self._waiting_changes: dict[int, bool] = {}
        self._handlers: dict[type, Callable[[Batch, Any], None]] = {
            Reference: self._reference,
            Dispatch: self._dispatch,
            Move: self._move,
            Emission: _emission,
            Retry: self._retry,
            Due: self._due,
            Transit: self._transit,
            OriginTiming: _origin_timing,
            Tally: _tally,
        }

    def load(self, cursor: rows.Cursor) -> None:
        """Read what is kept across transactions; again whenever another process has written to the store."""
        self._counters = Counters.load(cursor)
        cursor.execute("SELECT code, reason_id FROM reason")
        self._reasons = dict(cursor.fetchall())
        cursor.execute(
            "SELECT DISTINCT v.identity_id FROM visit AS v JOIN identity AS i ON i.identity_id = v.identity_id"
            " WHERE v.is_waiting = 1 AND i.run_id = ?",
            (self.run_id,),
        )
        self._waiting = {row[0] for row in cursor.fetchall()}

    def apply(self, cursor: rows.Cursor, messages: Sequence[Message]) -> Batch:
        """Apply the messages in order and write their rows; the caller commits, then calls `keep`."""
        assert self._counters is not None, "load() comes first"
        batch = Batch(cursor, self._counters.copy(), self.run_id, self.context_id, self._reasons)
        batch.load(_keys(messages), _identity_ids(messages))
        self._load_origins(batch, messages)
        self._waiting_changes = {}
        reads = []
        for message in messages:
            if isinstance(message, Read):
                reads.append(message)
            else:
                self._handlers[type(message)](batch, message)
        batch.flush()
        # A lane read back now shows every message of this batch, also those sent after the question.
        batch.committed.answers.extend((read.on_commit, read.query(cursor)) for read in reads)
        return batch

    def keep(self, batch: Batch) -> None:
        """The batch is on disk: remember the ids and codes it gave out."""
        self._counters = batch.counters
        self._reasons.update(batch.new_reasons)
        if len(self._origins) > ORIGINS_KEPT:
            self._origins.clear()
        self._origins.update(batch.new_origins)
        for identity_id, is_waiting in self._waiting_changes.items():
            (self._waiting.add if is_waiting else self._waiting.discard)(identity_id)

    def _load_origins(self, batch: Batch, messages: Sequence[Message]) -> None:
        names = {m.origin for m in messages if isinstance(m, Reference)}
        batch.new_origins.update({n: self._origins[n] for n in names if n in self._origins})
        unknown = names.difference(batch.new_origins)
        batch.new_origins.update(rows.origins_by_name(batch.cursor, self.run_id, unknown))

    def _origin_id(self, batch: Batch, message: Reference) -> int:
        known = batch.new_origins.get(message.origin)
        if known is None:
            batch.counters.origin += 1
            known = batch.new_origins[message.origin] = batch.counters.origin
            batch.origins.append((known, self.run_id, message.origin, message.partition, 0))
        return known

    def _refuse(self, error: IllegalTransition, identity_id: int) -> None:
        self.refused += 1
        logger.error(
            "Refused a move of identity %d: %s",
            identity_id,
            error,
            extra={"action": "transition_refused"},
        )

    # References

    def _reference(self, batch: Batch, message: Reference) -> None:
        identity_id = batch.by_key.get(message.key)
        count = batch.emission(message.source, message.kind)
        is_new = identity_id is None
        if identity_id is None:
            standing = self._discover(batch, message)
            identity_id = standing.identity_id
            count.fresh.append(identity_id)
            is_taken = standing.state != State.SUPPRESSED
        else:
            standing = batch.standings[identity_id]
            is_taken = False
            lost = standing.state == State.DEFERRED and batch.has_reason(standing, UNSERIALISABLE)
            if lost or not self._is_replayed(batch, message.seed, identity_id):
                count.others.append(identity_id)
                count.excluded += standing.state == State.SUPPRESSED
                is_taken = self._again(batch, message, standing, is_lost=lost)
        if message.seed:
            batch.seeds[identity_id] = max(batch.seeds.get(identity_id, 0), message.seed)
        if message.waiver:
            batch.tally("waiver", message.waiver, example=message.url)
        if message.on_commit is not None:
            is_suppressed = standing.state == State.SUPPRESSED
            known = Known(identity_id, standing.origin_id, is_new, is_suppressed, is_taken)
            batch.committed.answers.append((message.on_commit, known))

    def _discover(self, batch: Batch, message: Reference) -> Standing:
        origin_id = self._origin_id(batch, message)
        batch.counters.identity += 1
        number = batch.counters.identity
        batch.by_key[message.key] = number
        batch.identities.append(
            (
                number,
                self.run_id,
                message.key,
                origin_id,
                message.method,
                message.url,
                message.source.identity_id,
                message.kind,
                message.depth,
                message.record,
            )
        )
        standing = Standing(number, self.run_id, origin_id, 0, 0, 0, message.rank, 0, 0, 0, 0, 0)
        batch.standings[number] = standing
        batch.append(standing, Event.DISCOVER, message.at_ms)
        verdict = message.verdict
        if verdict.event is not Event.ENQUEUE:
            batch.append(standing, verdict.event, message.at_ms, verdict.reason)
            return standing
        batch.append(standing, Event.ADMIT, message.at_ms, verdict.reason)
        if message.due_ms > message.at_ms:
            self._hold(batch, standing, message.due_ms, message.at_ms)
            return standing
        batch.append(standing, Event.ENQUEUE, message.at_ms)
        if not message.is_direct:
            batch.schedule(standing, _head(message, standing))
        return standing

    def _is_replayed(self, batch: Batch, seed: int, identity_id: int) -> bool:
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

    def _again(
        self, batch: Batch, message: Reference, standing: Standing, *, is_lost: bool
    ) -> bool:
        """A further reference to a known identity: most are duplicates and change nothing. Whether it is fetched."""
        if is_lost:
            self._take_visit(batch, message, standing, Event.RELEASE)
        elif not message.is_visit or message.verdict.event is not Event.ENQUEUE:
            return False
        elif standing.state == State.SUPPRESSED:
            self._readmit(batch, message, standing)
        elif standing.state == State.TERMINAL:
            self._take_visit(batch, message, standing, Event.REVISIT)
        else:
            self._add_visit(
                batch, message.record, message.rank, message.due_ms, standing, is_waiting=True
            )
            self._waiting_changes[standing.identity_id] = True
        return True

    def _take_visit(
        self, batch: Batch, message: Reference, standing: Standing, event: Event
    ) -> None:
        standing.visit_id = self._add_visit(batch, message.record, message.rank, 0, standing)
        standing.rank = message.rank
        batch.append(standing, event, message.at_ms, message.verdict.reason)
        self._schedule_or_hold(batch, message, standing)

    def _readmit(self, batch: Batch, message: Reference, standing: Standing) -> None:
        standing.visit_id = self._add_visit(batch, message.record, message.rank, 0, standing)
        standing.rank = message.rank
        batch.append(standing, Event.READMIT, message.at_ms, message.verdict.reason)
        batch.append(standing, Event.ENQUEUE, message.at_ms)
        self._schedule_or_hold(batch, message, standing)

    def _schedule_or_hold(self, batch: Batch, message: Reference, standing: Standing) -> None:
        if message.due_ms > message.at_ms:
            self._hold(batch, standing, message.due_ms, message.at_ms)
        elif not message.is_direct:
            batch.schedule(standing, _head(message, standing))

    def _hold(self, batch: Batch, standing: Standing, due_ms: int, at_ms: int) -> None:
        reason = Reason(NOT_BEFORE, f'{{"due_ms": {due_ms}}}')
        batch.append(standing, Event.DEFER, at_ms, reason)
        batch.wait_until(standing, due_ms)

    def _add_visit(
        self,
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

    # Attempts

    def _dispatch(self, batch: Batch, message: Dispatch) -> None:
        lease = message.lease
        standing = batch.standings.get(lease.identity_id)
        granted = standing is not None and standing.state == State.SCHEDULED
        if standing is not None and granted:
            batch.counters.attempt += 1
            self._granted += 1
            lease.attempt_id = batch.counters.attempt
            lease.generation = self.session_id << 32 | self._granted
            standing.attempt_id = lease.attempt_id
            standing.generation = lease.generation
            batch.append(standing, Event.DISPATCH, message.at_ms, message.reason)
            batch.attempts.append(
                (
                    lease.attempt_id,
                    lease.identity_id,
                    self.session_id,
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

    def _move(self, batch: Batch, message: Move) -> None:
        standing = batch.standings.get(message.lease.identity_id)
        applied = False
        if standing is None or not is_current(standing, message.lease):
            batch.tally("late", message.event.label, example=repr(message.lease))
        else:
            try:
                batch.append(
                    standing, message.event, message.at_ms, message.reason, message.disposition
                )
                applied = True
            except IllegalTransition as error:
                self._refuse(error, standing.identity_id)
            else:
                _finish(batch, message.lease, message.finding, message.at_ms)
                self._serve_waiting(batch, standing, message.at_ms)
        if message.on_commit is not None:
            batch.committed.answers.append((message.on_commit, applied))

    def _serve_waiting(self, batch: Batch, standing: Standing, at_ms: int) -> None:
        """A terminal identity with a visit in waiting is scheduled again."""
        waiting = self._waiting_changes.get(
            standing.identity_id, standing.identity_id in self._waiting
        )
        if standing.state != State.TERMINAL or not waiting:
            return
        found, left = batch.take_waiting_visit(standing.identity_id)
        self._waiting_changes[standing.identity_id] = left
        if found is None:
            return
        standing.visit_id, standing.rank, due_ms = found
        batch.append(standing, Event.REVISIT, at_ms, REVISIT_WAITING)
        if due_ms > at_ms:
            self._hold(batch, standing, due_ms, at_ms)
        else:
            batch.schedule(standing)

    def _retry(self, batch: Batch, message: Retry) -> None:
        standing = batch.standings.get(message.lease.identity_id)
        applied = False
        if standing is None or not is_current(standing, message.lease):
            batch.tally("late", Event.FAIL.label, example=repr(message.lease))
        else:
            try:
                batch.append(standing, Event.FAIL, message.at_ms, message.reason)
                applied = True
            except IllegalTransition as error:
                self._refuse(error, standing.identity_id)
            else:
                _finish(batch, message.lease, message.finding, message.at_ms)
                standing.visit_id = self._add_visit(
                    batch, message.record, message.rank, 0, standing
                )
                standing.rank = message.rank
                if message.due_ms > message.at_ms:
                    batch.wait_until(standing, message.due_ms)
                else:
                    batch.append(standing, Event.BECOME_DUE, message.at_ms)
                    batch.schedule(standing, message.payload)
        if message.on_commit is not None:
            batch.committed.answers.append((message.on_commit, applied))

    # Identities that hold no lease

    def _due(self, batch: Batch, message: Due) -> None:
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

    def _transit(self, batch: Batch, message: Transit) -> None:
        moved = 0
        for identity_id in message.identity_ids:
            standing = batch.standings.get(identity_id)
            if standing is None:
                continue
            try:
                batch.append(
                    standing, message.event, message.at_ms, message.reason, message.disposition
                )
            except IllegalTransition as error:
                self._refuse(error, identity_id)
                continue
            moved += 1
            if standing.state == State.ADMITTED:
                batch.append(standing, Event.ENQUEUE, message.at_ms)
            if standing.state == State.SCHEDULED:
                batch.schedule(standing)
            self._serve_waiting(batch, standing, message.at_ms)
        if message.on_commit is not None:
            batch.committed.answers.append((message.on_commit, moved))


def _origin_timing(batch: Batch, message: OriginTiming) -> None:
    batch.origin_clocks[message.origin_id] = message.next_eligible_ms


def _tally(batch: Batch, message: Tally) -> None:
    batch.tally(message.kind, message.name, message.count, message.example)


def _keys(messages: Iterable[Message]) -> set[bytes]:
    wanted: set[bytes] = set()
    for message in messages:
        if isinstance(message, Reference):
            wanted.add(message.key)
        elif isinstance(message, Emission):
            wanted.update(target for target in message.targets if isinstance(target, bytes))
            wanted.update(target for target, _ in message.observations if isinstance(target, bytes))
    return wanted


def _identity_ids(messages: Iterable[Message]) -> set[int]:
    wanted: set[int] = set()
    for message in messages:
        if isinstance(message, (Dispatch, Move, Retry)):
            wanted.add(message.lease.identity_id)
        elif isinstance(message, (Due, Transit)):
            wanted.update(message.identity_ids)
    return wanted


def _head(message: Reference, standing: Standing) -> Head:
    return Head(
        standing.identity_id,
        standing.origin_id,
        message.origin,
        message.rank,
        message.method,
        message.url,
        message.record,
        message.depth,
        message.payload,
    )


def _emission(batch: Batch, message: Emission) -> None:
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
