"""Servers as they behave under load: workers with a queue, rate limiters, outages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heapify, heapreplace
from random import Random
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class Outage:
    """From when until when, in seconds from the start, a server does not answer, and how: `how` is
    "refused", "reset", "timeout" or an HTTP status as text.
    """

    begins_s: float
    ends_s: float = math.inf
    how: str = "refused"


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """How one server behaves.

    `workers` requests are served at a time, each for `service_s` seconds on average; the others
    wait, so that latency rises with what is in flight. `rate` requests a second are let through by
    a token bucket that holds `burst`; the others get 429 with Retry-After. From `slower_after_s` on
    everything takes `slower_by` times as long. Connections break: `breaks` of them by chance, and
    each beyond `backlog` that wait for a worker.
    """

    workers: int = 64
    service_s: float = 0.05
    rate: float | None = None
    burst: float = 1.0
    outages: tuple[Outage, ...] = ()
    slower_after_s: float = math.inf
    slower_by: float = 1.0
    breaks: float = 0.0
    backlog: int | None = None

    def capacity(self, limit: int, interval_s: float = 0.0) -> float:
        """Requests a second that it can answer to a client with so many in flight and that interval:
        what an oracle would send.
        """
        by_workers = min(self.workers, limit) / self.service_s
        by_rate = math.inf if self.rate is None else self.rate
        by_interval = 1 / interval_s if interval_s else math.inf
        return min(by_workers, by_rate, by_interval)


class Reply(NamedTuple):
    """What a request comes to: a status or a failure's kind, when, and the Retry-After that is sent."""

    at: float
    status: int
    failure: str = ""
    retry_after: str = ""


REFUSED_IN_S: Final = 0.002
"""What it takes to be turned away."""


class SimulatedServer:
    """One server by its plan. Draws from its own source: what others do does not change it."""

    def __init__(self, plan: ServerPlan, started_at: float, seed: str, timeout_s: float) -> None:
        self.plan = plan
        self._started_at = started_at
        self._random = Random(seed)
        self._timeout_s = timeout_s
        self._free_at = [started_at] * plan.workers
        heapify(self._free_at)
        self._tokens = plan.burst
        self._filled_at = started_at

    def ask(self, now: float) -> Reply:
        """A request arrives."""
        outage = self.outage(now)
        if outage is not None:
            return self._out(outage, now)
        wait_s = self._take_token(now)
        if wait_s > 0:
            return Reply(now + REFUSED_IN_S, 429, retry_after=str(math.ceil(wait_s)))
        if self._breaks(now):
            return Reply(now + REFUSED_IN_S, 0, "reset")
        service_s = self.plan.service_s * self._random.uniform(0.8, 1.2)
        if now - self._started_at >= self.plan.slower_after_s:
            service_s *= self.plan.slower_by
        ends_at = max(now, self._free_at[0]) + service_s
        heapreplace(self._free_at, ends_at)
        if ends_at - now > self._timeout_s:
            return Reply(now + self._timeout_s, 0, "timeout")
        return Reply(ends_at, 200)

    def _breaks(self, now: float) -> bool:
        """Whether the connection of a request that arrives now breaks."""
        plan = self.plan
        if plan.backlog is not None and self._free_at[0] > now:
            waiting = (self._free_at[0] - now) * plan.workers / plan.service_s
            if waiting > plan.backlog:
                return True
        return bool(plan.breaks) and self._random.random() < plan.breaks

    def outage(self, now: float) -> Outage | None:
        """The outage that is on, if any."""
        since_s = now - self._started_at
        outages = self.plan.outages
        return next((o for o in outages if o.begins_s <= since_s < o.ends_s), None)

    def _out(self, outage: Outage, now: float) -> Reply:
        if outage.how.isdigit():
            return Reply(now + REFUSED_IN_S, int(outage.how))
        wait_s = self._timeout_s if outage.how == "timeout" else REFUSED_IN_S
        return Reply(now + wait_s, 0, outage.how)

    def _take_token(self, now: float) -> float:
        """Seconds until the bucket has a token; 0 where one was taken."""
        if self.plan.rate is None:
            return 0.0
        filled = self._tokens + (now - self._filled_at) * self.plan.rate
        self._tokens = min(self.plan.burst, filled)
        self._filled_at = now
        if self._tokens >= 1 - 1e-9:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self.plan.rate
