"""Retention drops whole runs, and nothing else ever leaves the ledger (invariant 10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_ledger import START_MS, Ledger, crawl
from sqlalchemy import text

from scrapy_frontier.cli import main
from scrapy_frontier.errors import RunLocked, StoreError
from scrapy_frontier.frontier import runs
from scrapy_frontier.report.exports.export import Export
from scrapy_frontier.report.exports.subjects import SUBJECTS
from scrapy_frontier.report.verify import verify
from scrapy_frontier.store import ids, schema
from scrapy_frontier.store.messages import RobotsFetched
from scrapy_frontier.store.prune import KEPT, compact, order, prune
from scrapy_frontier.store.trouble import store_errors


@pytest.fixture
def ledger(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A store with three finished runs of the same kind: 1, 2, 3."""
    monkeypatch.chdir(tmp_path)
    made = Ledger(store_url, name="first")
    crawl(made)
    made.close()
    for name in ("second", "third"):
        made.begin(name)
        crawl(made)
        made.close()
    yield made
    made.store.close()


def count(ledger: Ledger, query: str) -> int:
    with ledger.read() as connection:
        return int(connection.scalar(text(query)) or 0)


def contents(ledger: Ledger, run_id: int) -> dict[str, list[Any]]:
    """All rows of a run that an export tells."""
    exports = {name: Export.begin(ledger.store, SUBJECTS[name], run_id) for name in SUBJECTS}
    return {name: [row for rows in one.pages() for row in rows] for name, one in exports.items()}


def test_one_run_goes_and_the_others_are_what_they_were(ledger: Ledger) -> None:
    """The store is sound before and after, and the ledger is guarded again."""
    before = {run: contents(ledger, run) for run in (1, 3)}
    pruned = prune(ledger.store, 2)
    assert (pruned.run, pruned.rows["identity"], pruned.rows["attempt"]) == (2, 5, 4)
    assert {run: contents(ledger, run) for run in (1, 3)} == before
    assert count(ledger, "SELECT count(*) FROM run") == 2
    found = verify(ledger.store)
    assert (found.findings, found.identities) == ((), 10)


def test_every_table_of_a_run_is_emptied(ledger: Ledger) -> None:
    """No table is forgotten, also one that is added later."""
    for run in (1, 2, 3):
        prune(ledger.store, run)
    assert {table.name for table in order()} | KEPT == set(schema.metadata.tables)
    for table in order():
        assert count(ledger, f'SELECT count(*) FROM "{table.name}"') == 0, table.name
    assert verify(ledger.store).is_sound


@pytest.mark.parametrize("statement", ["DELETE FROM transition", "UPDATE transition SET at_ms = 1"])
def test_the_ledger_is_guarded_before_and_after(ledger: Ledger, statement: str) -> None:
    """Only a prune may delete, and only inside its transaction."""
    connection = ledger.store.writer_connection()
    for _ in range(2):
        with (
            pytest.raises(StoreError, match="the ledger is append-only"),
            store_errors("tampering"),
            connection.begin(),
        ):
            connection.exec_driver_sql(statement)
        prune(ledger.store, count(ledger, "SELECT min(run_id) FROM run"))


def test_a_prune_that_fails_leaves_all_as_it_was(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and guard: it is one transaction."""
    before = contents(ledger, 1)

    def fail(step: str, done: int, _total: int) -> None:
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(ledger.store, 1, fail)
    assert contents(ledger, 1) == before
    assert verify(ledger.store).is_sound


def test_no_id_is_given_twice(ledger: Ledger) -> None:
    """Also where the run with the highest ids is dropped: a generation never comes again (invariant 3)."""
    highest = {
        table: count(ledger, f'SELECT max("{column}") FROM "{table}"')
        for table, column in ids.NUMBERED
    }
    prune(ledger.store, 3)
    prune(ledger.store, 2)
    with runs.transaction(ledger.store, "opening a run") as connection:
        versions: dict[str, str] = {}
        run = runs.open_run(
            connection, None, spider="docs", name="next", policy={}, versions=versions
        )
    assert run.run_id > highest["run"]
    assert run.session_id > highest["session"]
    ledger.resume(run)
    page = ledger.fetch(ledger.seed("http://n.example/"))
    assert page.identity_id > highest["identity"]
    assert page.attempt_id > highest["attempt"]
    assert count(ledger, "SELECT max(seq) FROM transition") > highest["transition"] + 3
    assert (count(ledger, "SELECT max(generation) FROM attempt") >> 32) == run.session_id


def test_texts_of_robots_that_something_names_stay(ledger: Ledger) -> None:
    """A record, or a reason in the ledger; a text that only the dropped run named goes."""

    def fetched(digest: str) -> RobotsFetched:
        return RobotsFetched("http://a.example", "{}", digest, digest.encode(), START_MS)

    ledger.begin("fourth")
    ledger.send(fetched("only-fourth"))
    ledger.exclude_with("http://a.example/x", "robots.disallow", '{"digest": "only-fourth"}')
    ledger.close()
    ledger.begin("fifth")
    ledger.send(fetched("fifth-too"))
    ledger.exclude_with("http://a.example/y", "robots.disallow", '{"digest": "fifth-too"}')
    ledger.send(fetched("on-record"))
    assert prune(ledger.store, 4).robots_texts == 1
    with ledger.read() as connection:
        left = set(connection.scalars(text("SELECT digest FROM robots_text")))
    assert left == {"fifth-too", "on-record"}


def test_a_run_that_is_written_is_not_dropped(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither by name, which says who writes it, nor by a rule, which passes it over."""
    lock = ledger.store.run_lock(2)
    lock.acquire()
    try:
        assert run("2", "--yes", store=ledger.url) == 2
        assert "run 2 (second) is being crawled by" in capsys.readouterr().err
        assert run("--keep-last", "1", "--yes", store=ledger.url) == 0
    finally:
        lock.release()
    assert "Dropped run 1" in capsys.readouterr().out
    with ledger.read() as connection:
        assert list(connection.scalars(text("SELECT run_id FROM run ORDER BY run_id"))) == [2, 3]


def test_the_lock_is_taken_by_the_prune_itself(ledger: Ledger) -> None:
    """A crawl that begins after the run was chosen keeps it."""
    lock = ledger.store.run_lock(2)
    lock.acquire()
    try:
        with pytest.raises(RunLocked):
            prune(ledger.store, 2)
    finally:
        lock.release()
    assert count(ledger, "SELECT count(*) FROM run") == 3


def run(*arguments: str, store: str) -> int:
    return main(["prune", *arguments, "--store", store])


def listed(capsys: pytest.CaptureFixture[str], *arguments: str, store: str) -> list[int]:
    capsys.readouterr()
    assert run(*arguments, "--format", "json", store=store) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["dropped"] is ("--yes" in arguments)
    return [one["run"] for one in answer["runs"]]


def test_nothing_goes_without_yes(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """What would go is shown, by name, by age, by number; an unfinished run has to be asked for."""
    ledger.begin("unfinished")
    ledger.close("stopped", "operator")
    store = ledger.url
    assert listed(capsys, "first", "3", store=store) == [1, 3]
    assert listed(capsys, "--keep-last", "2", store=store) == [1, 2]
    assert listed(capsys, "--keep-last", "0", store=store) == [1, 2, 3]
    assert listed(capsys, "--keep-last", "0", "--unfinished", store=store) == [1, 2, 3, 4]
    assert listed(capsys, "--older-than", "30", store=store) == [1, 2, 3]
    assert listed(capsys, "--older-than", "30", "--keep-last", "3", store=store) == [1]
    assert listed(capsys, "--older-than", "100000", store=store) == []
    assert count(ledger, "SELECT count(*) FROM run") == 4
    assert listed(capsys, "unfinished", "--yes", store=store) == [4]
    assert listed(capsys, "--older-than", "30", "--keep-last", "1", "--yes", store=store) == [1, 2]
    assert count(ledger, "SELECT count(*) FROM run") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which runs?"),
        (("--yes",), "which runs?"),
        (("first", "--keep-last", "1"), "not both"),
        (("--keep-last", "-1"), "cannot be less than 0"),
        (("nightly",), "no run 'nightly' in this store"),
    ],
)
def test_bad_usage_drops_nothing(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    """The message says what is missing."""
    assert run(*arguments, store=ledger.url) == 2
    assert words in capsys.readouterr().err
    assert count(ledger, "SELECT count(*) FROM run") == 3


def test_space_is_given_back(tmp_path: Path) -> None:
    """The file is smaller afterwards, and its log is empty."""
    ledger = Ledger(tmp_path / "frontier.db")
    for number in range(300):
        ledger.seed(f"http://a.example/{number}{'x' * 1000}")
    ledger.begin("second")
    ledger.store.checkpoint("TRUNCATE")
    before = (tmp_path / "frontier.db").stat().st_size
    prune(ledger.store, 1)
    compact(ledger.store)
    assert (tmp_path / "frontier.db").stat().st_size < before / 2
    assert (tmp_path / "frontier.db-wal").stat().st_size == 0
    assert verify(ledger.store).is_sound
    ledger.store.close()
