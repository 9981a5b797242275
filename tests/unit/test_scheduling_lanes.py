"""Lanes: a bounded part of a queue in memory, the rest of it in the store."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import Gate, Head, Lane, Refill
from scrapy_frontier.scheduling.flows import Flow, Origin

RANK_MAX = 2**63 - 1


def lane(horizon: tuple[int, int] | None = None) -> Lane:
    flow = Flow("http://a.example", Gate(OriginPolicy(1), 0.0), 1)
    return Lane(Origin(7, flow, 1, 1), 0, horizon)


def ids(of: Lane) -> list[int]:
    return [head.identity_id for head in of.heads]


def test_heads_go_by_rank_and_then_by_age() -> None:
    """Breadth first inside a band: of two equal ranks the one discovered first."""
    queue = lane()
    for rank, identity_id in [(0, 3), (-1, 9), (0, 1), (5, 2)]:
        assert queue.add(Head(rank, identity_id), 10) is None
    assert [queue.pop().identity_id for _ in range(4)] == [9, 1, 3, 2]
    assert not queue.more_in_store


def test_a_full_lane_leaves_its_worst_head_to_the_store() -> None:
    """A better head takes its place; a worse one is not kept; both times the store has more."""
    queue = lane()
    first, second, third = Head(0, 1), Head(0, 2), Head(0, 3)
    queue.add(first, 2)
    queue.add(third, 2)
    assert queue.add(second, 2) is third
    assert queue.add(third, 2) is third
    assert ids(queue) == [1, 2]
    assert queue.more_in_store


def test_what_may_have_betters_in_the_store_waits_there() -> None:
    """Order is kept across memory and store: there is room, but something better is in the store."""
    queue = lane()
    for identity_id in (1, 2, 3):
        queue.add(Head(0, identity_id), 2)
    queue.pop()
    worse = Head(0, 4)
    assert queue.add(worse, 2) is worse
    assert queue.add(Head(-1, 5), 2) is None
    assert ids(queue) == [5, 2]


def test_a_refill_is_wanted_once_when_the_lane_runs_low() -> None:
    """Not while there is enough, not while an answer is awaited, not where the store has no more."""
    queue = lane()
    queue.add(Head(0, 1), 2)
    assert not queue.wants_refill(1)
    for identity_id in (2, 3):
        queue.add(Head(0, identity_id), 2)
    assert not queue.wants_refill(1)
    queue.pop()
    assert queue.wants_refill(1)
    assert queue.ask(RANK_MAX, 2) == Refill(7, 0, (0, 3), RANK_MAX, 2)
    assert not queue.wants_refill(1)


def test_a_question_without_need_is_refused() -> None:
    """There is nothing to ask for where the store holds nothing more."""
    with pytest.raises(ValueError, match="nothing"):
        lane().ask(RANK_MAX, 1)


def test_what_was_handed_out_cannot_come_back() -> None:
    """The answer may show the store as it was when the question was asked."""
    queue = lane((0, 0))
    first = queue.ask(RANK_MAX, 2)
    queue.answer(first, [Head(0, 1), Head(0, 2)], True, 2, ())
    second = queue.ask(RANK_MAX, 2)
    queue.pop()
    queue.pop()
    added = queue.answer(second, [Head(0, n) for n in (1, 2, 3, 4)], False, 4, ())
    assert [head.identity_id for head in added] == [3, 4]


def test_what_is_here_already_is_passed_over() -> None:
    """An answer may repeat what came by another way."""
    queue = lane((0, 0))
    refill = queue.ask(RANK_MAX, 4)
    assert queue.answer(refill, [Head(0, 1), Head(0, 2)], False, 4, {1}) == [Head(0, 2)]


def test_what_was_excluded_meanwhile_does_not_come_back() -> None:
    """An identity can leave `scheduled` between the store's reading and its answer."""
    queue = lane((0, 0))
    refill = queue.ask(RANK_MAX, 4)
    assert not queue.discard(2)
    queue.answer(refill, [Head(0, 1), Head(0, 2)], False, 4, ())
    assert ids(queue) == [1]
    assert queue.discard(1)
    assert not queue.heads


def test_what_was_left_to_the_store_meanwhile_is_not_forgotten() -> None:
    """The store was read before it came, and says that it has no more."""
    queue = lane((0, 0))
    refill = queue.ask(RANK_MAX, 4)
    queue.add(Head(0, 9), 4)
    queue.answer(refill, [Head(0, 1)], False, 4, ())
    assert queue.more_in_store
    assert queue.ask(RANK_MAX, 4).first == (0, 9)


def test_an_answer_does_not_exceed_the_room_there_is() -> None:
    """What does not fit stays in the store."""
    queue = lane((0, 0))
    refill = queue.ask(RANK_MAX, 4)
    queue.answer(refill, [Head(0, n) for n in (1, 2, 3)], False, 2, ())
    assert ids(queue) == [1, 2]
    assert queue.ask(RANK_MAX, 4).first == (0, 3)


class StoreAndLane(RuleBasedStateMachine):
    """One lane over a store that answers late, with readings of any age since the question."""

    def __init__(self) -> None:
        super().__init__()
        self.store: set[tuple[int, int]] = set()
        self.lane = lane()
        self.capacity = 3
        self.last_id = 0
        self.gone: list[int] = []
        self.reading: list[Head] | None = None
        self.more = False

    def best(self) -> list[tuple[int, int]]:
        return sorted(self.store)

    @rule(rank=st.integers(-2, 2))
    def schedule(self, rank: int) -> None:
        self.last_id += 1
        self.put(rank, self.last_id)

    @precondition(lambda self: self.gone)
    @rule(rank=st.integers(-2, 2))
    def schedule_again(self, rank: int) -> None:
        self.put(rank, self.gone.pop(0))

    def put(self, rank: int, identity_id: int) -> None:
        self.store.add((rank, identity_id))
        self.lane.add(Head(rank, identity_id), self.capacity)

    @precondition(lambda self: self.lane.heads)
    @rule()
    def hand_out(self) -> None:
        head = self.lane.pop()
        assert head[:2] == self.best()[0], "out of order, or twice"
        self.store.remove(head[:2])
        self.gone.append(head.identity_id)

    @precondition(lambda self: self.store)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.best()))
        self.store.remove(key)
        self.lane.discard(key[1])
        self.gone.append(key[1])

    @rule(capacity=st.integers(1, 4))
    def resize(self, capacity: int) -> None:
        self.capacity = capacity
        self.lane.trim(capacity)

    @precondition(lambda self: self.lane.wants_refill(1))
    @rule()
    def ask(self) -> None:
        self.lane.ask(RANK_MAX, max(1, self.capacity - len(self.lane.heads)))

    @precondition(lambda self: self.lane.refill is not None)
    @rule()
    def read(self) -> None:
        refill = self.lane.refill
        assert refill is not None
        rows = [key for key in self.best() if key >= refill.first]
        self.reading = [Head(*key) for key in rows[: refill.limit]]
        self.more = len(rows) > refill.limit

    @precondition(lambda self: self.reading is not None)
    @rule()
    def answer(self) -> None:
        refill = self.lane.refill
        assert refill is not None
        assert self.reading is not None
        room = max(0, self.capacity - len(self.lane.heads))
        self.lane.answer(refill, self.reading, self.more, room, set(ids(self.lane)))
        self.reading = None

    @invariant()
    def bounded_and_sorted(self) -> None:
        assert len(self.lane.heads) <= self.capacity
        assert self.lane.heads == sorted(self.lane.heads)

    @invariant()
    def nothing_is_lost(self) -> None:
        in_memory = {head[:2] for head in self.lane.heads}
        assert in_memory <= self.store
        horizon = self.lane.horizon
        assert all(horizon is not None and key >= horizon for key in self.store - in_memory)

    def teardown(self) -> None:
        if self.reading is not None:
            self.answer()
        while self.store:
            if not self.lane.heads:
                if self.lane.refill is None:
                    self.ask()
                self.read()
                self.answer()
            else:
                self.hand_out()


TestStoreAndLane = StoreAndLane.TestCase
TestStoreAndLane.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
