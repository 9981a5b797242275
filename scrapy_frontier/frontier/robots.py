"""Robots.txt of the origins of a run: who may be dispatched, who waits, and when it is asked for again.

Each URL is judged when its turn has come, by the record then in force (RFC 9309; design, invariant 8). While a record
is wanted, its origin's gate is shut, so that no URL of it holds a place. Records live in the store, for all its runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier import failpoints
from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier.robots_fetch import RobotsFetcher
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.robots import (
    AgentToken,
    Decision,
    Group,
    Judge,
    OperatorPolicy,
    RecordUnreadable,
    RobotsPolicy,
    RobotsRecord,
    RobotsState,
    TextMissing,
    after_fetch,
    changes_rulings,
    classify,
    decide,
    dump,
    load,
    reopen,
    reread,
)
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import Read, RobotsFetched

if TYPE_CHECKING:
    from scrapy_frontier.clock import Clock
    from scrapy_frontier.store.writer import Writer

logger = get_logger(__name__)

KEPT: Final = 5_000
"""Origins whose records are held in memory; others are read again from the store."""

WAIVER: Final = "dont_obey_robotstxt"


@dataclass(slots=True)
class OriginRobots:
    """What this process knows of one origin's robots.txt, and who waits for it."""

    origin: str
    judge: Judge | None = None
    is_busy: bool = False
    queues: dict[int, str] = field(default_factory=dict)
    """Queues of the origin that are shut because of it: origin id to gate."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def record(self) -> RobotsRecord:
        """The record, an empty one where nothing is known."""
        return RobotsRecord(self.origin) if self.judge is None else self.judge.record

    def can_judge(self, now: float) -> bool:
        """Whether URLs of the origin are allowed or forbidden now, and none has to wait."""
        record = self.record
        return record.state is not RobotsState.DISALLOW_ALL and record.is_in_force(now)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What a crawl brings along: its name, its manners, and what its operator adds."""

    agent: AgentToken
    policy: RobotsPolicy
    delay_cap_s: float
    operator: Group | None = None


class Robots:
    """Judges URLs, and keeps the records up to date.

    `settled` is called whenever it is known how an origin stands, `changed` when its URLs must be judged again,
    `parsed` when a new text has come. `judge_of` makes the judge of a record.
    """

    def __init__(
        self,
        rules: RobotsRules,
        fetcher: RobotsFetcher,
        writer: Writer,
        clock: Clock,
        random_source: random.Random,
        *,
        settled: Callable[[OriginRobots], None],
        changed: Callable[[OriginRobots], None],
        parsed: Callable[[RobotsRecord], Awaitable[None]],
        judge_of: Callable[[RobotsRecord], Judge] = Judge,
    ) -> None:
        self.rules = rules
        self.fetcher = fetcher
        self._writer = writer
        self._clock = clock
        self._random = random_source
        self._settled = settled
        self._changed = changed
        self._parsed = parsed
        self._judge_of = judge_of
        self._origins: OrderedDict[str, OriginRobots] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._operator = OperatorPolicy(rules=rules.operator)
        self._waived = OperatorPolicy(waiver=WAIVER, rules=rules.operator)

    def decide(self, origin: str, url: str, *, is_waived: bool) -> Decision:
        """What robots.txt and the operator say of a URL now."""
        operator = self._waived if is_waived else self._operator
        found = self._origins.get(origin)
        now, token = self._clock.now(), self.rules.agent.token
        if found is None or found.judge is None:
            return decide(None, token, url, operator, now)
        return found.judge.decide(token, url, now, operator)

    def want(self, origin: str, queue: tuple[int, str] | None = None) -> OriginRobots:
        """A decision is wanted and cannot be had: see to it. `queue`: (origin id, gate) that is shut meanwhile."""
        found = self._find(origin)
        if queue is not None:
            found.queues[queue[0]] = queue[1]
        if found.is_busy:
            return found
        found.is_busy = True
        if found.judge is None:
            question = partial(rows.robots_record, origin=origin)
            self._writer.send(Read(question, partial(self._loaded, found)))
        else:
            self._go_on(found)
        return found

    async def settle(self, origin: str) -> None:
        """Wait until it is known how an origin stands, one way or the other."""
        found = self._find(origin)
        settled = asyncio.get_running_loop().create_future()
        found.waiters.append(settled)
        self.want(origin)
        await settled

    def _find(self, origin: str) -> OriginRobots:
        found = self._origins.get(origin)
        if found is None:
            found = self._origins[origin] = OriginRobots(origin)
            self._forget_old()
        self._origins.move_to_end(origin)
        return found

    def _forget_old(self) -> None:
        for _ in range(min(2, len(self._origins) - KEPT)):
            origin, oldest = next(iter(self._origins.items()))
            if oldest.is_busy or oldest.waiters or oldest.record.is_closed:
                self._origins.move_to_end(origin)
            else:
                del self._origins[origin]

    def _loaded(self, found: OriginRobots, row: tuple[str, bytes | None] | None) -> None:
        if row is not None:
            try:
                # What an earlier run has given up is tried again.
                found.judge = self._judge_of(reread(reopen(load(*row))))
            except (RecordUnreadable, TextMissing) as error:
                logger.error(
                    "The stored robots.txt of %s cannot be read and is fetched again: %s",
                    found.origin,
                    error,
                    extra={"action": "robots_unreadable"},
                )
        self._go_on(found)

    def _go_on(self, found: OriginRobots) -> None:
        if found.record.needs_fetch(self._clock.now()):
            self._start(self._fetch(found))
        else:
            self._finish(found)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # A context of its own: it belongs to no page and no attempt.
        loop = asyncio.get_running_loop()
        task = contextvars.Context().run(loop.create_task, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(self, found: OriginRobots) -> None:
        old = found.record
        fetched = await self.fetcher.fetch(old)
        failpoints.reach("robots.before")
        now = self._clock.now()
        outcome = classify(fetched, has_copy=old.has_copy)
        record = after_fetch(old, outcome, now, self.rules.policy, self._random)
        text = record.text if record.digest and record.digest != old.digest else None
        self._writer.send(
            RobotsFetched(found.origin, dump(record), record.digest, text, milliseconds(now))
        )
        failpoints.reach("robots.sent")
        found.judge = self._judge_of(record)
        logger.debug(
            "robots.txt of %s: %s, %s",
            found.origin,
            record.state.label,
            record.trouble or record.reason,
            extra={"action": "robots_fetched"},
        )
        if text is not None:
            await self._parsed(record)
        if old.tried_at is not None and changes_rulings(old, record):
            self._changed(found)
        self._finish(found)

    def _finish(self, found: OriginRobots) -> None:
        found.is_busy = False
        record, now = found.record, self._clock.now()
        if found.waiters and not found.can_judge(now) and not record.is_closed:
            # Nobody asks for those who wait beside the queues when the time has come.
            delay_s = max(0.1, record.next_try_at - now)
            asyncio.get_running_loop().call_later(delay_s, self.want, found.origin)
        else:
            waiters, found.waiters = found.waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        self._settled(found)


def reason_data(decision: Decision) -> str:
    """The inputs of a decision, as the ledger keeps them."""
    return json.dumps(decision.as_data(), ensure_ascii=False)
