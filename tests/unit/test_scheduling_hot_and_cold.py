"""Which origins the schedule holds in memory: the hot ones, and whom they make room for."""

from __future__ import annotations

import pytest
from schedule_of_heads import MANY, NOW, ONE, SLOW, filled, finish, hand_out, key

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import (
    GateState,
    Head,
    Schedule,
    SchedulingError,
)


def test_an_origin_that_is_not_hot_keeps_its_heads_in_the_store() -> None:
    """`add` says so, and so does `ensure_origin` where there is no room."""
    schedule = filled((1, 0, 1), max_hot_origins=1)
    assert not schedule.add(2, Head(0, 2), NOW)
    assert not schedule.ensure_origin(2, key(2), ONE, NOW)
    assert hand_out(schedule) == [1]


def test_cold_origins_come_before_new_ones() -> None:
    """A place that becomes free is for those who wait."""
    schedule = filled((1, 0, 1), max_hot_origins=2)
    schedule.cold_waiting = 1
    assert not schedule.ensure_origin(3, key(3), ONE, NOW)
    assert schedule.wants_activation(NOW) == 1
    schedule.activating(2)
    schedule.cold_waiting = 0
    assert schedule.wants_activation(NOW) == 0
    schedule.activate(2, key(2), ONE, [(3, [Head(0, 2)], False)], NOW)
    assert hand_out(schedule) == [1, 2]


def test_what_comes_or_goes_during_an_activation_is_not_lost() -> None:
    """The store was read before."""
    schedule = Schedule()
    schedule.activating(1)
    assert schedule.ensure_origin(1, key(1), ONE, NOW)
    assert schedule.add(1, Head(0, 9), NOW)
    assert schedule.add(1, Head(-500, 8), NOW)
    assert not schedule.discard(1, 4, NOW)
    schedule.activate(1, key(1), MANY, [(3, [Head(0, 3), Head(0, 4)], False)], NOW)
    assert hand_out(schedule) == [3]
    refills = schedule.refills()
    assert [(refill.band, refill.first) for refill in refills] == [(0, (-500, 8)), (3, (0, 9))]


def test_an_origin_is_activated_once() -> None:
    """A second time is a mistake of the caller's."""
    schedule = filled((1, 0, 1))
    schedule.activating(2)
    for origin_id in (1, 2):
        with pytest.raises(SchedulingError, match=f"origin {origin_id}"):
            schedule.activating(origin_id)
    with pytest.raises(SchedulingError, match="origin 1"):
        schedule.activate(1, key(1), ONE, [], NOW)


def test_an_endless_origin_makes_room_after_its_quantum() -> None:
    """Its heads stay in the store; it is named when its gate is open again."""
    schedule = filled(
        *((1, 0, number) for number in range(1, 9)), policy=SLOW, max_hot_origins=1, quantum=2
    )
    schedule.cold_waiting = 1
    hand_out(schedule)
    finish(schedule, 1, interval_s=2.0)
    assert schedule.rotated(NOW) == []
    assert hand_out(schedule, NOW + 2) == [2]
    assert schedule.wants_activation(NOW + 2) == 1
    assert schedule.counts(NOW + 2).heads == 0
    assert schedule.rotated(NOW + 2) == []
    finish(schedule, 1, NOW + 3, interval_s=2.0)
    assert schedule.rotated(NOW + 3) == []
    assert schedule.next_at(NOW + 3) == NOW + 5
    (left,) = schedule.rotated(NOW + 5)
    assert (left.origin_id, left.gate_key) == (1, key(1))
    assert left.gate.state is GateState.OPEN
    assert not schedule.is_hot(1)


def test_until_it_is_named_an_origin_that_left_is_known() -> None:
    """What is added to it stays in the store, and it is not taken for a new one."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=SLOW, max_hot_origins=1, quantum=1)
    schedule.cold_waiting = 1
    assert hand_out(schedule) == [1]
    assert schedule.is_hot(1)
    assert schedule.add(1, Head(0, 3), NOW)
    assert schedule.ensure_origin(1, key(1), SLOW, NOW)
    assert schedule.counts(NOW).heads == 0
    with pytest.raises(SchedulingError, match="origin 1"):
        schedule.activating(1)
    with pytest.raises(SchedulingError, match="origin 1"):
        schedule.activate(1, key(1), SLOW, [], NOW)
    schedule.cancel(key(1), NOW)
    assert [left.origin_id for left in schedule.rotated(NOW)] == [1]
    assert not schedule.add(1, Head(0, 3), NOW)


def test_without_cold_origins_nobody_is_rotated_out() -> None:
    """There is nobody to make room for."""
    schedule = filled(*((1, 0, number) for number in range(9)), policy=MANY, quantum=2)
    assert len(hand_out(schedule)) == 8
    assert schedule.is_hot(1)
    assert schedule.rotated(NOW) == []


def test_an_origin_that_stays_shut_makes_room() -> None:
    """One that waits for an event or for long; what holds it is remembered."""
    schedule = filled((1, 0, 1), (2, 0, 2), (3, 0, 3), max_hot_origins=3)
    schedule.close(key(1), GateState.CLOSED, NOW)
    schedule.hold(key(2), NOW + 3600, GateState.BACKOFF, NOW)
    assert schedule.rotated(NOW) == []
    assert schedule.wants_activation(NOW) == 0
    schedule.cold_waiting = 2
    assert schedule.rotated(NOW) == []
    assert schedule.wants_activation(NOW) == 2
    assert hand_out(schedule) == [3]
    assert schedule.gate_state(key(1), NOW) is GateState.CLOSED
    assert schedule.gate_state(key(2), NOW) is GateState.BACKOFF
    assert schedule.next_at(NOW) == NOW + 3600
    schedule.reopen(key(1), NOW)
    assert schedule.next_at(NOW) == NOW
    assert [left.origin_id for left in schedule.rotated(NOW)] == [1]
    assert [left.origin_id for left in schedule.rotated(NOW + 3600)] == [2]


def test_an_origin_that_left_is_named_later_where_its_gate_is_held_again() -> None:
    """A back-off that was prolonged, a permit that took the place."""
    schedule = filled((1, 0, 1), policy=SLOW, max_hot_origins=1)
    schedule.hold(key(1), NOW + 60, GateState.BACKOFF, NOW)
    schedule.cold_waiting = 1
    schedule.rotated(NOW)
    schedule.hold(key(1), NOW + 90, GateState.BACKOFF, NOW)
    assert schedule.rotated(NOW + 60) == []
    assert schedule.next_at(NOW + 60) == NOW + 90
    assert schedule.want_permit(key(1), "a", NOW + 90, policy=SLOW)
    assert schedule.rotated(NOW + 90) == []
    finish(schedule, 1, NOW + 91, interval_s=2.0)
    assert schedule.next_at(NOW + 91) == NOW + 93
    assert [left.origin_id for left in schedule.rotated(NOW + 93)] == [1]


def test_an_origin_with_a_response_under_way_is_not_moved() -> None:
    """Its gate is shut, but for a moment only."""
    schedule = filled((1, 0, 1), (1, 0, 2), max_hot_origins=1)
    hand_out(schedule)
    schedule.cold_waiting = 1
    assert schedule.rotated(NOW) == []
    assert schedule.wants_activation(NOW) == 0
    finish(schedule, 1)
    assert hand_out(schedule) == [2]


def test_an_origin_with_a_higher_limit_is_named_after_its_interval() -> None:
    """It need not wait for the end of its responses."""
    schedule = filled(
        (1, 0, 1), (1, 0, 2), policy=OriginPolicy(8, 2.0), max_hot_origins=1, quantum=1
    )
    schedule.cold_waiting = 1
    assert hand_out(schedule) == [1]
    assert schedule.next_at(NOW) is None
    schedule.charge(key(1), NOW + 1, 2.0)
    assert schedule.next_at(NOW + 1) == NOW + 3
    assert [left.origin_id for left in schedule.rotated(NOW + 3)] == [1]


def test_a_shared_gate_does_not_keep_an_origin_that_left() -> None:
    """The others may never let it rest."""
    schedule = filled(max_hot_origins=2, quantum=1)
    for origin_id in (1, 2):
        schedule.ensure_origin(origin_id, "slot", ONE, NOW)
        schedule.add(origin_id, Head(0, origin_id), NOW)
        schedule.add(origin_id, Head(0, origin_id + 10), NOW)
    schedule.cold_waiting = 1
    assert hand_out(schedule) == [1]
    assert [left.origin_id for left in schedule.rotated(NOW)] == [1]
    for identity_id in (2, 12):
        schedule.cancel("slot", NOW)
        assert hand_out(schedule) == [identity_id]


def test_origins_without_work_leave_when_room_is_wanted() -> None:
    """Their gates stay until they have nothing to remember."""
    schedule = filled((1, 0, 1), policy=SLOW, max_hot_origins=1)
    hand_out(schedule)
    assert schedule.ensure_origin(2, key(2), ONE, NOW)
    assert not schedule.is_hot(1)
    finish(schedule, 1, interval_s=2.0)
    assert schedule.ensure_origin(1, key(1), ONE, NOW + 1)
    schedule.add(1, Head(0, 3), NOW + 1)
    assert schedule.next_at(NOW + 1) == NOW + 2
    assert hand_out(schedule, NOW + 2) == [3]


def test_a_million_origins_with_one_page_each_leave_no_trace() -> None:
    """Only a few without work are kept at any time."""
    schedule = Schedule(max_hot_origins=100, idle_origins=10)
    for number in range(2000):
        assert schedule.ensure_origin(number, key(number), ONE, NOW)
        schedule.add(number, Head(0, number), NOW)
        assert hand_out(schedule) == [number]
        finish(schedule, number)
    counts = schedule.counts(NOW)
    assert counts.hot_origins <= 12
    assert counts.gates <= 14


@pytest.mark.parametrize("size", ["window", "lane_heads", "max_hot_origins", "quantum"])
def test_sizes_of_nothing_are_refused(size: str) -> None:
    """The message names the size."""
    with pytest.raises(ValueError, match=size):
        Schedule(None, **{size: 0})
