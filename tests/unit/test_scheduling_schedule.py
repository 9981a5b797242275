"""The schedule: which URL next, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from schedule_of_heads import MANY, NOW, ONE, SLOW, filled, finish, hand_out, key

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import (
    BandTable,
    GateState,
    Head,
    Pick,
    Refill,
    Schedule,
    SchedulingError,
)

# Handing out


def test_an_empty_schedule_gives_nothing_and_sets_no_alarm() -> None:
    """Only an event can help."""
    schedule = Schedule()
    assert schedule.next(NOW) is None
    assert schedule.next_at(NOW) is None
    assert schedule.refills() == []
    assert schedule.rotated(NOW) == []


def test_a_pick_names_origin_gate_and_head() -> None:
    """The payload comes back untouched."""
    schedule = filled()
    schedule.ensure_origin(1, "gate", ONE, NOW)
    payload = object()
    schedule.add(1, Head(0, 5, payload), NOW)
    assert schedule.next_at(NOW) == NOW
    assert schedule.next(NOW) == Pick(1, "gate", Head(0, 5, payload))


def test_each_head_is_handed_out_once() -> None:
    """Adding it again while it waits changes nothing."""
    schedule = filled((1, 0, 5), (1, 0, 5), policy=MANY)
    assert hand_out(schedule) == [5]
    assert schedule.next(NOW) is None


def test_a_busy_origin_waits_for_its_response() -> None:
    """With a limit of 1 the next goes out when the first has left the wire."""
    schedule = filled((1, 0, 1), (1, 0, 2))
    assert hand_out(schedule) == [1]
    assert schedule.gate_state(key(1), NOW) is GateState.BUSY
    assert schedule.next_at(NOW) is None
    finish(schedule, 1)
    assert hand_out(schedule) == [2]


def test_the_interval_sets_the_alarm() -> None:
    """`next_at` is the instant the gate opens; before it nothing goes out, at it something does."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=SLOW)
    hand_out(schedule)
    schedule.charge(key(1), NOW, 2.0)
    assert schedule.release(key(1), NOW + 3) == NOW + 5
    assert schedule.next_at(NOW + 3) == NOW + 5
    assert schedule.next(NOW + 4.999) is None
    assert hand_out(schedule, NOW + 5) == [2]


def test_the_alarm_is_the_earliest_of_all_gates() -> None:
    """Gates without work do not count."""
    schedule = filled((1, 0, 1), (2, 0, 2), (2, 0, 3), (3, 0, 4), (3, 0, 5), policy=SLOW)
    hand_out(schedule)
    for origin_id, interval_s in ((1, 1.0), (2, 3.0), (3, 2.0)):
        finish(schedule, origin_id, interval_s=interval_s)
    assert schedule.next_at(NOW) == NOW + 2


def test_a_cancelled_pick_frees_its_place_at_once() -> None:
    """It never reached the wire."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=SLOW)
    hand_out(schedule)
    schedule.cancel(key(1), NOW)
    assert hand_out(schedule) == [2]


def test_an_urgent_request_goes_out_next() -> None:
    """Ten low ones of one origin, one urgent one found by the first (FC62)."""
    schedule = filled(*((1, 0, number) for number in range(10)))
    assert hand_out(schedule) == [0]
    schedule.add(1, Head(-1000, 99), NOW)
    finish(schedule, 1)
    assert hand_out(schedule) == [99]


def test_origins_take_turns_whatever_their_bands() -> None:
    """An origin with urgent requests only goes before, not instead of, the others."""
    schedule = filled(
        *((1, -1, number) for number in range(20)),
        *((2, 0, number) for number in range(100, 110)),
        policy=MANY,
        bands=BandTable((1, 0), (2, 1, 1)),
    )
    first_nine = []
    for _ in range(9):
        pick = schedule.next(NOW)
        assert pick is not None
        first_nine.append(pick.origin_id)
        schedule.cancel(pick.gate_key, NOW)
    assert first_nine.count(2) == 3


@pytest.mark.parametrize("call", ["charge", "release", "cancel"])
def test_the_wire_knows_only_what_was_handed_out(call: str) -> None:
    """A call for a gate that is not there, or has nothing reserved, is refused by name."""
    schedule = filled((1, 0, 1))
    act: Callable[[str, float], object] = getattr(schedule, call)
    with pytest.raises(SchedulingError, match="nothing"):
        act(key(1), NOW)
    with pytest.raises(SchedulingError, match="elsewhere"):
        act("http://elsewhere.example", NOW)
    assert hand_out(schedule) == [1]


def test_a_discarded_head_is_not_handed_out() -> None:
    """An identity that was excluded meanwhile; one that is not in memory is no mistake."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=MANY)
    assert schedule.discard(1, 1, NOW)
    assert not schedule.discard(1, 1, NOW)
    assert not schedule.discard(77, 1, NOW)
    assert hand_out(schedule) == [2]
    assert schedule.counts(NOW).heads == 0


def test_discarding_the_last_head_clears_the_alarm() -> None:
    """There is nothing left to wake up for."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=SLOW)
    hand_out(schedule)
    finish(schedule, 1, interval_s=2.0)
    schedule.discard(1, 2, NOW)
    assert schedule.next_at(NOW) is None
    schedule.add(1, Head(0, 3), NOW)
    assert schedule.next_at(NOW) == NOW + 2


# Brakes


@pytest.mark.parametrize("state", [GateState.ROBOTS_PENDING, GateState.CLOSED])
def test_a_closed_gate_holds_its_heads(state: GateState) -> None:
    """They stay where they are until it is reopened."""
    schedule = filled((1, 0, 1))
    assert schedule.close(key(1), state, NOW)
    assert schedule.gate_state(key(1), NOW) is state
    assert schedule.next(NOW) is None
    assert schedule.next_at(NOW) is None
    assert schedule.reopen(key(1), NOW, state)
    assert hand_out(schedule) == [1]


def test_a_back_off_sets_the_alarm() -> None:
    """A hold ends at its time; prolonging it moves the alarm."""
    schedule = filled((1, 0, 1))
    schedule.hold(key(1), NOW + 10, GateState.BACKOFF, NOW)
    schedule.hold(key(1), NOW + 60, GateState.BACKOFF, NOW)
    assert schedule.next_at(NOW) == NOW + 60
    assert schedule.next(NOW + 59) is None
    assert hand_out(schedule, NOW + 60) == [1]


def test_brakes_of_gates_not_in_memory_are_the_callers_to_remember() -> None:
    """He is told so."""
    schedule = Schedule()
    assert not schedule.close("x", GateState.CLOSED, NOW)
    assert not schedule.hold("x", NOW + 1, GateState.BACKOFF, NOW)
    assert not schedule.reopen("x", NOW)
    assert not schedule.set_policy("x", MANY, NOW)
    assert schedule.gate_state("x", NOW) is None
    assert schedule.gate_snapshot("x", NOW) is None


def test_another_policy_counts_at_once() -> None:
    """More may go out where the limit was raised, nothing where it was lowered below what is out."""
    schedule = filled(*((1, 0, number) for number in range(6)))
    assert hand_out(schedule) == [0]
    schedule.set_policy(key(1), OriginPolicy(3), NOW)
    assert hand_out(schedule) == [1, 2]
    schedule.set_policy(key(1), OriginPolicy(2), NOW)
    finish(schedule, 1)
    assert hand_out(schedule) == []
    finish(schedule, 1)
    assert hand_out(schedule) == [3]


def test_timing_is_loaded_before_anything_is_dispatched() -> None:
    """An origin that comes with a time in the future waits for it."""
    schedule = Schedule()
    schedule.ensure_origin(1, key(1), SLOW, NOW, next_eligible_at=NOW + 1.5)
    schedule.add(1, Head(0, 1), NOW)
    assert schedule.gate_state(key(1), NOW) is GateState.INTERVAL
    assert schedule.next(NOW) is None
    assert schedule.next_at(NOW) == NOW + 1.5


# Origins that share a gate


def test_origins_that_share_a_gate_share_its_limit() -> None:
    """A `download_slot` of the user's holds several origins to one limit and interval."""
    schedule = Schedule()
    for origin_id in (1, 2, 3):
        schedule.ensure_origin(origin_id, "slot", OriginPolicy(2), NOW)
        for number in range(4):
            schedule.add(origin_id, Head(0, origin_id * 10 + number), NOW)
    assert hand_out(schedule) == [10, 20]
    schedule.charge("slot", NOW)
    schedule.release("slot", NOW)
    assert hand_out(schedule) == [30]


def test_origins_that_share_a_gate_take_turns() -> None:
    """Also where one of them has heads in several bands, and as one after the other runs dry."""
    schedule = Schedule(BandTable((1,), (1, 1)))
    for origin_id in (1, 2, 3):
        schedule.ensure_origin(origin_id, "slot", ONE, NOW)
    identity_id = 0
    for origin_id, ranks in ((1, (-1, 0)), (2, (-1,)), (3, (0,))):
        for rank in ranks * (12 // len(ranks)):
            identity_id += 1
            schedule.add(origin_id, Head(rank, identity_id), NOW)
    order = []
    while (pick := schedule.next(NOW)) is not None:
        order.append(pick.origin_id)
        schedule.cancel("slot", NOW)
    assert sorted(order) == [1] * 12 + [2] * 12 + [3] * 12
    counts = [order[:18].count(origin_id) for origin_id in (1, 2, 3)]
    assert max(counts) - min(counts) <= 2


# Refills


def test_a_lane_asks_for_more_once() -> None:
    """Until the answer has come, or where nobody waits for it any more."""
    schedule = filled(*((1, 0, number) for number in range(1, 11)), policy=MANY, lane_heads=4)
    assert schedule.refills() == []
    assert hand_out(schedule) == [1, 2, 3, 4]
    (refill,) = schedule.refills()
    assert refill == Refill(1, 3, (0, 5), 0, 4)
    assert schedule.refills() == []
    schedule.refilled(refill, [Head(0, number) for number in (5, 6)], True, NOW)
    assert hand_out(schedule) == [5, 6]
    schedule.refilled(refill, [Head(0, 5)], False, NOW)
    schedule.refilled(refill._replace(origin_id=99), [Head(0, 5)], False, NOW)
    assert schedule.next(NOW) is None
    (again,) = schedule.refills()
    assert again.first == (0, 7)


def test_heads_that_come_by_a_refill_wake_the_origin() -> None:
    """An origin whose lane had run empty is ready again."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=MANY, window=1)
    assert hand_out(schedule) == [1]
    assert schedule.next_at(NOW) is None
    (refill,) = schedule.refills()
    schedule.refilled(refill, [Head(0, 2)], False, NOW)
    assert schedule.next_at(NOW) == NOW
    assert hand_out(schedule) == [2]


def test_the_window_is_never_exceeded() -> None:
    """Whatever is added: one giant, many origins, many bands; the rest stays in the store."""
    schedule = Schedule(window=50, lane_heads=20, max_hot_origins=1000)
    for number in range(3000):
        origin_id = number % 7 if number < 1000 else number
        if schedule.ensure_origin(origin_id, key(origin_id), MANY, NOW):
            schedule.add(origin_id, Head(number % 300 - 150, number), NOW)
        assert schedule.counts(NOW).heads <= 50


def test_a_giant_that_was_first_makes_room_for_the_others() -> None:
    """Heads of its own go back to the store, so that every origin has some in memory."""
    schedule = filled(*((1, 0, number) for number in range(64)), window=64, lane_heads=64)
    assert schedule.heads == 64
    for origin_id in range(2, 9):
        schedule.ensure_origin(origin_id, key(origin_id), ONE, NOW)
        schedule.add(origin_id, Head(0, 100 + origin_id), NOW)
    assert sorted(hand_out(schedule)) == [0, *range(102, 109)]


def test_when_the_window_is_full_lanes_wait_for_their_turn_to_be_filled() -> None:
    """More lanes than heads fit: all are served in the end."""
    schedule = Schedule(window=3, max_hot_origins=100)
    store = {(number, number) for number in range(1, 21)}
    for origin_id, identity_id in sorted(store):
        schedule.ensure_origin(origin_id, key(origin_id), ONE, NOW)
        schedule.add(origin_id, Head(0, identity_id), NOW)
    for _ in range(20):
        pick = schedule.next(NOW)
        assert pick is not None
        store.remove((pick.origin_id, pick.head.identity_id))
        for refill in schedule.refills():
            rows = [Head(0, own) for origin_id, own in store if origin_id == refill.origin_id]
            schedule.refilled(refill, rows, False, NOW)
        assert schedule.counts(NOW).heads <= 3
    assert not store


# Permits


def test_a_permit_is_granted_at_once_where_the_gate_is_open() -> None:
    """It takes a place as a pick does."""
    schedule = filled((1, 0, 1))
    assert schedule.want_permit(key(1), "robots", NOW, policy=ONE)
    assert schedule.grants(NOW) == []
    assert schedule.next(NOW) is None
    finish(schedule, 1)
    assert hand_out(schedule) == [1]


def test_a_permit_for_a_gate_that_is_not_in_memory_makes_it() -> None:
    """With the timing that is known of it."""
    schedule = Schedule()
    wanted = schedule.want_permit("x", "media", NOW, policy=SLOW, next_eligible_at=NOW + 1)
    assert not wanted
    assert schedule.next_at(NOW) == NOW + 1
    assert schedule.grants(NOW) == []
    assert schedule.grants(NOW + 1) == ["media"]
    assert schedule.next_at(NOW + 1) is None


def test_a_gate_made_for_a_permit_is_forgotten_afterwards() -> None:
    """Hosts that are asked for media only leave no trace, once their interval has ended."""
    schedule = Schedule()
    assert schedule.want_permit("x", "media", NOW, policy=ONE)
    schedule.charge("x", NOW)
    schedule.release("x", NOW)
    assert schedule.counts(NOW).gates == 0


def test_waiters_and_urls_alternate() -> None:
    """One for one, as long as both want; `next` is asked before `grants`."""
    schedule = filled(*((1, 0, number) for number in range(1, 5)))
    order: list[object] = [*hand_out(schedule)]
    for token in "abc":
        assert not schedule.want_permit(key(1), token, NOW, policy=ONE)
    for _ in range(6):
        finish(schedule, 1)
        order += hand_out(schedule)
        order += schedule.grants(NOW)
    assert order == [1, "a", 2, "b", 3, "c", 4]


def test_a_chain_of_permits_does_not_starve_the_urls() -> None:
    """Each asks when the one before has finished: there is never more than one waiter."""
    schedule = filled((1, 0, 1), (1, 0, 2))
    order: list[object] = []
    assert schedule.want_permit(key(1), 0, NOW, policy=ONE)
    for number in range(1, 5):
        finish(schedule, 1)
        if schedule.want_permit(key(1), number, NOW, policy=ONE):
            order.append(f"permit {number}")
            continue
        order += hand_out(schedule)
        finish(schedule, 1)
        order += [f"permit {token}" for token in schedule.grants(NOW)]
    assert order[:4] == [1, "permit 1", 2, "permit 2"]


def test_nobody_waits_for_urls_that_nobody_asks_for() -> None:
    """An engine full of waiters does not ask for URLs; the permits go out all the same."""
    schedule = filled((1, 0, 1), (1, 0, 2))
    for token in "abc":
        schedule.want_permit(key(1), token, NOW, policy=ONE)
    for token in "bc":
        finish(schedule, 1)
        assert schedule.grants(NOW) == [token]


def test_every_place_that_is_free_is_given_to_waiters() -> None:
    """With a higher limit they do not queue behind each other."""
    schedule = Schedule()
    policy = OriginPolicy(3)
    answers = [schedule.want_permit("x", token, NOW, policy=policy) for token in "abcde"]
    assert answers == [True, True, True, False, False]
    for _ in range(2):
        schedule.charge("x", NOW)
        schedule.release("x", NOW)
    assert schedule.grants(NOW) == ["d", "e"]


def test_robots_txt_goes_first_and_past_the_robots_brake() -> None:
    """Nothing else of the origin may move without it."""
    schedule = filled((1, 0, 1))
    schedule.close(key(1), GateState.ROBOTS_PENDING, NOW)
    assert not schedule.want_permit(key(1), "media", NOW, policy=ONE)
    assert schedule.want_permit(key(1), "robots", NOW, policy=ONE, past_robots=True)
    finish(schedule, 1)
    assert schedule.next(NOW) is None
    assert schedule.grants(NOW) == []
    schedule.reopen(key(1), NOW, GateState.ROBOTS_PENDING)
    assert [*hand_out(schedule), *schedule.grants(NOW)] == [1]


def test_robots_txt_waits_for_the_interval() -> None:
    """The alarm is set for it although the URLs are held."""
    schedule = filled((1, 0, 1), (1, 0, 2), policy=SLOW)
    hand_out(schedule)
    finish(schedule, 1, interval_s=2.0)
    schedule.close(key(1), GateState.ROBOTS_PENDING, NOW)
    assert not schedule.want_permit(key(1), "robots", NOW, policy=SLOW, past_robots=True)
    assert schedule.next_at(NOW) == NOW + 2
    assert schedule.grants(NOW + 2) == ["robots"]


def test_a_permit_that_is_not_wanted_any_more() -> None:
    """A waiter leaves the line; an uncollected grant gives its place back; a collected one does not."""
    schedule = filled((1, 0, 1), (1, 0, 2))
    hand_out(schedule)
    for token in "abc":
        schedule.want_permit(key(1), token, NOW, policy=ONE)
    assert schedule.forget_permit("b", NOW)
    finish(schedule, 1)
    assert schedule.forget_permit("a", NOW)
    assert not schedule.forget_permit("a", NOW)
    order = [*hand_out(schedule), *schedule.grants(NOW)]
    finish(schedule, 1)
    order += [*hand_out(schedule), *schedule.grants(NOW)]
    assert order == [2, "c"]
    assert not schedule.forget_permit("c", NOW)


def test_a_token_waits_once() -> None:
    """Asking twice with one token is a mistake of the caller's."""
    schedule = filled((1, 0, 1))
    hand_out(schedule)
    schedule.want_permit(key(1), "a", NOW, policy=ONE)
    with pytest.raises(SchedulingError, match="'a'"):
        schedule.want_permit(key(1), "a", NOW, policy=ONE)


# What it looks like


def test_counts_and_repr_tell_the_situation() -> None:
    """For statistics, and for a look from a debugger."""
    schedule = filled((1, 0, 1), (2, 0, 2), (2, 0, 3), (3, 0, 4), (4, 0, 5))
    schedule.close(key(3), GateState.CLOSED, NOW)
    schedule.next(NOW)
    schedule.next(NOW)
    schedule.want_permit(key(2), "a", NOW, policy=ONE)
    schedule.cold_waiting = 7
    counts = schedule.counts(NOW)
    assert (counts.hot_origins, counts.gates, counts.heads, counts.lanes) == (4, 4, 3, 3)
    assert (counts.ready, counts.in_flight, counts.permits_waiting) == (1, 2, 1)
    assert (counts.cold_waiting, counts.activating) == (7, 0)
    assert counts.gates_by_state == {
        GateState.BUSY: 1,
        GateState.CLOSED: 1,
        GateState.OPEN: 1,
    }
    assert repr(schedule) == (
        "<Schedule heads=3/10000 hot=4/2000 cold=7 ready=1 in_flight=2 permits_waiting=1>"
    )
