"""One transaction in the making: identities as they stand, rows to be written, and what the loop must be told.

Nothing here is kept when the transaction is rolled back: a `Batch` is thrown away whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Final

from scrapy_frontier import failpoints
from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.leases import LeasePolicy
from scrapy_frontier.states import Disposition, Event, State, advance
from scrapy_frontier.store import edges, ids, rows, schema
from scrapy_frontier.store.messages import Committed, Finding, Head, Lease, Reason, Source

logger = get_logger(__name__)

NO_REASON = Reason("")

PENDING: Final = frozenset({State.SCHEDULED, State.RETRYABLE})
"""States of an identity that waits for its turn."""


@dataclass(slots=True)
class Standing:
    """One row of the projection while the transaction works on it."""

    identity_id: int
    run_id: int
    origin_id: int
    state: int
    disposition: int
    reason_id: int
    rank: int
    due_ms: int
    visit_id: int
    attempt_id: int
    generation: int
    last_seq: int

    def row(self) -> rows.Row:
        """Values in the order of the table's columns."""
        return (
            self.identity_id,
            self.run_id,
            self.origin_id,
            self.state,
            self.disposition,
            self.reason_id,
            self.rank,
            self.due_ms,
            self.visit_id,
            self.attempt_id,
            self.generation,
            self.last_seq,
        )


@dataclass(slots=True)
class EmissionCount:
    """The references of one source and kind in this transaction."""

    fresh: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    excluded: int = 0
    rejected: int = 0
    observations: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Use:
    """What is spent of one budget, and what it has held back: see `schema.budget`."""

    most: int = 0
    used: int = 0
    held: int = 0
    first_id: int = 0
    first_ms: int = 0

    def copy(self) -> Use:
        """A copy that counts only when its batch commits."""
        return Use(*self.row())

    def row(self) -> tuple[int, int, int, int, int]:
        """Values in the order of the table's columns."""
        return self.most, self.used, self.held, self.first_id, self.first_ms


class Counters:
    """The next free ids of a store. Reloaded when another process has written to it."""

    TABLES = (
        "transition",
        "identity",
        "attempt",
        "visit",
        "emission",
        "rejection",
        "reason",
        "origin",
        "health_sample",
        "late",
        "quarantine",
        "family",
    )
    __slots__ = TABLES

    transition: int
    identity: int
    attempt: int
    visit: int
    emission: int
    rejection: int
    reason: int
    origin: int
    health_sample: int
    late: int
    quarantine: int
    family: int

    def __init__(self, **highest: int) -> None:
        for name in self.TABLES:
            setattr(self, name, highest[name])

    @classmethod
    def load(cls, cursor: rows.Cursor) -> Counters:
        """Read the highest id of each table, also of runs that were pruned."""
        cursor.execute(ids.QUERY)
        marked = cursor.fetchone()
        kept = ids.kept(marked[0] if marked else None)
        highest = {}
        for name in cls.TABLES:
            (column,) = schema.metadata.tables[name].primary_key.columns
            cursor.execute(f'SELECT coalesce(max("{column.name}"), 0) FROM "{name}"')
            found = cursor.fetchone()
            highest[name] = max(int(found[0]) if found else 0, kept.get(name, 0))
        return cls(**highest)

    def copy(self) -> Counters:
        """A copy that a batch may move on and that counts only when the batch commits."""
        return Counters(**{name: getattr(self, name) for name in self.TABLES})


class Batch:
    """Collects the rows of one transaction. `flush` writes them; committing is the caller's."""

    def __init__(
        self,
        cursor: rows.Cursor,
        counters: Counters,
        *,
        run_id: int,
        context_id: int,
        session_id: int,
        reasons: Mapping[str, int],
        waiting: Set[int],
        granted: int,
        leases: LeasePolicy,
        spent: Mapping[tuple[str, str], Use] = MappingProxyType({}),
        pending: int = 0,
        max_pending: int | None = None,
        freshness: int = 0,
    ) -> None:
        self.cursor = cursor
        self.counters = counters
        self.run_id = run_id
        self.context_id = context_id
        self.session_id = session_id
        self.granted = granted
        self.leases = leases
        self.pending = pending
        """Identities of this run that stand in the queue or wait for another attempt."""
        self.max_pending = max_pending
        self.freshness = freshness
        self.fetched_before: dict[bytes, int] = {}
        """When an earlier run fetched what the new keys of this transaction stand for."""
        self.new_ranks: dict[int, int] = {}
        self.new_spent: dict[tuple[str, str], Use] = {}
        self._spent = spent
        self.refused = 0
        self.new_waiting: dict[int, bool] = {}
        self._waiting = waiting
        self.committed = Committed()
        self.standings: dict[int, Standing] = {}
        self.by_key: dict[bytes, int] = {}
        self.new_reasons: dict[str, int] = {}
        self.new_origins: dict[str, int] = {}
        self._reasons = reasons
        self._dirty: set[int] = set()
        self._transitions: list[rows.Row] = []
        self.identities: list[rows.Row] = []
        self.known_families: dict[str, int] = {}
        self.families: list[rows.Row] = []
        self.brakes: dict[int, rows.Row] = {}
        self.likeness: dict[int, rows.Row] = {}
        self.attempts: list[rows.Row] = []
        self.finished_attempts: list[rows.Row] = []
        self.renewals: dict[int, int] = {}
        self.late: list[rows.Row] = []
        self.quarantined: list[rows.Row] = []
        self.visits: list[rows.Row] = []
        self.origins: list[rows.Row] = []
        self.origin_clocks: dict[int, int] = {}
        self.rejections: list[rows.Row] = []
        self.seeds: dict[int, int] = {}
        self.robots: dict[str, rows.Row] = {}
        self.robots_texts: dict[str, bytes] = {}
        self.health: dict[str, rows.Row] = {}
        self.health_samples: list[rows.Row] = []
        self.tallies: dict[tuple[str, str], tuple[int, str | None]] = {}
        self.emissions: dict[tuple[Source, int], EmissionCount] = {}
        self.heads_wanted: dict[int, object] = {}

    def load(self, keys: Iterable[bytes], identity_ids: set[int]) -> None:
        """Read what the messages will need: ids of keys, and how the identities stand."""
        self.by_key.update(rows.identities_by_key(self.cursor, self.run_id, keys))
        self.read_standings(identity_ids.union(self.by_key.values()))

    def read_standings(self, identity_ids: Iterable[int]) -> None:
        """Learn how these identities stand, those known already aside."""
        for row in rows.standings(self.cursor, set(identity_ids).difference(self.standings)):
            self.standings[row[0]] = Standing(*row)

    def reason_id(self, code: str) -> int:
        """The number of a reason code; a new code gets one. 0 stands for no reason."""
        if not code:
            return 0
        known = self._reasons.get(code) or self.new_reasons.get(code)
        if known is None:
            self.counters.reason += 1
            known = self.new_reasons[code] = self.counters.reason
        return known

    def code_of(self, reason_id: int) -> str:
        """The code that a number stands for, "" where it is none of a reason."""
        codes = chain(self.new_reasons.items(), self._reasons.items())
        return next((code for code, number in codes if number == reason_id), "")

    def append(
        self,
        standing: Standing,
        event: Event,
        at_ms: int,
        reason: Reason = NO_REASON,
        disposition: Disposition | None = None,
        evidence: bytes | None = None,
    ) -> None:
        """Append one transition to the ledger and move the projection with it.

        Raises `IllegalTransition`, with nothing changed, where the table does not allow the event.
        """
        source = State(standing.state)
        target = advance(source, event, disposition)
        self.counters.transition += 1
        seq = self.counters.transition
        reason_id = self.reason_id(reason.code)
        ended = int(disposition or 0)
        self._transitions.append(
            (
                seq,
                standing.identity_id,
                standing.last_seq,
                standing.attempt_id,
                int(event),
                schema.from_to(source, target),
                ended,
                at_ms,
                self.context_id,
                reason_id,
                reason.detail,
                evidence,
            )
        )
        standing.state = int(target)
        standing.last_seq = seq
        standing.disposition = ended
        standing.reason_id = reason_id
        standing.due_ms = 0
        self.pending += (target in PENDING) - (source in PENDING)
        self._dirty.add(standing.identity_id)

    def has_moved(self, identity_id: int) -> bool:
        """Whether this transaction has appended a transition of this identity."""
        return identity_id in self._dirty

    def refuse(self, error: IllegalTransition, identity_id: int) -> None:
        """A move that the table does not allow: an error in the program, logged, counted and never written."""
        self.refused += 1
        logger.error(
            "Refused a move of identity %d: %s",
            identity_id,
            error,
            extra={"action": "transition_refused"},
        )

    def end_attempt(
        self, attempt_id: int, at_ms: int, outcome: str, finding: Finding | None = None
    ) -> None:
        """Note when an attempt ended, its outcome as a reason's code, and what it brought."""
        status, size, payload = (
            (None, None, None)
            if finding is None
            else (finding.status, finding.size, finding.payload)
        )
        self.finished_attempts.append(
            (attempt_id, at_ms, status, size, payload, self.reason_id(outcome))
        )

    def is_waiting(self, identity_id: int) -> bool:
        """Whether a further visit of this identity waits until the present one has ended."""
        return self.new_waiting.get(identity_id, identity_id in self._waiting)

    def set_waiting(self, identity_id: int, is_waiting: bool) -> None:
        """Note whether a further visit waits."""
        self.new_waiting[identity_id] = is_waiting

    def schedule(self, standing: Standing, payload: object = None) -> None:
        """Tell the loop, once committed, that this identity stands scheduled."""
        self.heads_wanted[standing.identity_id] = payload

    def wait_until(self, standing: Standing, due_ms: int) -> None:
        """Note the time that a retryable or deferred identity waits for."""
        standing.due_ms = due_ms
        self.committed.timed.append((due_ms, standing.identity_id))

    def use_of(self, rule: str, pattern: str) -> Use:
        """What is spent of a budget, to be changed in place."""
        use = self.new_spent.get((rule, pattern))
        if use is None:
            known = self._spent.get((rule, pattern))
            use = self.new_spent[rule, pattern] = Use() if known is None else known.copy()
        return use

    def has_reason(self, standing: Standing, *codes: str) -> bool:
        """Whether the last move of this identity was made for one of these reasons."""
        number = standing.reason_id
        return number != 0 and any(
            number == (self._reasons.get(code) or self.new_reasons.get(code)) for code in codes
        )

    def take_waiting_visit(self, identity_id: int) -> tuple[tuple[int, int, int] | None, bool]:
        """Take the oldest waiting visit: ((visit id, rank, due_ms) or None, whether others are left)."""
        self.cursor.execute(
            "SELECT visit_id, rank, due_ms FROM visit WHERE is_waiting = 1 AND identity_id = ?"
            " ORDER BY visit_id LIMIT 2",
            (identity_id,),
        )
        stored = self.cursor.fetchall()
        fresh = [row for row in self.visits if row[1] == identity_id and row[5]]
        if stored:
            self.cursor.execute(
                "UPDATE visit SET is_waiting = 0 WHERE visit_id = ?", (stored[0][0],)
            )
            number, rank, due_ms = stored[0]
            return (number, rank, due_ms), len(stored) + len(fresh) > 1
        if not fresh:
            return None, False
        taken = fresh[0]
        self.visits[self.visits.index(taken)] = (*taken[:5], 0)
        return (taken[0], taken[3], taken[4]), len(fresh) > 1

    def drop_waiting_visits(self, identity_id: int) -> None:
        """No visit of this identity waits any more."""
        if not self.is_waiting(identity_id):
            return
        self.set_waiting(identity_id, False)
        self.visits = [(*row[:5], 0) if row[1] == identity_id else row for row in self.visits]
        self.cursor.execute(
            "UPDATE visit SET is_waiting = 0 WHERE is_waiting = 1 AND identity_id = ?",
            (identity_id,),
        )

    def emission(self, source: Source, kind: int) -> EmissionCount:
        """The references of this source and kind in this transaction."""
        found = self.emissions.get((source, kind))
        if found is None:
            found = self.emissions[source, kind] = EmissionCount()
        return found

    def tally(self, kind: str, name: str, count: int = 1, example: str | None = None) -> None:
        """Add to a count that no other row carries."""
        before, first = self.tallies.get((kind, name), (0, None))
        self.tallies[kind, name] = (before + count, first if first is not None else example)

    def flush(self) -> None:
        """Write all rows, referred to before referring."""
        cursor = self.cursor
        rows.insert(
            cursor, schema.reason, [(number, code) for code, number in self.new_reasons.items()]
        )
        rows.insert(cursor, schema.origin, self.origins)
        rows.insert(cursor, schema.family, self.families)
        rows.set_brakes(cursor, self.brakes.values())
        rows.insert(cursor, schema.identity, self.identities)
        rows.insert(cursor, schema.likeness, list(self.likeness.values()), rows.LIKENESS_INSERT)
        rows.insert(cursor, schema.visit, self.visits)
        rows.insert(cursor, schema.transition, self._transitions)
        failpoints.reach("commit.ledger_written")
        self._flush_projection()
        rows.move_ranks(cursor, list(self.new_ranks.items()))
        rows.insert(cursor, schema.attempt, self.attempts)
        rows.finish_attempts(cursor, self.finished_attempts)
        rows.renew_leases(cursor, list(self.renewals.items()))
        rows.insert(cursor, schema.late, self.late)
        rows.insert(cursor, schema.quarantine, self.quarantined)
        rows.move_origin_clocks(cursor, list(self.origin_clocks.items()))
        rows.insert(cursor, schema.rejection, self.rejections)
        texts = list(self.robots_texts.items())
        rows.insert(cursor, schema.robots_text, texts, rows.ROBOTS_TEXT_INSERT)
        rows.insert(cursor, schema.robots, list(self.robots.values()), rows.ROBOTS_UPSERT)
        rows.insert(cursor, schema.health, list(self.health.values()), rows.HEALTH_UPSERT)
        rows.insert(cursor, schema.health_sample, self.health_samples)
        rows.insert(cursor, schema.seed, list(self.seeds.items()), rows.SEED_UPSERT)
        rows.insert(cursor, schema.emission, self._emission_rows())
        rows.insert(
            cursor,
            schema.budget,
            [(self.run_id, *key, *use.row()) for key, use in self.new_spent.items()],
            rows.BUDGET_UPSERT,
        )
        rows.insert(
            cursor,
            schema.tally,
            [
                (self.run_id, kind, name, n, example)
                for (kind, name), (n, example) in self.tallies.items()
            ],
            rows.TALLY_UPSERT,
        )
        self.committed.rows = len(self._transitions)
        self._fill_heads()

    def _flush_projection(self) -> None:
        dirty = [self.standings[number].row() for number in sorted(self._dirty)]
        changed = rows.insert(self.cursor, schema.current, dirty, rows.PROJECTION_UPSERT)
        if changed != len(dirty):
            raise AssertionError(
                f"{len(dirty) - changed} of {len(dirty)} projection rows are newer than this transaction"
            )

    def _emission_rows(self) -> Sequence[rows.Row]:
        made = []
        for (source, kind), count in self.emissions.items():
            self.counters.emission += 1
            total = len(count.fresh) + len(count.others) + count.rejected
            made.append(
                (
                    self.counters.emission,
                    self.run_id,
                    source.identity_id,
                    source.attempt_id,
                    kind,
                    total,
                    len(count.fresh),
                    len(count.others) - count.excluded,
                    count.excluded,
                    count.rejected,
                    edges.pack(count.fresh + count.others),
                    edges.pack_texts(count.observations) if count.observations else None,
                )
            )
        return made

    def _fill_heads(self) -> None:
        """Heads whose request did not travel with a message are read back, in one statement."""
        wanted = {
            number: payload
            for number, payload in self.heads_wanted.items()
            if self.standings[number].state == State.SCHEDULED
        }
        carried = {
            number: payload for number, payload in wanted.items() if isinstance(payload, Head)
        }
        self.committed.scheduled.extend(carried.values())
        self.committed.scheduled.extend(
            Head._make((*row, wanted[row[0]]))
            for row in rows.heads(self.cursor, wanted.keys() - carried.keys())
        )


def is_current(standing: Standing | None, lease: Lease) -> bool:
    """Whether the lease is the one in force: its generation is compared inside the transaction (invariant 3).

    It ends with the attempt: an identity that is fetched again, or is terminal, has none.
    """
    return (
        standing is not None
        and standing.state in (State.FETCHING, State.FETCHED)
        and lease.generation > 0
        and standing.generation == lease.generation
        and standing.attempt_id == lease.attempt_id
    )
