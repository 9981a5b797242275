"""Schedules for tests: made from heads, handed out, finished."""

from __future__ import annotations

from typing import Any

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import (
    Head,
    Schedule,
)

NOW = 1_700_000_000.0
ONE = OriginPolicy(1)
SLOW = OriginPolicy(1, 2.0)
MANY = OriginPolicy(8)


def key(origin_id: int) -> str:
    return f"http://{origin_id}.example"


def filled(*heads: tuple[int, int, int], policy: OriginPolicy = ONE, **sizes: Any) -> Schedule:
    """A schedule with heads (origin_id, rank, identity_id)."""
    schedule = Schedule(**sizes)
    for origin_id, rank, identity_id in heads:
        assert schedule.ensure_origin(origin_id, key(origin_id), policy, NOW)
        assert schedule.add(origin_id, Head(rank, identity_id), NOW)
    return schedule


def hand_out(schedule: Schedule, now: float = NOW) -> list[int]:
    """All identities that go out now, left reserved."""
    picks = iter(lambda: schedule.next(now), None)
    return [pick.head.identity_id for pick in picks if pick is not None]


def finish(schedule: Schedule, origin_id: int, now: float = NOW, interval_s: float = 0.0) -> None:
    schedule.charge(key(origin_id), now, interval_s)
    schedule.release(key(origin_id), now)
