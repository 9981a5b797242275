"""Gates: when an origin may be asked for the next thing, and why not yet."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import Gate, GateState, SchedulingError
from scrapy_frontier.scheduling.gates import BRAKES

NOW = 1_700_000_000.0


def gate(limit: int = 1, interval_s: float = 0.0, **values: float) -> Gate:
    return Gate(OriginPolicy(limit, interval_s), NOW, **values)


def test_a_new_gate_is_open() -> None:
    """Nothing is known against a first request."""
    fresh = gate()
    assert fresh.state(NOW) is GateState.OPEN
    assert fresh.opens_at(NOW) == NOW


def test_limit_holds_from_hand_out_to_the_end_on_the_wire() -> None:
    """In flight counts what is handed out, whether it is on the wire yet or not."""
    two = gate(2)
    assert two.reserve(NOW)
    assert not two.reserve(NOW)
    assert two.state(NOW) is GateState.BUSY
    assert two.opens_at(NOW) is None
    two.charge(NOW, 0)
    assert two.state(NOW) is GateState.BUSY
    two.release(NOW)
    assert two.state(NOW) is GateState.OPEN


def test_with_limit_1_the_interval_counts_from_the_end_of_the_response() -> None:
    """A slow server is not asked again the moment it has answered (invariant 7)."""
    one = gate(1, 2.0)
    one.reserve(NOW)
    one.charge(NOW, 2.0)
    one.release(NOW + 10)
    assert one.state(NOW + 11) is GateState.INTERVAL
    assert one.opens_at(NOW + 11) == NOW + 12
    assert one.is_open(NOW + 12)


def test_with_a_higher_limit_the_interval_counts_between_dispatches() -> None:
    """While one response is under way the next request may leave after the interval."""
    many = gate(8, 2.0)
    many.reserve(NOW)
    many.charge(NOW + 1, 2.0)
    assert many.opens_at(NOW + 1) == NOW + 3
    many.reserve(NOW + 3)
    many.charge(NOW + 3, 2.0)
    many.release(NOW + 4)
    assert many.opens_at(NOW + 4) == NOW + 5


def test_nothing_is_handed_out_while_one_request_is_on_its_way_to_the_wire() -> None:
    """Otherwise two requests could reach the wire together, however far apart they were handed out."""
    many = gate(8, 2.0)
    assert not many.reserve(NOW)
    assert many.state(NOW + 100) is GateState.BUSY
    assert many.opens_at(NOW + 100) is None
    many.charge(NOW + 100, 2.0)
    assert many.opens_at(NOW + 100) == NOW + 102


def test_a_request_that_never_reached_the_wire_costs_no_interval() -> None:
    """A cache hit, or a request dropped on the way, has not touched the server."""
    many = gate(8, 2.0)
    many.reserve(NOW)
    many.cancel(NOW)
    assert many.is_open(NOW)
    assert many.in_flight == 0


def test_a_failed_request_costs_the_interval_too() -> None:
    """`release` says that it has left the wire, not that there was a response."""
    one = gate(1, 2.0)
    one.reserve(NOW)
    one.charge(NOW, 2.0)
    one.release(NOW)
    assert one.opens_at(NOW) == NOW + 2


@pytest.mark.parametrize("brake", BRAKES)
def test_a_hold_ends_by_itself(brake: GateState) -> None:
    """Until its time the gate is shut and says why."""
    held = gate()
    held.hold(NOW + 60, brake)
    assert held.state(NOW) is brake
    assert held.opens_at(NOW) == NOW + 60
    assert held.state(NOW + 60) is GateState.OPEN


@pytest.mark.parametrize("brake", BRAKES)
def test_a_close_ends_by_reopening_only(brake: GateState) -> None:
    """No time can be told for it."""
    closed = gate()
    closed.close(brake)
    assert closed.state(NOW + 1e9) is brake
    assert closed.opens_at(NOW) is None
    closed.reopen(brake)
    assert closed.state(NOW) is GateState.OPEN


def test_a_later_shorter_hold_does_not_shorten() -> None:
    """A server that asked for two minutes is not asked after five seconds because of another answer."""
    held = gate()
    held.hold(NOW + 120, GateState.BACKOFF)
    held.hold(NOW + 5, GateState.BACKOFF)
    assert held.opens_at(NOW) == NOW + 120


def test_reasons_stand_side_by_side() -> None:
    """Ending one reason leaves the others in force; the gravest is named."""
    braked = gate()
    braked.hold(NOW + 10, GateState.BACKOFF)
    braked.close(GateState.ROBOTS_PENDING)
    braked.close(GateState.CLOSED)
    assert braked.state(NOW) is GateState.CLOSED
    braked.reopen(GateState.CLOSED)
    assert braked.state(NOW) is GateState.ROBOTS_PENDING
    braked.reopen(GateState.ROBOTS_PENDING)
    assert braked.state(NOW) is GateState.BACKOFF
    braked.close(GateState.OWNED_ELSEWHERE)
    braked.reopen()
    assert braked.state(NOW) is GateState.OPEN


def test_reopening_does_not_shorten_the_interval() -> None:
    """A brake is lifted, manners stay."""
    one = gate(1, 2.0)
    one.reserve(NOW)
    one.charge(NOW, 2.0)
    one.release(NOW)
    one.close(GateState.CLOSED)
    one.reopen()
    assert one.state(NOW) is GateState.INTERVAL


def test_robots_txt_passes_the_robots_brakes_only() -> None:
    """It must be fetched while everything else waits for it, but not against a back-off or the limit."""
    pending = gate(1, 2.0)
    pending.close(GateState.ROBOTS_PENDING)
    assert not pending.is_open(NOW)
    assert pending.is_open(NOW, past_robots=True)
    pending.hold(NOW + 9, GateState.BACKOFF)
    assert pending.opens_at(NOW, past_robots=True) == NOW + 9
    pending.reserve(NOW + 9, past_robots=True)
    assert pending.opens_at(NOW + 9, past_robots=True) is None


@pytest.mark.parametrize("state", [GateState.OPEN, GateState.BUSY, GateState.INTERVAL])
def test_what_follows_from_the_traffic_cannot_be_set(state: GateState) -> None:
    """Only decisions are brakes."""
    with pytest.raises(ValueError, match=state.label):
        gate().close(state)


@pytest.mark.parametrize("call", ["reserve", "charge", "release", "cancel"])
def test_a_call_out_of_order_is_refused_and_changes_nothing(call: str) -> None:
    """The counts of a gate cannot be corrupted by its owner's mistake."""
    fresh, busy = gate(1, 1.0), gate(1, 1.0)
    calls: dict[str, Callable[[], object]] = {
        "reserve": lambda: busy.reserve(NOW),
        "charge": lambda: fresh.charge(NOW, 1.0),
        "release": lambda: busy.release(NOW),
        "cancel": lambda: fresh.cancel(NOW),
    }
    busy.reserve(NOW)
    before = repr(fresh), repr(busy)
    with pytest.raises(SchedulingError, match=call) as caught:
        calls[call]()
    assert isinstance(caught.value, FrontierError)
    assert (repr(fresh), repr(busy)) == before


def test_the_timing_survives_a_restart() -> None:
    """What was loaded holds before anything is dispatched."""
    first = gate(1, 10.0)
    first.reserve(NOW)
    first.charge(NOW, 10.0)
    first.release(NOW + 1)
    kept = first.snapshot(NOW + 1)
    assert kept.next_eligible_at == kept.opens_at == NOW + 11
    second = gate(1, 10.0, next_eligible_at=kept.next_eligible_at)
    assert second.opens_at(NOW) == NOW + 10
    third = Gate(OriginPolicy(1, 10.0), NOW + 5, next_eligible_at=kept.next_eligible_at)
    assert third.opens_at(NOW + 5) == NOW + 11


def test_a_snapshot_counts_what_may_have_been_sent() -> None:
    """A request between hand-out and wire counts as sent now; one on the wire as charged."""
    sent = gate(1, 10.0)
    sent.reserve(NOW)
    assert sent.snapshot(NOW + 3).next_eligible_at == NOW + 13
    sent.charge(NOW + 4, 7.0)
    assert sent.snapshot(NOW + 5).next_eligible_at == NOW + 11


def test_a_snapshot_keeps_holds_but_no_closes() -> None:
    """A hold is a time that can be kept; a close is its owner's to remember, named by the state."""
    held = gate()
    held.hold(NOW + 60, GateState.BACKOFF)
    assert held.snapshot(NOW).next_eligible_at == NOW + 60
    held.close(GateState.CLOSED)
    kept = held.snapshot(NOW)
    assert (kept.state, kept.opens_at) == (GateState.CLOSED, None)
    assert kept.next_eligible_at == NOW + 60


@pytest.mark.parametrize("kept", [NOW + 1e6, inf])
def test_a_time_that_cannot_have_been_meant_is_cut(kept: float) -> None:
    """After a clock was set back, a gate waits for the longest interval and hold at the most."""
    policy = OriginPolicy(1, 10.0, (0.5, 1.5))
    assert Gate(policy, NOW, next_eligible_at=kept).opens_at(NOW) == NOW + 15
    patient = Gate(policy, NOW, next_eligible_at=kept, longest_hold_s=60)
    assert patient.opens_at(NOW) == NOW + 75


def test_an_idle_gate_has_nothing_to_remember() -> None:
    """It may be forgotten once no request, interval or brake is running."""
    one = gate(1, 2.0)
    assert one.is_idle(NOW)
    one.reserve(NOW)
    assert not one.is_idle(NOW)
    one.charge(NOW, 2.0)
    one.release(NOW)
    assert not one.is_idle(NOW + 1)
    assert one.is_idle(NOW + 2)
    one.hold(NOW + 5, GateState.BACKOFF)
    assert not one.is_idle(NOW + 4)
    assert one.is_idle(NOW + 5)
    one.close(GateState.CLOSED)
    assert not one.is_idle(NOW + 1e9)


seconds = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 20.0])


class Wire(RuleBasedStateMachine):
    """Any interleaving of hand-outs, dispatches, ends, cancellations, holds and policy changes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.gate = gate(1, 2.0)
        self.reserved = 0
        self.on_wire: list[float] = []
        self.earliest = 0.0
        self.brakes: dict[GateState, float] = {}

    @rule(limit=st.integers(1, 3), interval_s=seconds)
    def set_policy(self, limit: int, interval_s: float) -> None:
        if not self.gate.in_flight:
            self.gate.policy = OriginPolicy(limit, interval_s, (1.0, 2.0))

    @rule(step=seconds)
    def wait(self, step: float) -> None:
        self.now += step

    @rule()
    def wait_for_the_gate(self) -> None:
        opens_at = self.gate.opens_at(self.now)
        if opens_at is None:
            return
        if opens_at > self.now:
            assert not self.gate.is_open((self.now + opens_at) / 2)
        self.now = opens_at
        assert self.gate.state(self.now) is GateState.OPEN

    @rule()
    def reserve(self) -> None:
        if self.gate.is_open(self.now):
            self.gate.reserve(self.now)
            self.reserved += 1
            assert all(until <= self.now for until in self.brakes.values())
        else:
            with pytest.raises(SchedulingError):
                self.gate.reserve(self.now)

    @precondition(lambda self: self.reserved)
    @rule(factor=st.sampled_from([1.0, 1.25, 2.0]))
    def charge(self, factor: float) -> None:
        assert self.now >= self.earliest, "closer than the interval"
        interval_s = self.gate.policy.interval_s * factor
        self.gate.charge(self.now, interval_s)
        self.reserved -= 1
        self.on_wire.append(interval_s)
        self.earliest = self.now + interval_s

    @precondition(lambda self: self.on_wire)
    @rule()
    def release(self) -> None:
        interval_s = self.on_wire.pop(0)
        self.gate.release(self.now)
        if self.gate.policy.limit == 1:
            self.earliest = self.now + interval_s

    @precondition(lambda self: self.reserved)
    @rule()
    def cancel(self) -> None:
        self.gate.cancel(self.now)
        self.reserved -= 1

    @rule(step=seconds, brake=st.sampled_from(BRAKES))
    def hold(self, step: float, brake: GateState) -> None:
        self.gate.hold(self.now + step, brake)
        self.brakes[brake] = max(self.now + step, self.brakes.get(brake, 0))

    @rule(brake=st.sampled_from(BRAKES))
    def close(self, brake: GateState) -> None:
        self.gate.close(brake)
        self.brakes[brake] = inf

    @rule(brake=st.sampled_from([None, *BRAKES]))
    def reopen(self, brake: GateState | None) -> None:
        self.gate.reopen(brake)
        if brake is None:
            self.brakes.clear()
        self.brakes.pop(brake, None)  # type: ignore[arg-type]

    @invariant()
    def limit_holds(self) -> None:
        assert self.gate.in_flight == self.reserved + len(self.on_wire) <= self.gate.policy.limit

    @invariant()
    def says_what_holds_it(self) -> None:
        state = self.gate.state(self.now)
        braked = {brake for brake, until in self.brakes.items() if until > self.now}
        assert state in braked or not braked
        assert (state is GateState.OPEN) == self.gate.is_open(self.now)

    @invariant()
    def a_restart_keeps_the_interval(self) -> None:
        kept = self.gate.snapshot(self.now).next_eligible_at
        again = Gate(self.gate.policy, self.now, next_eligible_at=kept, longest_hold_s=1e9)
        opens_at = again.opens_at(self.now)
        assert opens_at is not None
        assert opens_at >= self.earliest


TestWire = Wire.TestCase
TestWire.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
