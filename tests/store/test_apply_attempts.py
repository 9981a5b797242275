"""What becomes of leases and results: one at a time, late ones kept, and no move that the table does not have."""

from __future__ import annotations

import itertools

import pytest
from apply_bench import (
    NOW,
    Bench,
    disposition_of,
    reference,
)

from scrapy_frontier.report.verify import verify
from scrapy_frontier.states import TRANSITIONS, Disposition, Event, State
from scrapy_frontier.store.messages import (
    Dispatch,
    Due,
    Finding,
    Lease,
    Reason,
    Retry,
    Transit,
)

# Attempts


def test_dispatch_grants_one_lease(bench: Bench) -> None:
    """A second dispatch of an identity under way is not granted (invariant 3)."""
    number = bench.refer("a").identity_id
    lease = bench.dispatch(number)
    refused: list[bool] = []
    second = Lease(number)
    bench.apply(Dispatch(second, NOW, Reason("band.0"), refused.append))
    assert refused == [False]
    assert second.generation == 0
    assert lease.generation > 0
    assert bench.applier.refused == 0
    bench.assert_sound()


def test_generations_only_grow(bench: Bench) -> None:
    """Within a session, and from one session to the next, whatever the first one had granted."""
    number = bench.refer("a").identity_id
    generations = []
    for _ in range(3):
        lease = bench.dispatch(number)
        generations.append(lease.generation)
        bench.apply(Transit([number], Event.RECLAIM, Reason("lease.lost"), NOW))
    resumed = Bench(bench.store, bench.run)
    generations.append(resumed.dispatch(number).generation)
    assert generations == sorted(set(generations))
    resumed.assert_sound()


def test_late_result_changes_no_state(bench: Bench) -> None:
    """A result whose lease is not the current one is counted and answered with no."""
    number = bench.refer("a").identity_id
    old = bench.dispatch(number)
    bench.apply(Transit([number], Event.RECLAIM, Reason("lease.lost"), NOW))
    new = bench.dispatch(number)
    assert not bench.respond(old)
    assert bench.state(number) is State.FETCHING
    late = Retry(old, Reason("http.503"), NOW, 0, "{}", 0)
    assert bench.apply(late).scheduled == []
    assert bench.account.attempts.late == 2
    assert bench.respond(new)
    assert bench.finish(new)
    assert bench.applier.refused == 0
    bench.assert_sound()


def test_result_of_a_reclaimed_lease_is_late(bench: Bench) -> None:
    """A lease that was taken back is not the current one, also while no other is granted."""
    number = bench.refer("a").identity_id
    old = bench.dispatch(number)
    bench.apply(Transit([number], Event.RECLAIM, Reason("lease.lost"), NOW))
    assert not bench.respond(old)
    assert bench.state(number) is State.SCHEDULED
    assert bench.account.attempts.late == 1
    assert bench.applier.refused == 0
    bench.assert_sound()


def test_result_without_a_lease_is_late(bench: Bench) -> None:
    """A lease that was never granted gives no right to anything."""
    number = bench.refer("a").identity_id
    assert not bench.respond(Lease(number))
    assert not bench.respond(Lease(999))
    assert bench.state(number) is State.SCHEDULED
    bench.assert_sound()


def test_same_result_twice_is_one_result(bench: Bench) -> None:
    """However often a response is delivered, it counts once (invariant 6)."""
    lease, _ = bench.fetch("a")
    before = bench.events(lease.identity_id)
    bench.respond(lease)
    assert bench.events(lease.identity_id) == before
    assert bench.account.attempts.by_outcome == {"http.200": 1}
    assert bench.applier.refused == 0
    bench.assert_sound()


def test_another_result_of_the_same_attempt_is_quarantined(bench: Bench) -> None:
    """A second response with other bytes is never applied, and is counted by name (invariant 6)."""
    lease, _ = bench.fetch("a")
    assert not bench.respond(lease, b"2" * 32)
    assert bench.rows("SELECT payload FROM attempt") == [(b"1" * 32,)]
    assert bench.account.attempts.quarantined == 1
    bench.assert_sound()


def test_retry_keeps_the_identity(bench: Bench) -> None:
    """A failed attempt is followed by another one of the same identity, with the request of the retry."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    payload = object()
    retry = Retry(
        lease,
        Reason("retry.http.503"),
        NOW,
        0,
        '{"meta": {"retry_times": 1}}',
        2,
        Finding("http.503", 503),
        payload,
    )
    (head,) = bench.apply(retry).scheduled
    assert (head.identity_id, head.rank) == (lease.identity_id, 2)
    assert head.record == '{"meta": {"retry_times": 1}}'
    assert head.payload is payload
    assert bench.events(lease.identity_id)[-2:] == ["fail", "become_due"]
    assert bench.account.attempts.by_outcome == {"http.503": 1}
    bench.assert_sound()


def test_retry_with_a_time(bench: Bench) -> None:
    """It waits as retryable until its time."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    retry = Retry(lease, Reason("retry.http.503"), NOW, NOW + 100, "{}", 0, Finding("http.503"))
    committed = bench.apply(retry)
    assert committed.timed == [(NOW + 100, lease.identity_id)]
    assert bench.state(lease.identity_id) is State.RETRYABLE
    assert len(bench.apply(Due([lease.identity_id], NOW + 100)).scheduled) == 1
    assert bench.state(lease.identity_id) is State.SCHEDULED
    bench.assert_sound()


# The transition table

REACH: dict[State, list[Event]] = {
    State.SCHEDULED: [],
    State.FETCHING: [Event.DISPATCH],
    State.FETCHED: [Event.DISPATCH, Event.RESPOND],
    State.RETRYABLE: [Event.DISPATCH, Event.FAIL],
    State.DEFERRED: [Event.DEFER],
    State.SUPPRESSED: [Event.EXCLUDE],
    State.TERMINAL: [Event.CANCEL],
}
"""How an identity comes to each state at rest."""


@pytest.mark.parametrize(
    ("state", "event"), list(itertools.product(REACH, [e for e in Event if e != Event.DISPATCH]))
)
def test_only_legal_moves_are_written(bench_in_memory: Bench, state: State, event: Event) -> None:
    """For every state and event: what the table allows is written, anything else changes nothing.

    On one kind of store: who refuses is the writer, before a statement is sent.
    """
    bench = bench_in_memory
    number = bench.refer("a").identity_id
    for step in REACH[state]:
        if step is Event.DISPATCH:
            bench.dispatch(number)
        else:
            bench.apply(Transit([number], step, Reason("on.the.way"), NOW, disposition_of(step)))
    assert bench.state(number) is state
    before = bench.rows("SELECT * FROM transition")
    standing = bench.rows("SELECT * FROM current")
    bench.apply(Transit([number], event, Reason("a.reason"), NOW, disposition_of(event)))
    target = TRANSITIONS[state].get(event)
    if target is None:
        assert bench.applier.refused == 1
        assert bench.rows("SELECT * FROM transition") == before
        assert bench.rows("SELECT * FROM current") == standing
    else:
        assert bench.applier.refused == 0
        # An identity that is admitted again is scheduled with it.
        expected = State.SCHEDULED if target is State.ADMITTED else target
        assert bench.state(number) is expected
    assert verify(bench.store).findings == ()


def test_refusal_spares_the_rest_of_the_transaction(bench: Bench) -> None:
    """An illegal move costs only itself."""
    number = bench.refer("a").identity_id
    moved: list[int] = []
    bench.apply(
        reference("b"),
        Transit(
            [number, 999],
            Event.PROCESS,
            Reason("a.mistake"),
            NOW,
            Disposition.SUCCEEDED,
            moved.append,
        ),
        reference("c"),
    )
    assert moved == [0]
    assert bench.account.identities.discovered == 3
    bench.assert_sound()
