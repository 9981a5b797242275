"""What each message does to the ledger, and that nothing else can be done to it."""

from __future__ import annotations

from typing import Any

import pytest
from apply_bench import (
    EXCLUDED,
    LINK,
    NOW,
    SEED,
    Bench,
    dump,
    needs_two_writers,
    reference,
)
from store_kinds import Stores

from scrapy_frontier.frontier.runs import transaction
from scrapy_frontier.identity.keys import fetch_key
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store import edges
from scrapy_frontier.store.messages import (
    Dispatch,
    Due,
    Emission,
    Finding,
    Known,
    Lease,
    Message,
    Move,
    OriginTiming,
    Read,
    Reason,
    Rejected,
    Source,
    Tally,
    Transit,
)
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.postgresql.cursor import PostgresqlCursor
from scrapy_frontier.store.rows import (
    RANKS,
    cursor_of,
    lane_heads,
    waiting_counts,
)

# References


def test_first_reference_makes_an_identity(bench: Bench) -> None:
    """A new key is discovered, admitted and scheduled in one step, and offered to the schedule."""
    payload = object()
    known: list[Known] = []
    committed = bench.apply(reference("a", payload=payload, rank=-5, on_commit=known.append))
    (answer,) = known
    assert (answer.is_new, answer.is_taken, answer.is_suppressed) == (True, True, False)
    assert bench.events(answer.identity_id) == ["discover", "admit", "enqueue"]
    (head,) = committed.scheduled
    assert (head.identity_id, head.rank, head.url) == (answer.identity_id, -5, "http://a.example/a")
    assert head.payload is payload
    bench.assert_sound()


def test_further_reference_is_a_duplicate(bench: Bench) -> None:
    """It changes no state and is counted as an edge."""
    first = bench.refer("a")
    again = bench.refer("a")
    assert (again.identity_id, again.is_new, again.is_taken) == (first.identity_id, False, False)
    assert bench.events(first.identity_id) == ["discover", "admit", "enqueue"]
    references = bench.account.references
    assert (references.total, references.fresh, references.duplicates) == (2, 1, 1)
    bench.assert_sound()


def test_twice_in_one_transaction(bench: Bench) -> None:
    """Two references to one new key in one group make one identity."""
    answers: list[Known] = []
    message = reference("a", on_commit=answers.append)
    committed = bench.apply(message, message)
    assert [answer.is_new for answer in answers] == [True, False]
    assert len({answer.identity_id for answer in answers}) == 1
    assert len(committed.scheduled) == 1
    bench.assert_sound()


def test_excluded_reference(bench: Bench) -> None:
    """What a rule excludes is an identity that stands suppressed and is not offered."""
    known: list[Known] = []
    committed = bench.apply(reference("a", verdict=EXCLUDED, on_commit=known.append))
    assert (known[0].is_suppressed, known[0].is_taken) == (True, False)
    assert committed.scheduled == []
    bench.refer("a", verdict=EXCLUDED)
    assert bench.account.identities.suppressed == {"scope.path": 1}
    assert bench.account.references.excluded == 1
    bench.assert_sound()


def test_reference_with_a_time(bench: Bench) -> None:
    """It waits as deferred, and is released when due, not before."""
    known: list[Known] = []
    committed = bench.apply(reference("a", due_ms=NOW + 500, on_commit=known.append))
    number = known[0].identity_id
    assert committed.timed == [(NOW + 500, number)]
    assert bench.state(number) is State.DEFERRED
    moved: list[int] = []
    assert bench.apply(Due([number], NOW + 499, moved.append)).scheduled == []
    assert [head.identity_id for head in bench.apply(Due([number], NOW + 500)).scheduled] == [
        number
    ]
    assert bench.apply(Due([number], NOW + 501, moved.append)).scheduled == []
    assert moved == [0, 0]
    assert bench.events(number) == ["discover", "admit", "defer", "release"]
    bench.assert_sound()


def test_a_time_that_is_past_holds_nobody(bench: Bench) -> None:
    """Due now or before means at once."""
    assert bench.state(bench.refer("a", due_ms=NOW).identity_id) is State.SCHEDULED


def test_direct_reference_is_not_offered(bench: Bench) -> None:
    """Whoever issued it fetches it himself: the schedule never sees it, also not in the store."""

    def offered() -> list[Any]:
        with transaction(bench.store, "reading") as connection:
            cursor = cursor_of(connection)
            first = (-RANKS, 0)
            return [
                *lane_heads(cursor, known.origin_id, first, RANKS, 10),
                *(count for count in waiting_counts(cursor, bench.run.run_id) if count),
            ]

    known = bench.refer("a", is_direct=True, record=None)
    for _ in range(2):
        assert offered() == []
        lease = bench.dispatch(known.identity_id, is_direct=True)
        bench.respond(lease)
        bench.finish(lease)
        again = reference("a", is_direct=True, is_visit=True, record=None)
        assert bench.apply(again).scheduled == []
    assert bench.account.attempts.total == 2
    bench.assert_sound()


def test_waivers_are_counted_with_an_example(bench: Bench) -> None:
    """The report shows what was let in, how often and where first."""
    bench.apply(reference("a", waiver="allow_offsite"), reference("b", waiver="allow_offsite"))
    (waiver,) = bench.account.waivers
    assert (waiver.name, waiver.count, waiver.example) == (
        "allow_offsite",
        2,
        "http://a.example/a",
    )


# Seeds


def test_replayed_seeds_change_nothing(bench: Bench) -> None:
    """A resumed `start()` yields its seeds again: as many as are in the ledger are passed over."""
    first = bench.refer("a", kind=SEED, seed=1, is_visit=True)
    second = bench.refer("a", kind=SEED, seed=2, is_visit=True)
    assert (first.is_new, second.is_taken) == (True, True)
    resumed = Bench(bench.store, bench.run)
    for number in (1, 2):
        assert not resumed.refer("a", kind=SEED, seed=number, is_visit=True).is_taken
    assert resumed.account.references.total == 2
    assert resumed.refer("a", kind=SEED, seed=3, is_visit=True).is_taken
    assert resumed.account.references.total == 3
    resumed.assert_sound()


def test_replayed_seeds_in_the_same_transaction(bench: Bench) -> None:
    """The count holds within a group, too."""
    answers: list[Known] = []
    seeds = [
        reference("a", kind=SEED, seed=number, is_visit=True, on_commit=answers.append)
        for number in (1, 2, 1, 2, 3)
    ]
    bench.apply(*seeds)
    assert [answer.is_taken for answer in answers] == [True, True, False, False, True]
    assert bench.rows("SELECT requests FROM seed") == [(3,)]
    bench.assert_sound()


def test_lost_seed_is_taken_again(bench: Bench) -> None:
    """A seed whose request lived in memory only is given by the replay."""
    known = bench.refer("a", kind=SEED, seed=1, is_visit=True, record=None)
    bench.apply(Transit([known.identity_id], Event.DEFER, Reason("request.unserialisable"), NOW))
    again: list[Known] = []
    committed = bench.apply(
        reference("a", kind=SEED, seed=1, is_visit=True, record=None, on_commit=again.append)
    )
    assert again[0].is_taken
    assert [head.identity_id for head in committed.scheduled] == [known.identity_id]
    bench.assert_sound()


# Visits


def test_visit_after_the_end_is_a_new_attempt(bench: Bench) -> None:
    """`dont_filter` on a terminal identity schedules it again, with the new request."""
    lease, _ = bench.fetch("a")
    bench.finish(lease)
    committed = bench.apply(reference("a", is_visit=True, record='{"priority": 3}', rank=-3))
    (head,) = committed.scheduled
    assert (head.identity_id, head.record, head.rank) == (
        lease.identity_id,
        '{"priority": 3}',
        -3,
    )
    assert bench.finish(bench.fetch_again(lease))
    assert bench.account.attempts.total == 2
    bench.assert_sound()


def test_visits_wait_for_their_turn(bench: Bench) -> None:
    """Visits of an identity under way wait, and are served one after the other, in order."""
    lease, _ = bench.fetch("a")
    for rank in (1, 2, 3):
        assert bench.refer("a", is_visit=True, rank=rank, record=f'{{"priority": {rank}}}').is_taken
    served = []
    for _ in range(3):
        move = Move(lease, Event.PROCESS, Reason("http.200"), NOW, Disposition.SUCCEEDED)
        (head,) = bench.apply(move).scheduled
        served.append((head.rank, head.record))
        lease = bench.fetch_again(lease)
    assert bench.finish(lease)
    assert served == [(rank, f'{{"priority": {rank}}}') for rank in (1, 2, 3)]
    assert bench.state(lease.identity_id) is State.TERMINAL
    bench.assert_sound()


def test_visit_and_end_in_one_transaction(bench: Bench) -> None:
    """A visit that comes in the same group as the end of its page is not forgotten."""
    lease, _ = bench.fetch("a")
    end = Move(lease, Event.PROCESS, Reason("http.200"), NOW, Disposition.SUCCEEDED)
    committed = bench.apply(reference("a", is_visit=True), reference("a", is_visit=True), end)
    assert len(committed.scheduled) == 1
    second = bench.fetch_again(lease)
    bench.finish(second)
    assert bench.state(lease.identity_id) is State.SCHEDULED
    bench.assert_sound()


def test_waiting_visits_are_known_after_a_restart(bench: Bench) -> None:
    """A visit in waiting is served although the process that took it in has gone."""
    lease, _ = bench.fetch("a")
    bench.refer("a", is_visit=True)
    resumed = Bench(bench.store, bench.run)
    resumed.finish(lease)
    assert resumed.state(lease.identity_id) is State.SCHEDULED
    resumed.assert_sound()


def test_waiting_visit_with_a_time(bench: Bench) -> None:
    """When its turn comes before its time, it is held until then."""
    lease, _ = bench.fetch("a")
    bench.refer("a", is_visit=True, due_ms=NOW + 1000)
    committed = bench.apply(
        Move(lease, Event.PROCESS, Reason("http.200"), NOW, Disposition.SUCCEEDED)
    )
    assert committed.scheduled == []
    assert committed.timed == [(NOW + 1000, lease.identity_id)]
    bench.assert_sound()


def test_visit_of_an_excluded_identity(bench: Bench) -> None:
    """An explicit visit that the scope admits lets the identity in; one that it excludes does not."""
    known = bench.refer("a", verdict=EXCLUDED)
    assert not bench.refer("a", is_visit=True, verdict=EXCLUDED).is_taken
    assert bench.refer("a", is_visit=True).is_taken
    assert bench.events(known.identity_id)[-2:] == ["readmit", "enqueue"]
    bench.assert_sound()


def test_visits_in_waiting_outlive_an_exclusion(bench: Bench) -> None:
    """What waits behind a request that a component dropped is made, or ends by name: never neither."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    bench.refer("a", is_visit=True)
    bench.move(lease, Event.EXCLUDE, None, Finding("request.ignored"))
    assert bench.rows("SELECT count(*) FROM visit WHERE is_waiting = 1") == [(0,)]
    bench.assert_sound()


@pytest.mark.parametrize("rule", ["robots.disallow", "scope.path"])
def test_waiting_visits_of_an_excluded_identity(bench: Bench, rule: str) -> None:
    """A rule that excludes a URL at its turn leaves no visit waiting for a turn that never comes."""
    number = bench.refer("a").identity_id
    bench.refer("a", is_visit=True)
    bench.refer("a", is_visit=True)
    for _ in range(3):
        if bench.state(number) is State.SCHEDULED:
            bench.apply(Transit([number], Event.EXCLUDE, Reason(rule), NOW))
    assert bench.state(number) is State.SUPPRESSED
    assert bench.rows("SELECT count(*) FROM visit WHERE is_waiting = 1") == [(0,)]
    bench.assert_sound()


# Emissions


def test_emission_counts(bench: Bench) -> None:
    """Fresh, duplicate, excluded and rejected references of a page add up to its total."""
    lease, page = bench.fetch("page")
    excluded = bench.refer("no", verdict=EXCLUDED).identity_id
    bench.apply(
        reference("new", source=page),
        Emission(
            page,
            LINK,
            [lease.identity_id, fetch_key("GET", "http://a.example/new"), excluded],
            1,
            [Rejected("scheme.unsupported", "mailto:x"), Rejected("userinfo", "http://u@h/")],
            [(excluded, edges.Observation(0, "/no#x", "x").line())],
        ),
    )
    (row,) = bench.rows(
        "SELECT total, fresh, duplicates, excluded, rejected, targets, observations FROM emission"
        f" WHERE source_id = {page.identity_id}"
    )
    assert row[:5] == (6, 1, 2, 1, 2)
    new = bench.refer("new").identity_id
    assert edges.unpack(row[5]) == [new, lease.identity_id, new, excluded]
    (seen,) = edges.unpack_observations(row[6])
    assert (seen.target, seen.observed, seen.fragment) == (excluded, "/no#x", "x")
    bench.finish(lease)
    bench.assert_sound()


def test_page_that_is_fetched_again_after_a_crash(bench: Bench) -> None:
    """What it emits the second time are further edges: no child is found twice, and the account adds up."""
    lease, page = bench.fetch("page")
    children = [reference(f"child{number}", source=page) for number in range(3)]
    bench.apply(*children[:2])
    resumed = Bench(bench.store, bench.run)
    resumed.apply(Transit([lease.identity_id], Event.RECLAIM, Reason("lease.lost"), NOW))
    again = resumed.fetch_again(lease)
    source = Source(again.identity_id, again.attempt_id)
    resumed.apply(*(reference(f"child{number}", source=source) for number in range(3)))
    resumed.finish(again)
    references = resumed.account.references
    assert (references.total, references.fresh, references.duplicates) == (6, 4, 2)
    assert resumed.account.identities.discovered == 4
    by_attempt = resumed.rows(
        "SELECT attempt_id, total, fresh FROM emission WHERE source_id > 0 ORDER BY attempt_id"
    )
    assert by_attempt == [(lease.attempt_id, 2, 2), (again.attempt_id, 3, 1)]
    resumed.assert_sound()


# The rest


def test_origin_clocks_never_go_back(bench: Bench) -> None:
    """The later time wins, in one transaction and across several."""
    origin = bench.refer("a").origin_id
    bench.apply(OriginTiming(origin, NOW + 5))
    bench.apply(OriginTiming(origin, NOW + 3))
    assert bench.rows("SELECT next_eligible_ms FROM origin") == [(NOW + 5,)]
    bench.apply(OriginTiming(origin, NOW + 9), OriginTiming(origin, NOW + 7))
    assert bench.rows("SELECT next_eligible_ms FROM origin") == [(NOW + 9,)]


def test_tallies_add_up_and_keep_the_first_example(bench: Bench) -> None:
    """Counts grow across transactions; the example stays."""
    bench.apply(Tally("kind", "name", 2, "first"), Tally("kind", "name", 1, "second"))
    bench.apply(Tally("kind", "name", 1, "third"), Tally("kind", "other", 1))
    assert bench.rows("SELECT name, count, example FROM tally ORDER BY name") == [
        ("name", 4, "first"),
        ("other", 1, None),
    ]


def test_a_question_sees_every_message_before_it(bench: Bench) -> None:
    """An answer shows the store as it is after what was sent before the question."""
    found: list[Any] = []

    def count(cursor: Any) -> Any:
        cursor.execute("SELECT count(*) FROM current")
        return cursor.fetchone()[0]

    bench.apply(reference("a"), Read(count, found.append), reference("b"))
    assert found[0] >= 1
    bench.apply(Read(count, found.append))
    assert found[1] == 2


def test_rollback_keeps_nothing(
    bench: Bench, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that fails leaves no row, no answer, no id taken; applied again it is the same."""
    # The server's clock runs on meanwhile.
    monkeypatch.setattr(PostgresqlCursor, "now_ms", lambda _, at_ms: at_ms)
    bench.refer("before")
    known: list[Known] = []
    lease = Lease(1)
    messages: list[Message] = [
        reference("a", on_commit=known.append),
        reference("b", is_visit=True, seed=1, kind=SEED),
        Dispatch(lease, NOW, Reason("band.0")),
        reference("before", is_visit=True),
        Transit([999], Event.DEFER, Reason("new.code"), NOW),
    ]
    before = dump(bench)

    def fail(_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.apply(*messages, Read(fail, known.append))
    assert known == []
    assert dump(bench) == before
    bench.apply(*messages)
    once = dump(bench)
    bench.assert_sound()

    other = Bench(stores.open())
    other.refer("before")
    lease.attempt_id = lease.generation = 0
    other.apply(*messages)
    assert dump(other) == once


@needs_two_writers
def test_ids_that_another_process_took(store_url: str) -> None:
    """After a reload every id is free, although another process has written to the same store."""
    with open_store(store_url, create=True) as store, open_store(store_url) as other_store:
        mine, others = Bench(store), Bench(other_store)
        mine.refer("a")
        others.load()
        for number in range(3):
            others.refer(f"x{number}", origin=f"http://{number}.example")
        others.finish(others.fetch("x9")[0])
        mine.load()
        lease, _ = mine.fetch("b")
        mine.finish(lease)
        mine.assert_sound()
        others.load()
        others.assert_sound()
        assert mine.account.identities.discovered == 2
        assert others.account.identities.discovered == 4
