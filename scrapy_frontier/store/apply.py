"""Applying messages: each to its handler, in order, inside the writer's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.policy.leases import LeasePolicy
from scrapy_frontier.store import (
    families,
    leases,
    on_attempt,
    on_budget,
    on_rank,
    on_record,
    on_reference,
    rows,
)
from scrapy_frontier.store.batch import Batch, Counters, Use
from scrapy_frontier.store.messages import (
    Dispatch,
    Due,
    Emission,
    Expire,
    FamilyBraked,
    HealthSampled,
    HoldBack,
    LetIn,
    Likened,
    Message,
    Move,
    OriginTiming,
    PageRendered,
    Promote,
    Read,
    Reconsider,
    Reference,
    Renew,
    Requeue,
    Retry,
    RobotsFetched,
    SituationTold,
    Tally,
    Transit,
)

if TYPE_CHECKING:
    from scrapy_frontier.store.opening import Store

BUDGETS_KEPT: Final = 100_000
"""Budgets whose use is remembered between transactions."""

ORIGINS_KEPT: Final = 100_000
"""Origins whose ids are remembered between transactions."""

FAMILIES_KEPT: Final = 100_000
"""Families whose ids are remembered between transactions."""

DEFAULT_LEASES: Final = LeasePolicy()

HANDLERS: Final[Mapping[type, Callable[[Batch, Any], None]]] = MappingProxyType(
    {
        Reference: on_reference.reference,
        Dispatch: on_attempt.dispatch,
        Move: on_attempt.move,
        Retry: on_attempt.retry,
        Renew: leases.renew,
        Expire: leases.expire,
        Due: on_record.due,
        Transit: on_record.transit,
        Promote: on_rank.promote,
        HoldBack: on_budget.hold_back,
        LetIn: on_budget.let_in,
        Reconsider: on_budget.reconsider,
        Requeue: on_record.requeue,
        Emission: on_record.emission,
        OriginTiming: on_record.origin_timing,
        RobotsFetched: on_record.robots_fetched,
        HealthSampled: on_record.health_sampled,
        SituationTold: on_record.situation_told,
        Tally: on_record.tally,
        PageRendered: on_record.page_rendered,
        Likened: families.likened,
        FamilyBraked: families.braked,
    }
)


class Applier:
    """Turns messages into rows. Holds what outlives a transaction: interned codes, id counters, waiting visits."""

    def __init__(
        self,
        run_id: int,
        context_id: int,
        session_id: int,
        leases: LeasePolicy = DEFAULT_LEASES,
        max_pending: int | None = None,
        freshness: int = 0,
    ) -> None:
        self.leases = leases
        self.run_id = run_id
        self.context_id = context_id
        self.session_id = session_id
        self.refused = 0
        self._reasons: dict[str, int] = {}
        self._origins: dict[str, int] = {}
        self._families: dict[str, int] = {}
        self._waiting: set[int] = set()
        self._counters: Counters | None = None
        self._granted = 0
        self._max_pending = max_pending
        self._freshness = freshness
        self._earlier_run = 0
        self._pending = 0
        self._spent: dict[tuple[str, str], Use] = {}
        self._data_version: int | None = None

    def spent(self, rule: str, pattern: str) -> int | None:
        """What is used of a budget; None where that is not in memory. May be asked from any thread."""
        use = self._spent.get((rule, pattern))
        return None if use is None else use.used

    def refresh(self, store: Store) -> None:
        """Read what is kept across transactions if another process has written; first thing in a transaction."""
        version = store.data_version()
        if version != self._data_version:
            self.load(rows.cursor_of(store.writer_connection()))
            self._data_version = version

    def load(self, cursor: rows.Cursor) -> None:
        """Read what is kept across transactions."""
        self._counters = Counters.load(cursor)
        cursor.execute("SELECT code, reason_id FROM reason")
        self._reasons = dict(cursor.fetchall())
        cursor.execute(
            "SELECT DISTINCT v.identity_id FROM visit AS v JOIN identity AS i ON i.identity_id = v.identity_id"
            " WHERE v.is_waiting = 1 AND i.run_id = ?",
            (self.run_id,),
        )
        self._waiting = {row[0] for row in cursor.fetchall()}
        self._spent.clear()
        if self._freshness:
            self._earlier_run = rows.earlier_run(cursor, self.run_id)
        if self._max_pending is not None:
            self._pending = rows.pending_count(cursor, self.run_id)

    def apply(self, cursor: rows.Cursor, messages: Sequence[Message]) -> Batch:
        """Apply the messages in order and write their rows; the caller commits, then calls `keep`."""
        assert self._counters is not None, "load() comes first"
        batch = Batch(
            cursor,
            self._counters.copy(),
            run_id=self.run_id,
            context_id=self.context_id,
            session_id=self.session_id,
            reasons=self._reasons,
            waiting=self._waiting,
            granted=self._granted,
            leases=self.leases,
            spent=self._spent,
            pending=self._pending,
            max_pending=self._max_pending,
            freshness=self._freshness if self._earlier_run else 0,
        )
        batch.load(_keys(messages), _identity_ids(messages))
        self._load_origins(batch, messages)
        self._load_spent(cursor, messages)
        if batch.freshness:
            unknown = {m.key for m in messages if isinstance(m, Reference)} - batch.by_key.keys()
            batch.fetched_before.update(rows.fetched_ms(cursor, self._earlier_run, unknown))
        self._load_families(batch, messages)
        reads = []
        for message in messages:
            if isinstance(message, Read):
                reads.append(message)
            else:
                HANDLERS[type(message)](batch, message)
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
        if len(self._families) > FAMILIES_KEPT:
            self._families.clear()
        self._families.update(batch.known_families)
        self._granted = batch.granted
        self._pending = batch.pending
        if len(self._spent) > BUDGETS_KEPT:
            self._spent.clear()
        self._spent.update(batch.new_spent)
        self.refused += batch.refused
        for identity_id, is_waiting in batch.new_waiting.items():
            (self._waiting.add if is_waiting else self._waiting.discard)(identity_id)

    def _load_spent(self, cursor: rows.Cursor, messages: Iterable[Message]) -> None:
        """Read what is spent of the budgets that the messages count in."""
        unknown: dict[str, set[str]] = {}
        for message in messages:
            if isinstance(message, (Reference, Reconsider)):
                budgets = [claim[:2] for claim in message.claims]
            elif isinstance(message, HoldBack):
                budgets = [(message.breach.rule, message.breach.pattern)]
            else:
                continue
            for rule, pattern in budgets:
                if (rule, pattern) not in self._spent:
                    unknown.setdefault(rule, set()).add(pattern)
        for rule, patterns in unknown.items():
            for pattern, *use in rows.budget_uses(cursor, self.run_id, rule, patterns):
                self._spent[rule, pattern] = Use(*use)

    def _load_origins(self, batch: Batch, messages: Sequence[Message]) -> None:
        names = {m.origin for m in messages if isinstance(m, Reference)}
        batch.new_origins.update({n: self._origins[n] for n in names if n in self._origins})
        unknown = names.difference(batch.new_origins)
        batch.new_origins.update(rows.origins_by_name(batch.cursor, self.run_id, unknown))

    def _load_families(self, batch: Batch, messages: Sequence[Message]) -> None:
        known = self._families
        names = families.names_in(messages)
        batch.known_families.update({name: known[name] for name in names if name in known})
        unknown = names.difference(batch.known_families)
        batch.known_families.update(rows.families_by_name(batch.cursor, self.run_id, unknown))


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
        elif isinstance(message, Requeue):
            wanted.add(message.identity_id)
        elif isinstance(message, Reference):
            if message.source.identity_id:
                wanted.add(message.source.identity_id)
        elif isinstance(message, Renew):
            wanted.update(lease.identity_id for lease in message.leases)
        elif isinstance(message, (HoldBack, Promote, Reconsider)):
            wanted.add(message.identity_id)
        elif isinstance(message, (Due, Transit)):
            wanted.update(message.identity_ids)
    return wanted
