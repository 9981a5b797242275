"""Leases over time, and results that are not applied: late, repeated, conflicting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from apply_bench import NOW, Bench
from report_ledger import Ledger

from scrapy_frontier.cli import main
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.leases import GIVE_UP, RECLAIM, LeasePolicy
from scrapy_frontier.report.verify import verify
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.messages import (
    Expire,
    Finding,
    Lease,
    Move,
    Reason,
    Reclaimed,
    Renew,
    Retry,
)
from scrapy_frontier.store.opening import open_store

LENGTH_MS = 60_000
OTHER = b"2" * 32


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A store in memory, whose leases hold for a minute and may expire twice."""
    with open_store("sqlite://", create=True) as store:
        made = Bench(store)
        run = made.run
        made.applier = Applier(
            run.run_id, run.context_id, run.session_id, LeasePolicy(LENGTH_MS / 1000, 3)
        )
        made.load()
        yield made


def expire(bench: Bench, at_ms: int) -> list[Reclaimed]:
    """What is taken back at this time."""
    taken: list[Reclaimed] = []
    bench.apply(Expire(at_ms, taken.extend))
    return taken


def renew(bench: Bench, at_ms: int, *leases: Lease) -> list[int]:
    """The attempts among these leases that are not in force any more."""
    lost: list[int] = []
    bench.apply(Renew(leases, at_ms, lost.extend))
    return lost


def test_lease_is_taken_back_when_its_time_is_over_and_not_before(bench: Bench) -> None:
    """Then its identity is scheduled again, its attempt has an outcome, and the reason has its inputs."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    assert expire(bench, NOW + LENGTH_MS - 1) == []
    assert bench.state(lease.identity_id) is State.FETCHING
    (taken,) = expire(bench, NOW + LENGTH_MS)
    assert taken == (lease.identity_id, lease.attempt_id, lease.generation, True)
    assert bench.state(lease.identity_id) is State.SCHEDULED
    assert bench.account.attempts.by_outcome == {"lease.expired": 1}
    ((detail,),) = bench.rows("SELECT detail FROM transition ORDER BY seq DESC LIMIT 1")
    assert json.loads(detail) == {
        "expired_ms": NOW + LENGTH_MS,
        "now_ms": NOW + LENGTH_MS,
        "session": bench.run.session_id,
        "limit": 3,
    }
    bench.assert_sound()


def test_assignment_carries_worker_generation_and_expiry(bench: Bench) -> None:
    """All three stand in the attempt's row; the session names the worker."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    assert bench.rows("SELECT session_id, generation, expires_ms FROM attempt") == [
        (bench.run.session_id, lease.generation, NOW + LENGTH_MS)
    ]


def test_renewed_lease_holds_for_its_full_length_from_then(bench: Bench) -> None:
    """Renewal moves the expiry; it says which leases are not in force."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    other = bench.dispatch(bench.refer("b").identity_id)
    assert renew(bench, NOW + 50_000, lease) == []
    assert [one.identity_id for one in expire(bench, NOW + LENGTH_MS)] == [other.identity_id]
    assert renew(bench, NOW + LENGTH_MS, lease, other) == [other.attempt_id]
    assert expire(bench, NOW + LENGTH_MS + 59_999) == []
    bench.assert_sound()


def test_renewal_in_the_same_transaction_counts(bench: Bench) -> None:
    """What shows a sign of life, or moves, beside the expiry is alive."""
    one, two = (bench.dispatch(bench.refer(path).identity_id) for path in "ab")
    late = NOW + LENGTH_MS
    taken: list[Reclaimed] = []
    finding = Finding("http.200", 200, 1, b"1" * 32)
    bench.apply(
        Renew([one], late),
        Move(two, Event.RESPOND, Reason("http.200"), late, finding=finding),
        Expire(late, taken.extend),
    )
    assert taken == []
    assert bench.state(two.identity_id) is State.FETCHED


def test_lease_holds_while_a_page_is_processed(bench: Bench) -> None:
    """A fetched page whose callback hangs is taken back too; its outcome stays what was answered."""
    lease, _ = bench.fetch("a")
    (taken,) = expire(bench, NOW + LENGTH_MS)
    assert taken.is_scheduled
    assert bench.account.attempts.by_outcome == {"http.200": 1}
    assert not bench.finish(lease)
    assert bench.state(lease.identity_id) is State.SCHEDULED
    assert bench.account.attempts.late == 1
    bench.assert_sound()


def test_expired_lease_that_was_not_taken_back_is_in_force(bench: Bench) -> None:
    """Expiry allows to take it back; it proves nothing about the worker."""
    lease = bench.dispatch(bench.refer("a").identity_id)
    assert renew(bench, NOW + 10 * LENGTH_MS, lease) == []
    assert bench.respond(lease)
    assert bench.account.attempts.late == 0


def test_identity_that_hangs_each_time_is_given_up(bench: Bench) -> None:
    """At the limit it ends as failed; a visit that is asked for later begins to count anew."""
    number = bench.refer("a").identity_id
    for _ in range(2):
        bench.dispatch(number)
        (taken,) = expire(bench, NOW + LENGTH_MS)
        assert taken.is_scheduled
    bench.dispatch(number)
    (taken,) = expire(bench, NOW + LENGTH_MS)
    assert not taken.is_scheduled
    assert bench.account.identities.terminal == {"failed": 1}
    assert bench.account.deadletters[0].reason == "lease.exhausted"
    bench.refer("a", is_visit=True)
    bench.dispatch(number)
    (taken,) = expire(bench, NOW + LENGTH_MS)
    assert taken.is_scheduled
    bench.assert_sound()


def test_rule_of_expiry() -> None:
    """The decision follows from its inputs alone."""
    rule = LeasePolicy(1.0, 2)
    assert [rule.on_expiry(count) for count in (1, 2, 3)] == [RECLAIM, GIVE_UP, GIVE_UP]


def test_direct_download_that_hangs_is_cancelled(bench: Bench) -> None:
    """Nobody but its issuer can take its answer."""
    number = bench.refer("a", kind=int(ReferenceKind.DIRECT), is_direct=True).identity_id
    bench.dispatch(number, is_direct=True)
    (taken,) = expire(bench, NOW + LENGTH_MS)
    assert not taken.is_scheduled
    assert bench.account.identities.terminal == {"cancelled": 1}
    bench.assert_sound()


def test_late_result_is_kept_as_evidence_once(bench: Bench) -> None:
    """With attempt, generation, event, outcome, digest and time, however often it is delivered."""
    old = bench.dispatch(bench.refer("a").identity_id)
    expire(bench, NOW + LENGTH_MS)
    new = bench.dispatch(old.identity_id)
    for _ in range(3):
        assert not bench.respond(old)
    assert bench.rows(
        "SELECT attempt_id, generation, event, code, status, size, payload, at_ms FROM late"
        " JOIN reason ON reason_id = outcome_id"
    ) == [(old.attempt_id, old.generation, Event.RESPOND, "http.200", 200, 10, b"1" * 32, NOW)]
    retry = Retry(old, Reason("retry.http.503"), NOW, 0, "{}", 0, Finding("http.503", 503))
    assert bench.apply(retry).scheduled == []
    assert bench.account.attempts.late == 2
    assert bench.state(old.identity_id) is State.FETCHING
    assert bench.respond(new)
    assert bench.finish(new)
    bench.assert_sound()


def test_late_result_is_kept_once_within_one_transaction(bench: Bench) -> None:
    """Also where its deliveries share a transaction."""
    old = bench.dispatch(bench.refer("a").identity_id)
    expire(bench, NOW + LENGTH_MS)
    finding = Finding("http.200", 200, 10, b"1" * 32)
    other = Finding("http.200", 200, 10, OTHER)
    respond = [
        Move(old, Event.RESPOND, Reason("http.200"), NOW, finding=one)
        for one in (finding, finding, other, other)
    ]
    bench.apply(*respond)
    assert bench.account.attempts.late == 1
    assert bench.account.attempts.quarantined == 1
    bench.assert_sound()


def test_lease_that_was_never_granted_leaves_no_evidence(bench: Bench) -> None:
    """There is no attempt that it could speak for."""
    number = bench.refer("a").identity_id
    assert not bench.respond(Lease(number))
    assert bench.account.attempts.late == 0


def test_conflicting_result_is_quarantined_with_both_digests(bench: Bench) -> None:
    """Once for each other payload, however often it is delivered; what was applied stays."""
    lease, _ = bench.fetch("a")
    for payload in (OTHER, b"3" * 32, OTHER):
        assert not bench.respond(lease, payload)
    assert bench.rows(
        "SELECT first_payload, payload, attempt_id, generation FROM quarantine ORDER BY payload"
    ) == [
        (b"1" * 32, OTHER, lease.attempt_id, lease.generation),
        (b"1" * 32, b"3" * 32, lease.attempt_id, lease.generation),
    ]
    assert bench.account.attempts.quarantined == 2
    assert bench.rows("SELECT payload FROM attempt") == [(b"1" * 32,)]
    assert bench.respond(lease), "the first one again is no conflict"
    bench.assert_sound()


def test_late_result_is_the_first_of_its_attempt(bench: Bench) -> None:
    """A second one that contradicts it is quarantined as well, and neither is applied."""
    old = bench.dispatch(bench.refer("a").identity_id)
    expire(bench, NOW + LENGTH_MS)
    assert not bench.respond(old)
    assert not bench.respond(old, OTHER)
    attempts = bench.account.attempts
    assert (attempts.late, attempts.quarantined) == (1, 1)
    assert bench.rows("SELECT payload FROM attempt") == [(None,)]
    bench.assert_sound()


def test_child_of_a_lost_page_belongs_to_the_page_no_more(bench: Bench) -> None:
    """A page that has succeeded by another attempt has no late children; the edge stays on record."""
    old, source = bench.fetch("a")
    expire(bench, NOW + LENGTH_MS)
    new = bench.fetch_again(old)
    assert bench.finish(new)
    child = bench.refer("late-child", source=source)
    assert bench.rows(
        f"SELECT source_id FROM identity WHERE identity_id = {child.identity_id}"
    ) == [(0,)]
    assert bench.rows(f"SELECT attempt_id FROM emission WHERE source_id = {old.identity_id}") == [
        (old.attempt_id,)
    ]
    bench.assert_sound()


def test_many_expired_leases_are_taken_back_in_parts(bench: Bench) -> None:
    """Short transactions: what one message leaves, the next one takes."""
    from scrapy_frontier.store import leases

    count = leases.EXPIRE_LIMIT + 20
    for number in range(count):
        bench.dispatch(bench.refer(f"{number}").identity_id)
    taken = [len(expire(bench, NOW + LENGTH_MS)) for _ in range(3)]
    assert taken == [leases.EXPIRE_LIMIT, 20, 0]


def test_expired_leases_are_found_by_an_index(bench: Bench) -> None:
    """The look costs what is under way, not what the run has seen."""
    from scrapy_frontier.store import leases

    plan = bench.rows(
        f"EXPLAIN QUERY PLAN {leases._EXPIRED}".replace("c.run_id = ?", "c.run_id = 1")
        .replace("<= ?", "<= 0")
        .replace("LIMIT ?", "LIMIT 9")
    )
    assert any("ix_current_leased" in str(row) for row in plan)


def test_clock_that_steps_back_keeps_and_loses_nothing(bench: Bench) -> None:
    """A later session whose clock is behind: order is by number, leases and times still end."""
    number = bench.refer("a").identity_id
    bench.dispatch(number)
    other = bench.dispatch(bench.refer("b").identity_id)
    behind = NOW - 10_000_000
    # An hour back: nothing expires early, results are accepted, generations still grow.
    assert expire(bench, behind) == []
    finding = Finding("http.200", 200, 1, b"1" * 32)
    applied: list[bool] = []
    bench.apply(
        Move(other, Event.RESPOND, Reason("http.200"), behind, None, finding, applied.append)
    )
    end = Move(
        other,
        Event.PROCESS,
        Reason("http.200"),
        behind - 5,
        Disposition.SUCCEEDED,
        None,
        applied.append,
    )
    bench.apply(end)
    assert applied == [True, True]
    assert renew(bench, behind, other) == [other.attempt_id]
    bench.assert_sound()


# What the tools say of it


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A store on disk with a late result and a conflicting one."""
    made = Ledger(tmp_path / "frontier.db")
    lease = made.dispatch(made.seed("http://a.example/"))
    first = Finding("http.200", 200, 3, b"1" * 32)
    made.send(Move(lease, Event.RESPOND, Reason("http.200"), NOW, None, first))
    made.send(
        Move(
            lease, Event.RESPOND, Reason("http.200"), NOW, None, Finding("http.200", 200, 3, OTHER)
        )
    )
    made.process(lease)
    made.send(Move(lease, Event.RESPOND, Reason("http.200"), NOW, None, Finding("http.500", 500)))
    yield made
    made.store.close()


def test_quarantine_shows_what_was_set_aside(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both lists, as text and as data, with both digests."""
    assert main(["quarantine", "--store", ledger.url]) == 0
    shown = capsys.readouterr().out
    assert "1 result in quarantine, 1 late" in shown
    assert OTHER.hex()[:16] in shown
    assert main(["quarantine", "--store", ledger.url, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (conflict,) = data["quarantine"]
    assert conflict["payload"] == OTHER.hex() != conflict["first_payload"]
    (late,) = data["late"]
    assert (late["event"], late["outcome"]) == ("respond", "http.500")
    assert late["url"] == "http://a.example/"


def test_quarantine_of_a_run_without_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Says so."""
    made = Ledger(tmp_path / "frontier.db")
    made.store.close()
    assert main(["quarantine", "--store", made.url]) == 0
    assert "nothing in quarantine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE late SET generation = generation + 1", "row 1 of table late is of no lease"),
        ("UPDATE quarantine SET first_payload = x'00'", "contradicts nothing on record"),
        ("UPDATE attempt SET payload = (SELECT payload FROM quarantine)", "has been applied"),
    ],
)
def test_verify_holds_set_aside_results_against_their_attempts(
    ledger: Ledger, statement: str, says: str
) -> None:
    """What was tampered with is named."""
    assert verify(ledger.store).is_sound
    ledger.tamper(statement)
    assert any(says in finding.text for finding in verify(ledger.store).findings)
