"""Due times: the soonest in memory, the rest in the store, none late and none twice."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_frontier.scheduling import DueQueue


def test_what_is_due_comes_out_soonest_first() -> None:
    """Exactly at its time, not before."""
    queue = DueQueue(10)
    for due_at, identity_id in [(5.0, 1), (3.0, 2), (3.0, 1), (9.0, 4)]:
        assert queue.add(due_at, identity_id)
    assert queue.next_at() == 3.0
    assert queue.pop_due(2.9) == []
    assert queue.pop_due(5.0) == [1, 2, 1]
    assert queue.next_at() == 9.0
    assert queue.pop_due(9.0) == [4]
    assert queue.next_at() is None


def test_the_soonest_are_held_and_the_horizon_tells_how_far_they_reach() -> None:
    """The latest is left to the store where there are too many."""
    queue = DueQueue(2)
    assert queue.horizon == inf
    assert not queue.more_in_store
    assert queue.add(10.0, 1)
    assert queue.add(20.0, 2)
    assert not queue.add(30.0, 3)
    assert queue.horizon == 30.0
    assert queue.add(5.0, 4)
    assert queue.horizon == 20.0
    assert not queue.add(25.0, 5)
    assert len(queue) == 2
    assert queue.more_in_store


def test_a_refill_is_asked_once_when_the_times_run_low() -> None:
    """It asks for what lies beyond the horizon."""
    queue = DueQueue(4)
    for second in range(1, 8):
        queue.add(float(second), second)
    assert not queue.wants_refill
    assert queue.refill() is None
    assert queue.pop_due(3.0) == [1, 2, 3]
    assert queue.wants_refill
    refill = queue.refill()
    assert refill == ((5.0, 5), 3)
    assert not queue.wants_refill
    assert queue.refill() is None
    queue.refilled([(5.0, 5), (6.0, 6), (7.0, 7)], False)
    assert queue.pop_due(7.0) == [4, 5, 6, 7]
    assert not queue.more_in_store


def test_after_a_restart_everything_is_in_the_store() -> None:
    """The first thing such a queue does is to ask."""
    queue = DueQueue(2, more_in_store=True)
    assert queue.wants_refill
    assert queue.refill() == ((-inf, 0), 2)
    queue.refilled([(1.0, 1), (2.0, 2)], True)
    assert queue.pop_due(2.0) == [1, 2]
    assert queue.refill() == ((2.0, 3), 2)


def test_what_was_left_to_the_store_meanwhile_is_not_forgotten() -> None:
    """The store was read before it came, and says that it has no more."""
    queue = DueQueue(2, more_in_store=True)
    queue.refill()
    assert not queue.add(5.0, 9)
    queue.refilled([(1.0, 1)], False)
    assert queue.more_in_store
    assert queue.horizon == 5.0
    assert queue.pop_due(9.0) == [1]
    assert queue.refill() == ((5.0, 9), 2)


def test_what_was_popped_cannot_come_back() -> None:
    """The answer may show more than was asked for."""
    queue = DueQueue(2, more_in_store=True)
    queue.refill()
    queue.refilled([(1.0, 1), (2.0, 2)], True)
    assert queue.pop_due(2.0) == [1, 2]
    queue.refill()
    queue.refilled([(1.0, 1), (2.0, 2), (3.0, 3)], False)
    assert queue.pop_due(9.0) == [3]


def test_an_answer_without_a_question_is_refused() -> None:
    """It could bring back what was popped."""
    with pytest.raises(ValueError, match="nothing was asked"):
        DueQueue(2).refilled([], False)


def test_a_queue_needs_room() -> None:
    """A limit of 0 could hold nothing."""
    with pytest.raises(ValueError, match="limit"):
        DueQueue(0)


class StoreAndQueue(RuleBasedStateMachine):
    """A queue over a store that answers late."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.store: set[tuple[float, int]] = set()
        self.queue = DueQueue(2, more_in_store=True)
        self.refill: tuple[tuple[float, int], int] | None = None
        self.reading: list[tuple[float, int]] | None = None
        self.more = False
        self.last_id = 0

    @rule(delay=st.integers(0, 12))
    def add(self, delay: int) -> None:
        self.last_id += 1
        due = (self.now + delay, self.last_id)
        self.store.add(due)
        self.queue.add(*due)

    @rule(step=st.integers(0, 3))
    def pop(self, step: int) -> None:
        self.now += step
        expected = sorted(due for due in self.store if due[0] <= self.now)
        popped = self.queue.pop_due(self.now)
        if self.queue.horizon > self.now:
            assert popped == [identity_id for _, identity_id in expected]
        else:
            assert popped == [identity_id for _, identity_id in expected[: len(popped)]]
        self.store -= set(expected[: len(popped)])

    @precondition(lambda self: self.refill is None)
    @rule()
    def ask(self) -> None:
        self.refill = self.queue.refill()

    @precondition(lambda self: self.refill is not None)
    @rule()
    def read(self) -> None:
        assert self.refill is not None
        first, limit = self.refill
        rows = sorted(due for due in self.store if due >= first)
        self.reading, self.more = rows[:limit], len(rows) > limit

    @precondition(lambda self: self.reading is not None)
    @rule()
    def answer(self) -> None:
        assert self.reading is not None
        self.queue.refilled(self.reading, self.more)
        self.refill = self.reading = None

    @invariant()
    def bounded(self) -> None:
        assert len(self.queue) <= 2
        soonest = min(self.store, default=None)
        if soonest is not None and not self.queue.more_in_store:
            assert self.queue.next_at() == soonest[0]

    def teardown(self) -> None:
        if self.reading is not None:
            self.answer()
        for _ in range(2 * len(self.store) + 2):
            if self.refill is None:
                self.ask()
            if self.refill is not None:
                self.read()
                self.answer()
            self.pop(3)
        self.now += 100
        for _ in range(len(self.store) + 1):
            self.pop(0)
            self.ask()
            if self.refill is not None:
                self.read()
                self.answer()
        assert not self.store


TestStoreAndQueue = StoreAndQueue.TestCase
TestStoreAndQueue.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
