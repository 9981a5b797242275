"""Between the store and the schedule: fills the window, releases what has become due, and says when
to wake.

All of it runs on the event loop. Questions to the store travel through the writer, so that an answer shows every
message sent before the question.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier.backpressure import Backpressure
from scrapy_frontier.frontier.closed import ClosedOrigins
from scrapy_frontier.frontier.cold import LIMIT, ColdOrigins
from scrapy_frontier.frontier.health import Health
from scrapy_frontier.frontier.promotion import Promotion
from scrapy_frontier.frontier.robots_gates import RobotsGates
from scrapy_frontier.identity import host_of
from scrapy_frontier.policy.politeness import OriginPolicy, PolitenessRules, draw_interval
from scrapy_frontier.policy.robots import Ruling
from scrapy_frontier.scheduling import DueQueue, DueRefill, GateState, Refill, Schedule
from scrapy_frontier.scheduling import Head as Scheduled
from scrapy_frontier.scheduling import Pick as Picked
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import (
    Committed,
    Due,
    Head,
    HoldBack,
    OriginTiming,
    Read,
    Reason,
)
from scrapy_frontier.store.rows import cursor_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.families import Families
    from scrapy_frontier.frontier.spending import Spending
    from scrapy_frontier.policy.health import HealthRules
    from scrapy_frontier.scheduling.counts import Counts
    from scrapy_frontier.seams import Waker
    from scrapy_frontier.store.writer import Writer

DUE_LIMIT: Final = 10_000
"""Waiting times held in memory; later ones stay in the store."""

FIRST_HEADS: Final = 64
"""Heads read when an origin comes into memory."""


HELD_AT_ONCE: Final = 500
"""URLs of held families that one call passes over at the most, so that the loop is not kept for long."""


class Pick(NamedTuple):
    """A URL whose turn it is, with a place at its origin's gate."""

    head: Head
    gate_key: str
    reason: Reason


class Dispatch:
    """Owns the schedule of an open run."""

    def __init__(
        self,
        schedule: Schedule,
        politeness: PolitenessRules,
        writer: Writer,
        clock: Clock,
        waker: Waker,
        run_id: int,
        random_source: random.Random,
        spending: Spending,
        max_pending: int | None = None,
        health: HealthRules | None = None,
        link_points: int = 0,
    ) -> None:
        self._schedule = schedule
        self._writer = writer
        self._clock = clock
        self._waker = waker
        waker.after_ring = self.collect_grants
        self._run_id = run_id
        self._random = random_source
        self._due = DueQueue(DUE_LIMIT, more_in_store=True)
        self._cold = ColdOrigins()
        self._kept: dict[str, float] = {}
        """Instants before which an earlier process would have sent nothing, of gates not in memory since."""
        self._waiters: dict[object, asyncio.Future[None]] = {}
        self._volatile: dict[int, list[object]] = {}
        base_policy = lru_cache(maxsize=4096)(partial(_policy_of, politeness))
        self.on_forbidden: Callable[[Head], None] = lambda _: None
        """Told of each URL that robots.txt keeps from being handed out."""
        self.closed: ClosedOrigins = ClosedOrigins(writer, run_id)
        self.robots = RobotsGates(schedule, writer, clock, base_policy, self.closed)
        self.health: Health = Health(
            health,
            schedule,
            writer.send,
            clock,
            self.robots.policy,
            self.closed.close,
            self._keep_timing,
        )
        self.robots.changed_floor = self.health.refresh
        self._policy = self.health.policy
        self._spending = spending
        self.promotion: Promotion = Promotion(writer, link_points, self._move)
        self.backpressure: Backpressure = Backpressure(writer, clock, run_id, max_pending)
        self.families: Families | None = None
        """Knows which families are held."""
        self.scheduled: int = 0
        """Identities in state `scheduled`, in memory or in the store, not handed out."""
        self.by_band: list[int] = [0] * len(schedule.bands)
        """The same by priority band, the most urgent first."""
        self.timed: int = 0
        """Identities that wait for a time."""
        self.handed_out: int = 0

    def __repr__(self) -> str:
        return f"<Dispatch {self.scheduled} scheduled, {self.timed} timed, {self._schedule!r}>"

    @property
    def is_pending(self) -> bool:
        """Whether anything is left to hand out, now or later in this run."""
        return (
            self.scheduled > self.closed.scheduled
            or self.timed > self.closed.timed
            or self.backpressure.held_back > 0
            or self.robots.is_waiting
        )

    @property
    def has_unresolved(self) -> bool:
        """Whether a resumed run would find something to do."""
        waiting = self.scheduled + self.timed + self.backpressure.held_back
        return waiting > 0 or self.robots.deferred_count > 0

    @property
    def heads(self) -> int:
        """Scheduled URLs held in memory."""
        return self._schedule.heads

    @property
    def hot_origins(self) -> int:
        """Origins held in memory."""
        return self._schedule.hot_origins

    def counts(self) -> Counts:
        """The schedule in numbers; takes time in proportion to the origins in memory."""
        return self._schedule.counts(self._clock.now())

    def resume(self, connection: Connection) -> None:
        """Learn what the store holds of this run, before anything is handed out."""
        cursor, now = cursor_of(connection), self._clock.now()
        self.scheduled, self.timed = rows.waiting_counts(cursor, self._run_id)
        for origin, next_ms in rows.timings_after(cursor, self._run_id, milliseconds(now)):
            gate_key = gate_key_of(origin)
            self._kept[gate_key] = max(next_ms / 1000, self._kept.get(gate_key, 0.0))
        bands = self._schedule.bands
        ranges = [bands.ranks(band) for band in range(len(bands))]
        self.by_band = rows.scheduled_by_ranks(cursor, self._run_id, ranges)
        self.backpressure.held_back = rows.count_held_back(cursor, self._run_id)
        self._cold.load(rows.scheduled_origins(cursor, self._run_id, LIMIT + 1), lambda _: False)
        self._schedule.cold_waiting = len(self._cold)
        self.health.load(rows.troubled_gates(cursor, self._run_id))

    # Out of the store

    def take(self, committed: Committed) -> None:
        """What a commit has made ready, or has set a time for."""
        now = self._clock.now()
        for head in committed.scheduled:
            self._count(head, 1)
            if not self.closed.arrived(head.origin_id):
                self._add(head, now)
        self.backpressure.held_back += committed.held_back
        for due_ms, identity_id in committed.timed:
            self.timed += 1
            self._due.add(due_ms / 1000, identity_id)

    def keep_volatile(self, identity_id: int, request: object) -> None:
        """Hold the only copy of a request that cannot be stored."""
        self._volatile.setdefault(identity_id, []).append(request)

    def _add(self, head: Head, now: float) -> None:
        if head.record is None:
            # The window may leave a head to the store, and its payload with it.
            head = head._replace(payload=None)
        entry = Scheduled(head.rank, head.identity_id, head)
        if self._schedule.add(head.origin_id, entry, now):
            return
        if head.origin_id not in self._cold and not self._cold.overflows:
            gate_key = gate_key_of(head.origin)
            made = self._schedule.ensure_origin(
                head.origin_id,
                gate_key,
                self._policy(gate_key),
                now,
                next_eligible_at=self._kept.get(gate_key, 0.0),
            )
            if made and self._schedule.add(head.origin_id, entry, now):
                return
        self._cold.put(head.origin_id, head.origin)
        self._schedule.cold_waiting = len(self._cold)

    def _move(self, head: Head, rank_before: int) -> None:
        """A head has another place in its queue."""
        now = self._clock.now()
        self.by_band[self._schedule.bands.band_of(rank_before)] -= 1
        self.by_band[self._schedule.bands.band_of(head.rank)] += 1
        self._schedule.discard(head.origin_id, head.identity_id, now)
        self._add(head, now)

    def _ask(self, now: float) -> None:
        """Send the questions to the store that are due."""
        for refill in self._schedule.refills():
            self._writer.send(
                Read(partial(_read_lane, refill=refill), partial(self._refilled, refill))
            )
        for rotated in self._schedule.rotated(now):
            self._cold.put(rotated.origin_id, None)
            self._schedule.cold_waiting = len(self._cold)
            self._keep_timing(rotated.origin_id, rotated.gate.next_eligible_at, now)
        for _ in range(self._schedule.wants_activation(now)):
            cold = self._cold.pop()
            if cold is None:
                break
            origin_id, origin = cold
            self._schedule.cold_waiting = len(self._cold)
            if self._schedule.is_hot(origin_id):
                continue
            self._schedule.activating(origin_id)
            self._writer.send(
                Read(
                    partial(_read_origin, origin_id=origin_id),
                    partial(self._activated, origin_id, origin),
                )
            )
        if self._cold.wants_load:
            self._cold.is_loading = True
            search = partial(rows.scheduled_origins, run_id=self._run_id, limit=LIMIT + 1)
            self._writer.send(Read(search, self._found_cold))
        question = self._due.refill()
        if question is not None:
            self._writer.send(
                Read(
                    partial(_read_due, run_id=self._run_id, question=question),
                    partial(self._due_refilled, question.limit),
                )
            )

    def _found_cold(self, found: list[tuple[int, str]]) -> None:
        self._cold.load(found, self._schedule.is_hot)
        self._schedule.cold_waiting = len(self._cold)
        self._waker.wake()

    def _refilled(self, refill: Refill, found: list[Head]) -> None:
        heads = [Scheduled(head.rank, head.identity_id, head) for head in found]
        self._schedule.refilled(refill, heads, len(found) >= refill.limit, self._clock.now())

    def _activated(self, origin_id: int, origin: str | None, answer: _OriginRead) -> None:
        bands = self._schedule.bands
        by_band: dict[int, list[Scheduled]] = {}
        for head in answer.heads:
            entry = Scheduled(head.rank, head.identity_id, head)
            by_band.setdefault(bands.band_of(head.rank), []).append(entry)
        lanes: list[tuple[int, Iterable[Scheduled], bool]] = [
            (band, entries, False) for band, entries in sorted(by_band.items())
        ]
        if len(answer.heads) >= FIRST_HEADS:
            band, entries, _ = lanes.pop()
            lanes.append((band, entries, True))
            lanes.extend((later, (), True) for later in range(band + 1, len(bands)))
        gate_key = gate_key_of(origin or answer.origin)
        self._schedule.activate(
            origin_id,
            gate_key,
            self._policy(gate_key),
            lanes,
            self._clock.now(),
            next_eligible_at=max(answer.next_eligible_ms / 1000, self._kept.get(gate_key, 0.0)),
        )

    def _due_refilled(self, limit: int, found: list[rows.Row]) -> None:
        self._due.refilled([(ms / 1000, number) for ms, number in found], len(found) >= limit)

    # To the engine

    def next(self) -> Pick | None:
        """The URL whose turn it is, its gate's place taken; None while nothing may go out."""
        now = self._clock.now()
        self._release_due(now)
        self.closed.recount(self.timed, now)
        # What closed origins have makes no room, and none is made for it.
        waiting = self.scheduled - self.closed.scheduled + self.timed - self.closed.timed
        self.backpressure.relieve(max(0, waiting))
        self._ask(now)
        held = 0
        while (pick := self._schedule.next(now)) is not None:
            head = pick.head.payload
            assert isinstance(head, Head)
            self.promotion.forget(head.identity_id)
            breach = self._spending.breach(head.origin.partition(" (")[0])
            if breach is not None and not self._is_released(head):
                self._schedule.cancel(pick.gate_key, now)
                self._writer.send(HoldBack(head.identity_id, breach, milliseconds(now)))
                self._count(head, -1)
                continue
            ruling, inputs = self.robots.ruling(head, pick.gate_key)
            reason = self._brake(head) if ruling is Ruling.ALLOWED else None
            if ruling is Ruling.ALLOWED and reason is None:
                return self._take(pick, head, inputs)
            self._schedule.cancel(pick.gate_key, now)
            if reason is not None and self.families is not None:
                self.families.defer(head, reason)
                self._count(head, -1)
                held += 1
                if held == HELD_AT_ONCE:
                    self._waker.wake()
                    break
                continue
            if ruling is Ruling.FORBIDDEN:
                self.on_forbidden(self._with_request(head))
            if ruling is Ruling.FORBIDDEN or self.robots.defers(head, pick.gate_key):
                self._count(head, -1)
            else:
                self._schedule.add(pick.origin_id, pick.head, now)
        self.collect_grants()
        return None

    def _count(self, head: Head, change: int) -> None:
        """A head has joined the queue, or has left it."""
        self.scheduled += change
        self.by_band[self._schedule.bands.band_of(head.rank)] += change

    def _is_released(self, head: Head) -> bool:
        return self.families is not None and head.identity_id in self.families.released

    def _brake(self, head: Head) -> Reason | None:
        return None if self.families is None else self.families.hold(head)

    def _take(self, pick: Picked, head: Head, inputs: str | None) -> Pick:
        self._count(head, -1)
        self.handed_out += 1
        band = self._schedule.bands.band_of(head.rank)
        return Pick(self._with_request(head), pick.gate_key, Reason(f"band.{band}", inputs))

    def _with_request(self, head: Head) -> Head:
        """The head with its live request, where memory holds the only copy of that."""
        if head.payload is None and head.record is None:
            return head._replace(payload=self._take_volatile(head.identity_id))
        return head

    def next_delay_s(self) -> float | None:
        """Seconds until time alone lets something out; None where it does not."""
        now = self._clock.now()
        times = [at for at in (self._schedule.next_at(now), self._due.next_at()) if at is not None]
        return max(0.0, min(times) - now) if times else None

    def _release_due(self, now: float) -> None:
        due = self._due.pop_due(now)
        if due:
            self._writer.send(Due(due, milliseconds(now), self._came_due))

    def _came_due(self, count: int) -> None:
        self.timed -= count

    def _take_volatile(self, identity_id: int) -> object:
        kept = self._volatile.get(identity_id)
        if not kept:
            return None
        request = kept.pop(0)
        if not kept:
            del self._volatile[identity_id]
        return request

    # Gates

    def charge(self, gate_key: str, origin_id: int) -> None:
        """A request reaches the wire: its origin's interval runs from now."""
        now = self._clock.now()
        interval_s = draw_interval(self._policy(gate_key), self._random)
        self._keep_timing(origin_id, self._schedule.charge(gate_key, now, interval_s), now)

    def release(self, gate_key: str, origin_id: int) -> None:
        """A request has left the wire."""
        now = self._clock.now()
        self._keep_timing(origin_id, self._schedule.release(gate_key, now), now)
        self._stir()

    def hold_back(self, gate_key: str, origin_id: int, until_ms: int) -> None:
        """An origin asks to be left alone: its gate stays shut until then, also over a restart."""
        now = self._clock.now()
        until = until_ms / 1000
        self._schedule.hold(gate_key, until, GateState.BACKOFF, now)
        self._keep_timing(origin_id, until, now)

    def cancel(self, gate_key: str) -> None:
        """A request that was handed out does not reach the wire."""
        self._schedule.cancel(gate_key, self._clock.now())
        self._stir()

    async def take_place(self, gate_key: str, *, past_robots: bool = False) -> None:
        """Wait for a place at a gate, for a request that does not come from the schedule."""
        token = object()
        now = self._clock.now()
        policy = self._policy(gate_key)
        kept = self._kept.get(gate_key, 0.0)
        if self._schedule.want_permit(
            gate_key, token, now, policy=policy, next_eligible_at=kept, past_robots=past_robots
        ):
            return
        granted = self._waiters[token] = asyncio.get_running_loop().create_future()
        self._stir()
        try:
            await granted
        except asyncio.CancelledError:
            if self._waiters.pop(token, None) is None or not self._schedule.forget_permit(
                token, self._clock.now()
            ):
                self.cancel(gate_key)
            raise

    def collect_grants(self) -> None:
        """Tell those whose place has become free."""
        if not self._waiters:
            return
        for token in self._schedule.grants(self._clock.now()):
            waiter = self._waiters.pop(token, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if self._waiters:
            delay_s = self.next_delay_s()
            if delay_s is not None:
                self._waker.wake_in(max(delay_s, 0.001))

    def abandon(self, error: Exception) -> None:
        """The crawl is being stopped: those who wait for a place get `error` in its place."""
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_exception(error)
        self._waiters.clear()

    def _stir(self) -> None:
        """Something has changed at a gate: let the engine ask first, then serve those who wait beside it."""
        self._waker.wake()
        if self._waiters:
            self._waker.call_soon(self.collect_grants)

    def _keep_timing(self, origin_id: int, next_eligible_at: float, now: float) -> None:
        if next_eligible_at > now:
            self._writer.send(OriginTiming(origin_id, milliseconds(next_eligible_at)))


class _OriginRead(NamedTuple):
    """What the store knows of an origin that comes into memory."""

    origin: str
    next_eligible_ms: int
    heads: list[Head]


def gate_key_of(origin: str) -> str:
    """The gate of a queue: the origin, or the name of the `download_slot` in brackets behind it."""
    return origin.partition(" (")[2][:-1] or origin


def _policy_of(politeness: PolitenessRules, gate_key: str) -> OriginPolicy:
    return politeness.for_origin(gate_key, host_of(gate_key) if "://" in gate_key else "")


def _read_lane(cursor: rows.Cursor, refill: Refill) -> list[Head]:
    found = rows.lane_heads(cursor, refill.origin_id, refill.first, refill.rank_max, refill.limit)
    return [Head(*row) for row in found]


def _read_origin(cursor: rows.Cursor, origin_id: int) -> _OriginRead:
    cursor.execute("SELECT origin, next_eligible_ms FROM origin WHERE origin_id = ?", (origin_id,))
    origin, next_eligible_ms = cursor.fetchall()[0]
    found = rows.lane_heads(cursor, origin_id, (-rows.RANKS, 0), rows.RANKS, FIRST_HEADS)
    return _OriginRead(origin, next_eligible_ms, [Head(*row) for row in found])


def _read_due(cursor: rows.Cursor, run_id: int, question: DueRefill) -> list[rows.Row]:
    due_at, identity_id = question.first
    first = (max(0, round(due_at * 1000)) if due_at > 0 else 0, identity_id)
    return rows.due_times(cursor, run_id, first, question.limit)
