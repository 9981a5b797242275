"""Which runs a store holds, and which of them a command means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from report_ledger import Ledger
from store_kinds import Stores

from scrapy_frontier.report.runs import NoRuns, RunNotFound, find_run, list_runs, namesakes
from scrapy_frontier.store.opening import open_store


@pytest.fixture
def ledger(stores: Stores) -> Iterator[Ledger]:
    """A store with three runs: `nightly`, `weekly`, `nightly` again."""
    made = Ledger(stores.empty_url(), name="nightly")
    made.close()
    made.begin("weekly", spider="news")
    made.close("stopped", "operator")
    made.begin("nightly")
    yield made
    made.store.close()


def test_without_a_name_the_latest_run_is_meant(ledger: Ledger) -> None:
    """Commands speak of the run that was opened last."""
    with ledger.read() as connection:
        assert find_run(connection) == 3


def test_an_older_run_that_is_resumed_is_the_latest(ledger: Ledger) -> None:
    """It is the opening that counts, not the beginning."""
    ledger.run_id = 2
    ledger.open_session()
    with ledger.read() as connection:
        assert find_run(connection) == 2


def test_a_run_is_found_by_id_and_by_name(ledger: Ledger) -> None:
    """Both are shown by `runs`, both are taken."""
    with ledger.read() as connection:
        assert find_run(connection, "2") == 2
        assert find_run(connection, "weekly") == 2


def test_of_several_runs_with_one_name_the_latest_is_meant(ledger: Ledger) -> None:
    """A name is given to each crawl of a series; the others are named beside it."""
    with ledger.read() as connection:
        assert find_run(connection, "nightly") == 3
        assert namesakes(connection, 3, "nightly") == (1,)


def test_a_number_is_an_id_before_it_is_a_name(ledger: Ledger) -> None:
    """A run named `1` is found by its own id, or where no run has the id 1."""
    ledger.begin("1")
    ledger.begin("2024")
    with ledger.read() as connection:
        assert find_run(connection, "1") == 1
        assert namesakes(connection, 1, "1") == (4,)
        assert find_run(connection, "2024") == 5


def test_an_unknown_name_is_an_error_that_lists_the_runs(ledger: Ledger) -> None:
    """The operator sees what could have been meant."""
    with ledger.read() as connection, pytest.raises(RunNotFound, match=r"2 \(weekly\)"):
        find_run(connection, "monthly")


def test_a_store_without_runs_is_an_answer_of_its_own() -> None:
    """Nothing was crawled yet: no bad usage."""
    with (
        open_store("sqlite://") as store,
        store.reader() as connection,
        pytest.raises(NoRuns, match="crawl first"),
    ):
        find_run(connection)


def test_the_list_counts_identities_by_where_they_stand(ledger: Ledger) -> None:
    """One line a run, oldest first; counts are identities."""
    page = ledger.fetch(ledger.seed("http://a.example/"))
    ledger.refer("http://a.example/1", page=page)
    ledger.exclude("http://b.example/", "scope.origin", page=page)
    ledger.finish()

    with ledger.read() as connection:
        first, second, third = list_runs(connection)

    assert (first.name, first.discovered) == ("nightly", 0)
    assert (second.spider, second.state, second.stop_reason) == ("news", "stopped", "operator")
    assert (third.discovered, third.succeeded, third.unresolved) == (3, 1, 1)
    assert (third.suppressed, third.deferred, third.sessions) == (1, 0, 1)
    assert third.states == {"scheduled": 1, "terminal": 1, "suppressed": 1}
