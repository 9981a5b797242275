"""Fair between origins in simulated time, the same cost for many origins, and a bounded memory."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import Head, Pick, Schedule


def crawl(
    pages: dict[int, int],
    policies: dict[int, OriginPolicy],
    *,
    concurrency: int = 16,
    response_s: float = 0.2,
    ranks: dict[int, int] | None = None,
) -> dict[int, float]:
    """Fetch `pages[origin_id]` pages of each origin, `concurrency` at a time; when each origin was done."""
    schedule = Schedule()
    now, last_id = 0.0, 0
    last: dict[int, int] = {}
    for origin_id, count in pages.items():
        schedule.ensure_origin(origin_id, str(origin_id), policies[origin_id], now)
        for _ in range(count):
            last_id += 1
            schedule.add(origin_id, Head((ranks or {}).get(origin_id, 0), last_id), now)
        last[origin_id] = last_id
    ends: list[tuple[float, int, Pick]] = []
    done: dict[int, float] = {}
    while ends or schedule.next_at(now) is not None:
        while len(ends) < concurrency and (pick := schedule.next(now)) is not None:
            schedule.charge(pick.gate_key, now, policies[pick.origin_id].interval_s)
            heapq.heappush(ends, (now + response_s, pick.head.identity_id, pick))
        for refill in schedule.refills():
            rank, first = refill.first
            end = min(first + refill.limit, last[refill.origin_id] + 1)
            heads = [Head(rank, number) for number in range(first, end)]
            schedule.refilled(refill, heads, end <= last[refill.origin_id], now)
        opens_at = schedule.next_at(now)
        if ends and (opens_at is None or len(ends) == concurrency or ends[0][0] <= opens_at):
            now, identity_id, ended = heapq.heappop(ends)
            schedule.release(ended.gate_key, now)
            if identity_id == last[ended.origin_id]:
                done[ended.origin_id] = now
        elif opens_at is not None:
            now = max(now, opens_at)
    assert done.keys() == pages.keys()
    return done


@pytest.mark.parametrize(
    "policy", [OriginPolicy(8), OriginPolicy(1), OriginPolicy(1, 0.5), OriginPolicy(8, 0.25)]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_fifty_small_hosts_beside_one_giant(policy: OriginPolicy, is_first: bool) -> None:
    """They finish within 1.5 of the time they take without it."""
    small = dict.fromkeys(range(1, 51), 20)
    giant = {0: 3000}
    policies = dict.fromkeys(range(51), policy)
    alone = max(crawl(small, policies).values())
    together = crawl(giant | small if is_first else small | giant, policies)
    assert max(together[origin_id] for origin_id in small) <= 1.5 * alone


def test_a_slow_and_more_urgent_host_does_not_hold_the_others() -> None:
    """30 requests with priority 1 to a host with a delay, 10 with priority 0 to another (FC63)."""
    done = crawl(
        {1: 30, 2: 10},
        {1: OriginPolicy(1, 0.5), 2: OriginPolicy(1)},
        concurrency=8,
        response_s=0.05,
        ranks={1: -1},
    )
    assert done[2] <= 1.0


def executed(action: Callable[[], Any]) -> int:
    """How many lines of Python the action executes."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize(
    "policy", [OriginPolicy(8), OriginPolicy(1), OriginPolicy(1, 0.25), OriginPolicy(4, 0.25)]
)
def test_the_cost_of_a_request_does_not_grow_with_the_origins(policy: OriginPolicy) -> None:
    """Add, next, charge and release execute as many lines with 2000 origins as with 20."""

    def cost(origins: int, cycles: int = 300) -> float:
        schedule = Schedule(window=20_000)
        for number in range(2 * origins):
            schedule.ensure_origin(number % origins, str(number % origins), policy, 0.0)
            schedule.add(number % origins, Head(0, number), 0.0)
        now, last_id = 0.0, 10**6

        def run() -> None:
            nonlocal now, last_id
            handed = 0
            while handed < cycles:
                now += 0.01
                pick = schedule.next(now)
                if pick is None:
                    now = schedule.next_at(now) or now
                    continue
                schedule.charge(pick.gate_key, now, policy.interval_s)
                schedule.release(pick.gate_key, now)
                last_id += 1
                schedule.add(pick.origin_id, Head(0, last_id), now)
                handed += 1

        run()
        return executed(run) / cycles

    few, many = cost(20), cost(2000)
    assert many <= 1.2 * few


class Payload:
    """Counts how many of its kind are alive."""

    alive = 0

    def __init__(self) -> None:
        Payload.alive += 1

    def __del__(self) -> None:
        Payload.alive -= 1


@pytest.mark.parametrize("origins", [1, 50, 4000])
def test_pending_requests_do_not_eat_memory(origins: int) -> None:
    """A page that yields 200,000 requests fills the window and no more (FC67)."""
    schedule = Schedule(window=1000, max_hot_origins=500)
    policy = OriginPolicy(8)
    cold = set()
    most = 0
    for number in range(200_000):
        origin_id = number % origins
        if origin_id not in cold:
            head = Head(-(number % 3), number, Payload())
            if schedule.add(origin_id, head, 0.0):
                pass
            elif schedule.ensure_origin(origin_id, str(origin_id), policy, 0.0):
                schedule.add(origin_id, head, 0.0)
            else:
                cold.add(origin_id)
                schedule.cold_waiting = len(cold)
            del head
        if number % 100 == 0:
            most = max(most, Payload.alive)
    counts = schedule.counts(0.0)
    assert most <= 1001
    assert counts.heads <= 1000
    assert counts.hot_origins <= 500
    assert counts.heads == Payload.alive
    handed: list[Pick] = []
    while (pick := schedule.next(0.0)) is not None:
        handed.append(pick)
        schedule.cancel(pick.gate_key, 0.0)
    assert len(handed) == counts.heads
