"""What the schedule promises in every interleaving, against a store that answers late and a wire that takes time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from schedule_driver import Driver

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import BandTable, Schedule

POLICIES = [
    OriginPolicy(1),
    OriginPolicy(1, 2.0),
    OriginPolicy(2),
    OriginPolicy(3, 1.0),
    OriginPolicy(8, 0.5),
]

picked = st.integers(0, 2**16)


class Crawl(RuleBasedStateMachine):
    """Limit and interval are kept, order is kept, nothing is lost or handed out twice (invariants 3 and 7)."""

    @initialize(
        policies=st.lists(st.sampled_from(POLICIES), min_size=2, max_size=6),
        shared=st.sets(st.integers(0, 5), max_size=3),
        window=st.integers(1, 12),
        lane_heads=st.integers(1, 6),
        hot=st.integers(1, 6),
        idle=st.integers(0, 2),
        quantum=st.integers(1, 4),
    )
    def begin(
        self,
        policies: list[OriginPolicy],
        shared: set[int],
        window: int,
        lane_heads: int,
        hot: int,
        idle: int,
        quantum: int,
    ) -> None:
        self.sizes: dict[str, Any] = {
            "window": window,
            "lane_heads": lane_heads,
            "max_hot_origins": hot,
            "idle_origins": idle,
            "quantum": quantum,
            "patience_s": 1.5,
            "longest_hold_s": 1e6,
        }
        named = dict(enumerate(policies, start=1))
        first = min((own for own in shared if own in named), default=None)
        gates = {}
        for own in shared & set(named):
            assert first is not None
            named[own] = named[first]
            gates[own] = "shared"
        self.driver = Driver(self.new_schedule(), named, gates)
        self.tokens = 0
        self.out: list[tuple[int, int]] = []

    def new_schedule(self) -> Schedule:
        return Schedule(BandTable((1, 0), (4, 2, 1)), **self.sizes)

    @rule(origin=picked, ranks=st.lists(st.integers(-2, 2), min_size=1, max_size=6))
    def admit(self, origin: int, ranks: list[int]) -> None:
        origins = sorted(self.driver.policies)
        for rank in ranks:
            self.driver.admit(origins[origin % len(origins)], rank)

    @precondition(lambda self: self.out)
    @rule(index=picked, rank=st.integers(-2, 2))
    def admit_again(self, index: int, rank: int) -> None:
        identity_id, origin_id = self.out.pop(index % len(self.out))
        self.driver.admit(origin_id, rank, identity_id)

    @precondition(lambda self: self.driver.waiting)
    @rule(index=picked)
    def exclude(self, index: int) -> None:
        waiting = sorted(self.driver.waiting)
        self.driver.exclude(waiting[index % len(waiting)])

    @rule(count=st.integers(1, 5))
    def hand_out(self, count: int) -> None:
        for _ in range(count):
            pick = self.driver.hand_out()
            if pick is None:
                self.driver.collect()
                self.driver.note_rotated()
                next_at = self.driver.schedule.next_at(self.driver.now)
                assert next_at is None or next_at > self.driver.now, "would be woken for ever"
                return
            self.out.append((pick.head.identity_id, pick.origin_id))

    @precondition(lambda self: self.driver.reserved)
    @rule(index=picked)
    def dispatch(self, index: int) -> None:
        self.driver.dispatch(index % len(self.driver.reserved))

    @precondition(lambda self: self.driver.reserved)
    @rule(index=picked)
    def cancel(self, index: int) -> None:
        self.driver.cancel(index % len(self.driver.reserved))

    @precondition(lambda self: self.driver.on_wire)
    @rule(index=picked)
    def end(self, index: int) -> None:
        self.driver.end(index % len(self.driver.on_wire))

    @rule(gate=picked, wait=st.booleans())
    def want_permit(self, gate: int, wait: bool) -> None:
        keys = sorted(self.driver.servers)
        key = keys[gate % len(keys)]
        self.tokens += 1
        token = f"{key} {self.tokens}"
        before = len(self.driver.reserved)
        self.driver.want_permit(key, token)
        if len(self.driver.reserved) == before and not wait:
            assert self.driver.schedule.forget_permit(token, self.driver.now)

    @rule()
    def collect(self) -> None:
        self.driver.collect()

    @rule()
    def ask(self) -> None:
        self.driver.ask()

    @rule()
    def read(self) -> None:
        self.driver.read()

    @rule()
    def answer(self) -> None:
        self.driver.answer()

    @rule(gate=picked, wait_s=st.sampled_from([1.0, 5.0]))
    def hold(self, gate: int, wait_s: float) -> None:
        keys = sorted(self.driver.servers)
        self.driver.brake(keys[gate % len(keys)], self.driver.now + wait_s)

    @rule(step=st.sampled_from([0.1, 0.5, 1.0, 2.5]))
    def wait(self, step: float) -> None:
        self.driver.now += step

    @rule()
    def wait_for_the_alarm(self) -> None:
        next_at = self.driver.schedule.next_at(self.driver.now)
        if next_at is not None and next_at > self.driver.now:
            self.driver.now = next_at
            given = self.driver.hand_out() or self.driver.collect() or self.driver.note_rotated()
            assert given, "woken for nothing"

    @rule()
    def restart(self) -> None:
        """The process dies: memory and what was in flight are lost, times and the store are not."""
        old = self.driver
        new = Driver(self.new_schedule(), old.policies, old.gates, old.now)
        new.servers, new.store, new.waiting = old.servers, old.store, old.waiting
        new.last_id, new.kept = old.last_id, old.kept
        for key, server in new.servers.items():
            server.in_flight = 0
            server.earliest = old.kept.get(key, 0.0)
        new.cold = {own: None for own, heads in new.store.items() if heads}
        new.schedule.cold_waiting = len(new.cold)
        self.driver = new

    @invariant()
    def bounded(self) -> None:
        counts = self.driver.schedule.counts(self.driver.now)
        assert counts.heads <= self.sizes["window"]
        assert counts.hot_origins + counts.activating <= self.sizes["max_hot_origins"]
        assert counts.in_flight >= len(self.driver.reserved) + len(self.driver.on_wire)

    def teardown(self) -> None:
        """Everything that is waiting is handed out in the end, each identity once."""
        if hasattr(self, "driver"):
            before, waiting = len(self.driver.handed), sorted(self.driver.waiting)
            self.driver.drain()
            assert sorted(self.driver.handed[before:]) == waiting
            assert self.driver.schedule.counts(self.driver.now).heads == 0


TestCrawl = Crawl.TestCase
TestCrawl.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)


@pytest.mark.parametrize("hot", [1, 3, 50])
def test_no_cold_origin_starves(hot: int) -> None:
    """With room for few origins, and a giant that always has more, all get their turn soon."""
    policies = dict.fromkeys(range(30), OriginPolicy(2))
    schedule = Schedule(max_hot_origins=hot, quantum=4, window=100)
    driver = Driver(schedule, policies)
    for _ in range(400):
        driver.admit(0)
    for origin_id in range(1, 30):
        for _ in range(4):
            driver.admit(origin_id)
    small = {own for own, origin_id in driver.waiting.items() if origin_id}
    while small & set(driver.waiting):
        driver.admit(0)
        driver.settle()
        driver.hand_out()
        assert len(driver.handed) < 600, f"starved: {schedule}"
