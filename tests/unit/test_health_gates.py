"""Health at the gates: what came of requests becomes the policy of one gate, and of no other."""

from __future__ import annotations

import json
import logging

import pytest

from scrapy_frontier.frontier import health as module
from scrapy_frontier.frontier.health import Health
from scrapy_frontier.policy.health import HealthRules, HealthState, Kind, Outcome, dump
from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import GateState, Schedule
from scrapy_frontier.store.messages import HealthSampled, Message

SHOP, NEWS, LANE = "https://shop.test", "https://news.test", "slow lane"
BASE = OriginPolicy(8, 0.0)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def now(self) -> float:
        return self.at


class Bench:
    """Health with a real schedule, and lists of what it says to others."""

    def __init__(self, rules: HealthRules | None = None, base: OriginPolicy = BASE) -> None:
        self.clock = Clock()
        self.base = {SHOP: base, NEWS: base, LANE: base}
        self.schedule = Schedule()
        self.sent: list[Message] = []
        self.closed: list[int] = []
        self.timings: list[tuple[int, float]] = []
        self.health = Health(
            rules or HealthRules(close_after_s=10.0),
            self.schedule,
            self.sent.append,
            self.clock,
            self.base.__getitem__,
            lambda origin_id, reason: self.closed.append(origin_id),
            lambda origin_id, until, now: self.timings.append((origin_id, until)),
        )
        for number, key in enumerate(self.base, 1):
            self.schedule.ensure_origin(number, key, base, self.clock.at)

    def come_to(
        self, kind: Kind, key: str = SHOP, *, after_s: float = 0.5, was_cached: bool = False
    ) -> None:
        """A request to an origin comes to this."""
        started_at = self.clock.at
        self.clock.at += after_s
        outcome = Outcome(kind, started_at, self.clock.at)
        origin_id = [*self.base].index(key) + 1
        self.health.observe(key, origin_id, outcome, was_cached=was_cached)

    @property
    def codes(self) -> list[str]:
        return [message.code for message in self.sent if isinstance(message, HealthSampled)]


def test_trouble_changes_its_own_gate_alone() -> None:
    bench = Bench()
    bench.come_to(Kind.REFUSED)
    assert bench.health.policy(SHOP).limit == 4
    assert bench.health.policy(SHOP).interval_s > 0
    assert bench.health.policy(NEWS) is BASE
    assert bench.schedule.gate_state(SHOP, bench.clock.at) is GateState.BACKOFF
    assert bench.schedule.gate_state(NEWS, bench.clock.at) is GateState.OPEN
    ((origin_id, until),) = bench.timings
    assert origin_id == 1
    assert until > bench.clock.at, "the pause outlives the process"


def test_a_gate_is_never_given_more_than_its_policy() -> None:
    bench = Bench(base=OriginPolicy(2, 3.0))
    for _ in range(200):
        bench.come_to(Kind.ANSWERED)
    assert bench.health.policy(SHOP) == OriginPolicy(2, 3.0)
    bench.base[SHOP] = OriginPolicy(2, 9.0)
    bench.come_to(Kind.TIMEOUT)
    assert bench.health.policy(SHOP).interval_s >= 9.0


def test_nothing_but_failures_closes_the_gate() -> None:
    bench = Bench()
    while not bench.closed:
        bench.come_to(Kind.TIMEOUT)
    assert bench.closed == [1]
    assert bench.codes[-1] == "health.close"
    assert bench.schedule.gate_state(SHOP, bench.clock.at) is GateState.CLOSED


def test_a_gate_that_origins_may_share_is_never_closed() -> None:
    bench = Bench()
    for _ in range(100):
        bench.come_to(Kind.TIMEOUT, LANE)
    assert bench.closed == []


def test_an_old_address_is_to_blame_before_the_origin() -> None:
    """The first failure of a connection to a cached address counts for nothing; what left before the new look-up
    neither. When the new address fails too, it is the origin."""
    bench = Bench()
    bench.come_to(Kind.ANSWERED)
    in_flight = Outcome(Kind.UNREACHED, bench.clock.at, bench.clock.at + 1)
    bench.come_to(Kind.UNREACHED, was_cached=True)
    bench.health.observe(SHOP, 1, in_flight)
    assert bench.codes == []
    bench.come_to(Kind.UNREACHED, was_cached=True)
    assert bench.codes == ["health.back_off"]
    bench.clock.at += 100
    bench.come_to(Kind.ANSWERED)
    bench.come_to(Kind.UNREACHED, was_cached=True)
    assert bench.codes.count("health.back_off") == 1, "it has answered: the excuse holds again"


def test_what_an_earlier_process_knew_holds_before_the_first_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    troubled = HealthState(1, 30.0, is_closed=True, failing_since=1.0, cause="timeout")
    with caplog.at_level(logging.ERROR):
        bench.health.load(
            [(SHOP, json.dumps(dump(troubled))), (NEWS, '{"speed": 3}'), (LANE, "not JSON")]
        )
    assert bench.health.policy(SHOP) == OriginPolicy(1, 30.0)
    state = bench.health.state(SHOP)
    assert state is not None
    assert not state.is_closed
    assert bench.health.policy(NEWS) is BASE
    assert NEWS in caplog.text
    assert LANE in caplog.text
    assert bench.health.held_back == 1


def test_an_unknown_origin_begins_with_the_start_delay() -> None:
    bench = Bench(HealthRules(start_s=5.0, target=1.0))
    assert bench.health.policy(SHOP) == OriginPolicy(8, 5.0)


def test_gates_at_ease_are_forgotten_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    bench = Bench()
    bench.come_to(Kind.REFUSED, SHOP)
    bench.come_to(Kind.ANSWERED, NEWS)
    bench.come_to(Kind.ANSWERED, LANE)
    bench.come_to(Kind.ANSWERED, NEWS)
    assert bench.health.state(SHOP) is not None
    assert bench.health.policy(SHOP).limit == 4


def test_switched_off_it_keeps_quiet() -> None:
    bench = Bench()
    bench.health.rules = None
    for _ in range(20):
        bench.come_to(Kind.REFUSED)
    assert bench.sent == []
    assert bench.health.policy(SHOP) is BASE
