"""`verify` accepts what the store writes, and finds every kind of change made behind its back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_ledger import Ledger, crawl
from rough import drop_trigger
from sqlalchemy import text
from store_kinds import Stores

from scrapy_frontier.report.columns import Columns
from scrapy_frontier.report.findings import LIMIT
from scrapy_frontier.report.verify import PAGE, Verification, verify
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Source
from scrapy_frontier.store.opening import open_store


@pytest.fixture
def ledger(stores: Stores) -> Iterator[Ledger]:
    """An empty store with one open run."""
    made = Ledger(stores.empty_url())
    yield made
    made.store.close()


def test_a_crawl_of_every_kind_is_sound(ledger: Ledger) -> None:
    """Nothing is found in what the store itself has written."""
    crawl(ledger)
    ledger.close()
    ledger.begin("second")
    crawl(ledger)

    found = verify(ledger.store)

    assert found.findings == ()
    assert found.is_sound
    assert (found.identities, found.attempts) == (10, 8)


def test_an_empty_store_is_sound(ledger: Ledger) -> None:
    """There is nothing to find."""
    assert verify(ledger.store).is_sound


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["refer", "dispatch", "respond", "process", "retry", "fail", "visit"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_whatever_a_crawl_does_is_sound(steps: list[tuple[str, int]]) -> None:
    """No order of references, dispatches, answers and failures leaves an unsound store."""
    ledger = Ledger()
    leases = {}
    try:
        for step, number in steps:
            url = f"http://a.example/{number}"
            lease = leases.get(number)
            if step in ("refer", "visit"):
                page = Source(lease.identity_id, lease.attempt_id) if lease else Source()
                ledger.refer(url, page=page, is_visit=step == "visit")
            elif step == "dispatch":
                leases[number] = ledger.dispatch(ledger.refer(url))
            elif lease is None or not lease.generation:
                continue
            elif step == "respond":
                ledger.respond(lease)
            elif step == "process":
                ledger.process(leases.pop(number))
            elif step == "retry":
                ledger.retry(lease)
            else:
                ledger.give_up(lease)
        assert verify(ledger.store).findings == ()
    finally:
        ledger.store.close()


@pytest.mark.parametrize(
    ("statement", "invariant", "words"),
    [
        # 1: the projection equals the fold of the ledger
        ("UPDATE current SET state = 9 WHERE state = 8", 1, "suppressed in the projection"),
        ("UPDATE current SET disposition = 4 WHERE state = 6", 1, "gone in the projection"),
        ("UPDATE current SET last_seq = 1 WHERE identity_id = 1", 1, "last seq is 1"),
        ("UPDATE current SET reason_id = 1 WHERE identity_id = 1", 1, "reason is 1"),
        ("UPDATE current SET attempt_id = 3 WHERE identity_id = 1", 1, "attempt is 3"),
        ("UPDATE current SET generation = 1 WHERE identity_id = 1", 1, "generation is 1"),
        ("UPDATE current SET origin_id = 2 WHERE identity_id = 1", 1, "origin is 2"),
        ("UPDATE current SET due_ms = 5 WHERE identity_id = 1", 1, "a time is due"),
        ("DELETE FROM current WHERE identity_id = 2", 1, "has no row"),
        ("UPDATE current SET identity_id = 99 WHERE identity_id = 2", 1, "of no identity"),
        # 2: a path through the table
        ("DELETE FROM transition WHERE seq = 2", 2, "follows 2, but the last one was 1"),
        ("UPDATE transition SET prev_seq = 1 WHERE seq = 5", 2, "follows 1, but"),
        ("UPDATE transition SET from_to = 19 WHERE seq = 3", 2, "begins in discovered, but"),
        ("UPDATE transition SET event = 8 WHERE seq = 3", 2, "cancel from admitted to scheduled"),
        ("UPDATE transition SET identity_id = 99 WHERE seq = 3", 2, "of no identity"),
        ("UPDATE transition SET context_id = 99 WHERE seq = 3", 2, "context 99, which is not"),
        # 3: one lease at a time, generations only grow
        ("UPDATE transition SET attempt_id = 9 WHERE event = 9", 3, "of attempt 9, but"),
        ("UPDATE transition SET attempt_id = 0 WHERE event = 7", 3, "dispatches attempt 0"),
        ("UPDATE attempt SET generation = 3 WHERE attempt_id = 4", 3, "not above"),
        ("UPDATE attempt SET generation = 38654705664 WHERE attempt_id = 1", 3, "of session 1 has"),
        ("UPDATE attempt SET session_id = 7, generation = 30064771072", 3, "which is not of run 1"),
        ("UPDATE attempt SET identity_id = 99 WHERE attempt_id = 1", 3, "of no identity"),
        ("UPDATE attempt SET identity_id = 2 WHERE attempt_id = 1", 3, "less attempts: 1"),
        # 4: children before their parent's end
        ("UPDATE identity SET source_id = 1 WHERE identity_id = 6", 4, "had succeeded before"),
        # 9: the account
        ("DELETE FROM rejection WHERE rejection_id = 1", 9, "1 rejections on record"),
        ("UPDATE emission SET total = 0, fresh = 0, duplicates = 0, rejected = 0", 9, "counts 0"),
        # 0: the store itself
        ("UPDATE transition SET reason_id = 77 WHERE seq = 2", 0, "reason_id of row 2 is 77"),
        ("UPDATE attempt SET outcome_id = 77 WHERE attempt_id = 1", 0, "outcome_id of row 1"),
        ("UPDATE rejection SET source_id = 99", 0, "rejection.source_id"),
        ("UPDATE identity SET origin_id = 99 WHERE identity_id = 2", 0, "no row of table origin"),
        ("UPDATE emission SET targets = :c602", 1, "names it, but run 1 has it not"),
        ("UPDATE emission SET targets = :ff", 1, "end inside a number"),
    ],
)
def test_a_planted_fault_is_found(
    ledger: Ledger, statement: str, invariant: int, words: str
) -> None:
    """Each invariant that the ledger can show is checked, and the finding names it."""
    crawl(ledger)
    ledger.exclude("http://c.example/", "scope.origin")
    values = {name: bytes.fromhex(name) for name in ("c602", "ff") if f":{name}" in statement}
    ledger.tamper(statement, **values)

    found = verify(ledger.store)

    assert not found.is_sound
    assert any(f.invariant == invariant and words in f.text for f in found.findings), found


def test_a_row_that_the_schema_forbids_is_found(ledger: Ledger) -> None:
    """CHECK constraints are evaluated anew: they may have been off when a row was written."""
    crawl(ledger)
    ledger.tamper("UPDATE current SET state = 99 WHERE identity_id = 1")
    findings = verify(ledger.store).findings
    assert any(f.invariant == 0 and "CHECK constraint failed" in f.text for f in findings)


@pytest.mark.parametrize("trigger", ["transition_no_UPDATE", "transition_no_DELETE"])
def test_a_ledger_that_can_be_changed_is_found(stores: Stores, trigger: str) -> None:
    """The triggers that keep the ledger append-only must be there (invariant 10)."""
    with open_store(stores.new_url(), create=True) as store:
        drop_trigger(store.writer_connection(), trigger)
        (finding,) = verify(store).findings
        assert (finding.invariant, trigger in finding.text) == (10, True)


def test_a_child_that_came_too_late_is_found(ledger: Ledger) -> None:
    """A page that succeeded may not yield any more (invariant 4)."""
    page = ledger.fetch(ledger.seed("http://a.example/"))
    ledger.finish()
    late = ledger.refer("http://a.example/late", page=page)

    (finding,) = verify(ledger.store).findings

    assert (finding.invariant, finding.identity) == (4, late)
    assert "http://a.example/late" in finding.text


def test_a_page_that_failed_in_its_callback_is_no_late_parent(ledger: Ledger) -> None:
    """The errback may go on after the page has ended otherwise than as succeeded."""
    lease = ledger.dispatch(ledger.seed("http://a.example/"))
    page = ledger.respond(lease)
    ledger.process(lease, Disposition.CALLBACK_ERROR, Event.PROCESS, "callback.exception")
    ledger.refer("http://a.example/errback", page=page)
    assert verify(ledger.store).is_sound


def test_one_run_of_a_store_can_be_verified_alone(ledger: Ledger) -> None:
    """A fault of another run is not its fault."""
    crawl(ledger)
    ledger.begin("second")
    crawl(ledger)
    ledger.tamper("UPDATE current SET reason_id = 0 WHERE run_id = 1")
    assert not verify(ledger.store).is_sound
    assert not verify(ledger.store, run_id=1).is_sound
    second = verify(ledger.store, run_id=2)
    assert second.is_sound
    assert (second.identities, second.attempts) == (5, 4)


def test_findings_are_kept_up_to_a_limit(ledger: Ledger) -> None:
    """A store that is wrong throughout gives a list that can be read, and the full count."""
    ledger.tamper(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
        " INSERT INTO transition SELECT i, 7, 0, 0, 1, 1, 0, 0, 1, 0, NULL, NULL FROM n"
    )
    found = verify(ledger.store)
    assert len(found.findings) == LIMIT
    assert found.omitted >= 500


def test_a_store_that_grows_meanwhile_is_sound(ledger: Ledger, tmp_path: Path) -> None:
    """What is written while the ledger is read, new identities too, belongs to the verdict."""
    crawl(ledger)
    grown = 0

    def write_on(step: str, _done: int, _total: int) -> None:
        nonlocal grown
        if step == "Reading table transition" and not grown:
            for grown in range(1, 1200):
                ledger.seed(f"http://g.example/{grown}")
            ledger.fetch(ledger.seed("http://a.example/more"))
            ledger.finish()

    found = verify(ledger.store, progress=write_on)

    assert found.findings == ()
    assert found.identities == 5 + 1199 + 1


def test_more_than_a_page_of_rows_is_read(ledger: Ledger) -> None:
    """Reading goes on where the last snapshot ended."""
    ledger.tamper(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= {PAGE})"
        " INSERT INTO rejection SELECT i, 1, 0, 2, 1, 'mailto:' FROM n"
    )
    ledger.tamper("INSERT INTO reason VALUES (1, 'userinfo')")
    ledger.tamper(
        "INSERT INTO emission SELECT rejection_id, 1, 0, 0, 2, 1, 0, 0, 0, 1, :none, NULL"
        " FROM rejection",
        none=b"",
    )
    seen = []
    found = verify(ledger.store, progress=lambda step, done, _total: seen.append((step, done)))
    assert found.is_sound
    assert [done for step, done in seen if "emission" in step] == [PAGE, PAGE + 1]


def test_a_damaged_file_is_not_replayed(tmp_path: Path) -> None:
    """SQLite's own check comes first; what it refuses is a finding, not a crash."""
    ledger = Ledger(tmp_path / "frontier.db")
    crawl(ledger)
    with ledger.read() as connection:
        page = connection.scalar(
            text("SELECT rootpage FROM sqlite_master WHERE name = 'transition'")
        )
    ledger.store.checkpoint("TRUNCATE")
    ledger.store.close()
    with (tmp_path / "frontier.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 200)

    found: Verification = verify(Ledger.reopen(tmp_path / "frontier.db"))

    assert not found.is_sound
    assert found.transitions == 0
    assert all(finding.invariant == 0 for finding in found.findings)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6))
def test_columns_keep_their_numbers_as_they_grow(sizes: list[int]) -> None:
    """Room is made without losing what was set, and new slots are empty."""
    with ExitStack() as stack:
        columns = Columns(stack)
        for size in sizes:
            columns.make_room(size)
            assert columns.last_seq.view[size] in (0, size)
            columns.last_seq.view[size] = size
        assert {columns.last_seq.view[size] for size in sizes} == set(sizes)
        assert sum(columns.last_seq.view) == sum(set(sizes))
