"""The coverage report counts what the ledger holds, and says when it does not add up."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from report_ledger import Ledger, account_of, crawl
from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report import coverage
from scrapy_frontier.report.runs import RunNotFound
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Reason, Source, Tally, Verdict


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """An empty store with one open run."""
    made = Ledger()
    yield made
    made.store.close()


def test_identities_are_counted_once_by_rule_and_disposition(ledger: Ledger) -> None:
    """discovered = admitted + suppressed + deferred, and admitted = terminal + unresolved."""
    crawl(ledger)
    ledger.seed("http://a.example/waiting")

    identities = account_of(ledger).identities

    assert identities.discovered == 6
    assert identities.admitted == 4
    assert identities.suppressed == {"scope.origin": 1}
    assert identities.deferred == {"not_before": 1}
    assert identities.terminal == {"failed": 1, "redirected": 1, "succeeded": 1}
    assert identities.unresolved == {"scheduled": 1}


def test_attempts_are_counted_apart_from_identities(ledger: Ledger) -> None:
    """Four attempts of three identities, one of them a retry."""
    crawl(ledger)

    attempts = account_of(ledger).attempts

    assert (attempts.total, attempts.retries, attempts.open) == (4, 1, 0)
    assert attempts.by_outcome == {"download.timeout": 2, "http.200": 1, "http.301": 1}


def test_references_are_fresh_or_duplicate_or_excluded_or_rejected(ledger: Ledger) -> None:
    """Every reference a page emitted is one of the four, by kind and together."""
    crawl(ledger)

    references = account_of(ledger).references

    assert references.total == 13
    assert (references.fresh, references.duplicates, references.excluded) == (5, 5, 1)
    assert references.rejected == {"scheme.unsupported": 2}
    assert references.by_kind["seed"].fresh == 1
    assert references.by_kind["link"].total == 10
    assert references.by_kind["redirect"].duplicates == 2


def test_a_cause_names_its_rule_and_its_first_example(ledger: Ledger) -> None:
    """What was not covered is shown by rule, with the first URL it held."""
    ledger.exclude("http://b.example/1", "scope.origin")
    ledger.exclude("http://b.example/2", "scope.origin")
    ledger.emit(Source(), rejected=(("userinfo", "http://u:p@a.example/"),))

    account = account_of(ledger)

    (cause,) = account.causes
    assert (cause.rule, cause.count, cause.example) == ("scope.origin", 2, "http://b.example/1")
    (rejected,) = account.rejected
    assert (rejected.rule, rejected.example) == ("userinfo", "http://u:p@a.example/")
    assert rejected.page is None


def test_origins_show_states_status_classes_and_bytes(ledger: Ledger) -> None:
    """The account of an origin is of its own identities and attempts only."""
    crawl(ledger)

    first, second = account_of(ledger).origins

    assert first.origin == "http://a.example"
    assert first.identities == {"terminal": 3, "deferred": 1}
    assert first.by_status == {"2xx": 1, "3xx": 1, "none": 2}
    assert (first.attempts, first.bytes) == (4, 500)
    assert (second.origin, second.attempts, second.first_attempt_at) == (
        "http://b.example",
        0,
        None,
    )


def test_redirects_count_hops_and_what_was_refused(ledger: Ledger) -> None:
    """A hop is a redirect event; a target that is suppressed was refused by its rule."""
    crawl(ledger)
    lease = ledger.dispatch(ledger.seed("http://a.example/away"))
    ledger.refer("http://c.example/", page=ledger.respond(lease, 302), kind=ReferenceKind.REDIRECT)
    ledger.process(lease, Disposition.REDIRECTED, Event.REDIRECT, "http.302")

    redirects = account_of(ledger).redirects

    assert (redirects.hops, redirects.cross_origin) == (2, 1)
    assert redirects.refused == {"scope.origin": 1}


def test_a_dead_letter_comes_with_the_length_of_its_history(ledger: Ledger) -> None:
    """Failed for good: with its reason, its attempts and its transitions."""
    crawl(ledger)

    (letter,) = account_of(ledger).deadletters

    assert letter.url == "http://a.example/broken"
    assert (letter.reason, letter.attempts, letter.transitions) == ("download.timeout", 2, 8)


def test_budgets_and_robots_are_found_by_the_names_of_their_rules(ledger: Ledger) -> None:
    """A rule named after a budget, or after robots, is reported as one."""
    deferred = Verdict(Event.DEFER, Reason("budget.family", '{"pattern": "/cal/{date}"}'))
    ledger.refer("http://a.example/cal/1", verdict=deferred)
    ledger.refer("http://a.example/cal/2", verdict=deferred)
    ledger.exclude("http://a.example/private", "robots.disallow")

    account = account_of(ledger)

    (budget,) = account.budgets
    assert (budget.rule, budget.pattern) == ("budget.family", "/cal/{date}")
    assert (budget.first_example, budget.deferred) == ("http://a.example/cal/1", 2)
    (robots,) = account.robots
    assert (robots.origin, robots.rule, robots.suppressed) == (
        "http://a.example",
        "robots.disallow",
        1,
    )


def test_tallies_come_with_their_examples(ledger: Ledger) -> None:
    """Counts that no row carries are reported with the first example."""
    ledger.send(
        Tally("parameter_rule", "tracking", 3, "http://a.example/?utm_source=x"),
        Tally("waiver", "dont_filter", 1, "http://b.example/"),
        Tally("unserialisable", "request", 2, "http://a.example/: a lambda"),
    )

    account = account_of(ledger)

    assert account.parameter_rules[0].name == "tracking"
    assert account.waivers[0].example == "http://b.example/"
    assert account.unserialisable[0].count == 2


def test_sessions_show_which_process_did_how_much(ledger: Ledger) -> None:
    """A process that was killed has no end; its attempts are its own."""
    ledger.dispatch(ledger.seed("http://a.example/1"))
    ledger.open_session()
    ledger.dispatch(ledger.seed("http://a.example/2"))
    ledger.dispatch(ledger.seed("http://a.example/3"))

    first, second = account_of(ledger).sessions

    assert (first.attempts, second.attempts) == (1, 2)
    assert first.ended_at is None
    assert first.worker != second.worker


def test_a_run_sees_nothing_of_another_in_the_same_store(ledger: Ledger) -> None:
    """Two runs of one store, each with its own account."""
    crawl(ledger)
    before = account_of(ledger)
    first = ledger.run_id
    ledger.begin("other")
    crawl(ledger)
    ledger.seed("http://a.example/only-here")

    with ledger.read() as connection:
        assert coverage(connection, first) == before
    assert account_of(ledger).identities.discovered == before.identities.discovered + 1


def test_a_finished_crawl_reconciles(ledger: Ledger) -> None:
    """Every equation of an untouched ledger holds."""
    crawl(ledger)
    ledger.close()

    account = account_of(ledger)

    assert account.reconciled
    assert account.failed_equations == ()
    assert "5 discovered = 3 admitted + 1 suppressed + 1 deferred" in account.equations


def test_an_empty_run_reconciles(ledger: Ledger) -> None:
    """A run in which nothing happened adds up to nothing."""
    ledger.close()
    assert account_of(ledger).reconciled


@pytest.mark.parametrize(
    ("statement", "equation"),
    [
        (
            "UPDATE current SET state = 3, disposition = 0 WHERE state = 6 AND disposition = 1",
            "2 terminal by the projection",
        ),
        ("DELETE FROM current WHERE state = 9", "4 rows of the projection"),
        ("DELETE FROM transition WHERE event = 3 OR event = 4", "0 suppressed by the ledger"),
        ("DELETE FROM transition WHERE event = 7", "0 dispatch events"),
        ("DELETE FROM attempt WHERE attempt_id = 1", "3 attempts = 4 dispatch events"),
        ("UPDATE attempt SET outcome_id = NULL", "4 attempts without an outcome = 0 fetching"),
        ("DELETE FROM emission WHERE kind = 1", "4 fresh = 5 identities"),
        ("DELETE FROM rejection WHERE rejection_id = 1", "2 rejected = 1 rejections on record"),
        ("UPDATE run SET policy_id = 1", None),
    ],
)
def test_a_missing_or_changed_row_breaks_an_equation(
    ledger: Ledger, statement: str, equation: str | None
) -> None:
    """No part of the account can be changed alone: some equation names the two numbers."""
    crawl(ledger)
    ledger.close()
    ledger.tamper(statement)

    account = account_of(ledger)

    assert account.reconciled is (equation is None)
    assert equation is None or any(equation in failed for failed in account.failed_equations)


def test_a_finished_run_must_have_nothing_unresolved(ledger: Ledger) -> None:
    """What still waits when a run calls itself finished is an error of the account."""
    ledger.seed("http://a.example/")
    ledger.close("finished")
    failed = account_of(ledger).failed_equations
    assert failed == (
        "1 unresolved + 0 further requests in waiting = 0 left over in a finished run",
    )


def test_a_further_request_in_waiting_is_left_over_too(ledger: Ledger) -> None:
    """A `dont_filter` request that waits for the running one is owed an attempt."""
    home = ledger.seed("http://a.example/")
    ledger.dispatch(home)
    ledger.refer("http://a.example/", is_visit=True)
    ledger.tamper("UPDATE current SET state = 6, disposition = 1")
    ledger.close("finished")
    assert any("1 further requests in waiting" in e for e in account_of(ledger).failed_equations)


@pytest.mark.parametrize(
    ("is_live", "reason"), [(True, None), (None, None), (False, "interrupted")]
)
def test_an_open_run_that_nobody_works_on_was_interrupted(
    ledger: Ledger, is_live: bool | None, reason: str | None
) -> None:
    """An open run without a process is called interrupted only where that is known."""
    assert account_of(ledger, is_live=is_live).stop.reason == reason


def test_a_closed_run_says_why_it_ended(ledger: Ledger) -> None:
    """The reason and detail that the run recorded, whatever its lock says."""
    ledger.close("stopped", "operator")
    account = account_of(ledger, is_live=False)
    assert (account.run.state, account.stop.reason) == ("stopped", "operator")
    assert account.stop.detail == {"by": 1}


def test_the_json_has_the_fields_of_the_design(ledger: Ledger) -> None:
    """Tests and operators rely on these names (design, section 9)."""
    crawl(ledger)

    data = json.loads(json.dumps(account_of(ledger).to_json()))

    assert data["schema_version"] == 1
    assert {"id", "spider", "state", "started_at", "finished_at", "policy_version"} <= set(
        data["run"]
    )
    assert set(data["stop"]) == {"reason", "detail"}
    assert set(data["identities"]) == {
        "discovered",
        "admitted",
        "suppressed",
        "deferred",
        "terminal",
        "unresolved",
    }
    assert {"total", "by_outcome", "retries", "late", "quarantined"} <= set(data["attempts"])
    assert {"total", "duplicates", "rejected"} <= set(data["references"])
    assert data["reconciled"] is True
    assert {"hops", "cross_origin", "refused"} == set(data["redirects"])
    for listed in ("origins", "budgets", "families", "robots", "deadletters"):
        assert isinstance(data[listed], list)


def test_a_run_that_is_not_there_is_an_error(ledger: Ledger) -> None:
    """The message names the run."""
    with ledger.read() as connection, pytest.raises(RunNotFound, match="99"):
        coverage(connection, 99)


def test_the_report_writes_nothing(ledger: Ledger) -> None:
    """Reading a report changes no row."""
    crawl(ledger)
    writer = ledger.store.writer_connection()
    before = writer.scalar(text("SELECT total_changes()"))
    writer.rollback()
    account_of(ledger)
    assert writer.scalar(text("SELECT total_changes()")) == before
    writer.rollback()
