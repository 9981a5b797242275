"""Between robots.txt and the gates: a URL whose turn has come is let through, excluded, or waits with its origin."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier.robots import WAIVER, OriginRobots, Robots, reason_data
from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.policy.robots import ROBOTS_PENDING, Decision, Ruling
from scrapy_frontier.scheduling import GateState
from scrapy_frontier.states import Event
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import Head, Message, Read, Reason, Tally, Transit

if TYPE_CHECKING:
    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.closed import ClosedOrigins
    from scrapy_frontier.scheduling import Schedule
    from scrapy_frontier.store.writer import Writer

CHUNK: Final = 500

ROBOTS: Final = "robots"
"""Why an origin is closed whose robots.txt could not be had."""


class RobotsGates:
    """Asks `robots` of each URL before it is dispatched, and keeps the gates of those that wait shut."""

    def __init__(
        self,
        schedule: Schedule,
        writer: Writer,
        clock: Clock,
        base_policy: Callable[[str], OriginPolicy],
        closed: ClosedOrigins,
    ) -> None:
        self._schedule = schedule
        self._writer = writer
        self._clock = clock
        self.robots: Robots | None = None
        self._base_policy = base_policy
        self._deferred: Counter[int] = Counter()
        self.floors: dict[str, float] = {}
        """Seconds that Crawl-delay keeps between the requests of a gate."""
        self.changed_floor: Callable[[str], None] = lambda _: None
        """Told of each gate whose policy has changed."""
        self._closed = closed

    @property
    def deferred_count(self) -> int:
        """URLs that wait for a robots.txt beside a gate which they share with other origins."""
        return sum(self._deferred.values())

    @property
    def is_waiting(self) -> bool:
        """Whether any of them may still be let go in this run."""
        return any(
            count for origin_id, count in self._deferred.items() if origin_id not in self._closed
        )

    def ruling(self, head: Head, gate_key: str) -> tuple[Ruling, str | None]:
        """What becomes of a URL whose turn has come, and the inputs of that decision for the ledger.

        `FORBIDDEN`: it is excluded now. `WAITING`: it goes back to its place; where its gate belongs to its origin
        alone that is shut, else the URL is deferred until the origin's robots.txt is there.
        """
        if self.robots is None:
            return Ruling.ALLOWED, None
        origin = head.origin.partition(" (")[0]
        decision = self.robots.decide(origin, head.url, is_waived=_is_waived(head))
        if decision.ruling is Ruling.ALLOWED:
            if decision.operator.waiver:
                self._writer.send(Tally("waiver", WAIVER, 1, head.url))
            return Ruling.ALLOWED, _brief(decision)
        if decision.ruling is Ruling.FORBIDDEN:
            reason = Reason(decision.rule, reason_data(decision))
            self._send(Transit([head.identity_id], Event.EXCLUDE, reason, self._now_ms()))
            return Ruling.FORBIDDEN, None
        if gate_key == origin:
            now = self._clock.now()
            self._schedule.close(gate_key, GateState.ROBOTS_PENDING, now)
        self.robots.want(origin, (head.origin_id, gate_key))
        return Ruling.WAITING, None

    def defers(self, head: Head, gate_key: str) -> bool:
        """Whether a waiting URL was deferred, because others must not wait at its gate."""
        if gate_key == head.origin:
            return False
        self._deferred[head.origin_id] += 1
        reason = Reason(ROBOTS_PENDING)
        self._send(Transit([head.identity_id], Event.DEFER, reason, self._now_ms()))
        return True

    def policy(self, gate_key: str) -> OriginPolicy:
        """The policy of a gate with what Crawl-delay asks for: never a shorter interval."""
        policy = self._base_policy(gate_key)
        floor_s = self.floors.get(gate_key, 0.0)
        if floor_s <= policy.interval_s * policy.jitter[0]:
            return policy
        return replace(policy, interval_s=max(floor_s, policy.interval_s), jitter=(1.0, 1.0))

    def settled(self, found: OriginRobots) -> None:
        """It is known how an origin stands."""
        now, record = self._clock.now(), found.record
        can_judge = found.can_judge(now)
        for origin_id, gate_key in found.queues.items():
            is_own = gate_key == found.origin
            if can_judge:
                self._keep_delay(found, gate_key)
                self._release_deferred(origin_id)
                self._closed.reopen(origin_id, ROBOTS)
                if is_own:
                    self._schedule.reopen(gate_key, now, GateState.ROBOTS_PENDING)
                    self._schedule.reopen(gate_key, now, GateState.ROBOTS_UNAVAILABLE)
            elif record.is_closed:
                self._close(origin_id, gate_key, now, is_own=is_own)
            elif not is_own:
                # No gate of its own that would open when the time has come.
                assert self.robots is not None
                delay_s = max(0.1, record.next_try_at - now)
                loop = asyncio.get_running_loop()
                loop.call_later(delay_s, self.robots.want, found.origin)
            else:
                until = max(record.next_try_at, now + 0.1)
                self._schedule.hold(gate_key, until, GateState.ROBOTS_UNAVAILABLE, now)
                self._schedule.reopen(gate_key, now, GateState.ROBOTS_PENDING)

    def changed(self, found: OriginRobots) -> None:
        """Judge again what an origin's robots.txt had excluded; what waits there is judged when its turn comes."""
        for origin_id in found.queues:
            self._judge_from(found, origin_id, 0)

    def _keep_delay(self, found: OriginRobots, gate_key: str) -> None:
        assert self.robots is not None
        if found.judge is None:
            return
        rules = self.robots.rules
        floor = found.judge.interval_floor(rules.agent.token, rules.delay_cap_s)
        if floor is None:
            self.floors.pop(gate_key, None)
        else:
            self.floors[gate_key] = floor.floor_s
        self.changed_floor(gate_key)

    def _close(self, origin_id: int, gate_key: str, now: float, *, is_own: bool) -> None:
        if is_own:
            self._schedule.close(gate_key, GateState.CLOSED, now)
            self._schedule.reopen(gate_key, now, GateState.ROBOTS_PENDING)
        self._closed.close(origin_id, ROBOTS)

    def _release_deferred(self, origin_id: int) -> None:
        self._writer.send(
            Read(
                partial(rows.deferred_by, origin_id=origin_id, code=ROBOTS_PENDING),
                partial(self._release, origin_id),
            )
        )

    def _release(self, origin_id: int, identity_ids: list[int]) -> None:
        if identity_ids:
            self._deferred[origin_id] -= len(identity_ids)
            self._send(
                Transit(identity_ids, Event.RELEASE, Reason("robots.settled"), self._now_ms())
            )

    def _judge_from(self, found: OriginRobots, origin_id: int, after: int) -> None:
        query = partial(rows.excluded_by_robots, origin_id=origin_id, after=after, limit=CHUNK)
        self._writer.send(Read(query, partial(self._judge, found, origin_id)))

    def _judge(self, found: OriginRobots, origin_id: int, part: list[tuple[int, str, int]]) -> None:
        assert self.robots is not None
        for identity_id, url, is_waived in part:
            decision = self.robots.decide(found.origin, url, is_waived=bool(is_waived))
            reason = Reason(decision.rule, reason_data(decision))
            if decision.ruling is Ruling.ALLOWED:
                self._send(Transit([identity_id], Event.READMIT, reason, self._now_ms()))
        if len(part) >= CHUNK:
            self._judge_from(found, origin_id, part[-1][0])

    def _send(self, message: Message) -> None:
        self._writer.send(message)

    def _now_ms(self) -> int:
        return milliseconds(self._clock.now())


def _is_waived(head: Head) -> bool:
    meta = getattr(head.payload, "meta", None)
    if meta is not None:
        return bool(meta.get(WAIVER))
    return head.record is not None and f'"{WAIVER}":true' in head.record


def _brief(decision: Decision) -> str | None:
    """Which line of which copy lets a URL through; nothing where no line does."""
    verdict = decision.protocol.verdict
    if decision.operator.waiver:
        return reason_data(decision)
    if verdict is None or verdict.line_number is None or decision.record is None:
        return None
    return f'{{"robots": "{decision.record.digest[:16]}", "line": {verdict.line_number}}}'
