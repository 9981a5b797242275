"""The commands answer in text and JSON, and tell by their exit status what they found."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_ledger import Ledger, crawl

from scrapy_frontier.cli import main
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.schema import SCHEMA_VERSION


@pytest.fixture
def ledger(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A store that other processes see, with one finished run, outside any project."""
    monkeypatch.chdir(tmp_path)
    made = Ledger(store_url)
    crawl(made)
    made.close()
    yield made
    made.store.close()


class Answer:
    """What a command wrote, and its exit status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        """Standard output as data."""
        return json.loads(self.out)


@pytest.fixture
def ask(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command on the ledger's store."""

    def run(*arguments: str, store: str | None = ledger.url) -> Answer:
        given = ["--store", store] if store else []
        status = main([*arguments, *given])
        out, err = capsys.readouterr()
        return Answer(status, out, err)

    return run


def test_runs_lists_every_run(ask: Any, ledger: Ledger) -> None:
    """A line each, and the same as JSON."""
    ledger.begin("second")
    answer = ask("runs")
    assert answer.status == 0
    assert [line.split()[0] for line in answer.out.splitlines()[1:]] == ["1", "2"]
    assert [run["name"] for run in ask("runs", "--format", "json").json] == ["nightly", "second"]
    assert [run["id"] for run in ask("runs", "--run", "second", "--format", "json").json] == [2]


def test_an_open_run_is_interrupted_unless_a_process_holds_it(ask: Any, ledger: Ledger) -> None:
    """The run's lock tells; the lock that a killed process left behind is free."""
    run_id = ledger.begin("second")
    assert ask("runs", "--format", "json").json[1]["stop_reason"] == "interrupted"
    assert ask("report", "--format", "json").json["stop"]["reason"] == "interrupted"
    with RunLock(ledger.store, run_id):
        assert ask("runs", "--format", "json").json[1]["stop_reason"] is None
        assert ask("report", "--format", "json").json["run"]["is_live"] is True
    if ledger.store.path is not None:
        ledger.store.path.with_name(f"{ledger.store.path.name}.run-{run_id}.lock").touch()
    assert ask("report", "--format", "json").json["stop"]["reason"] == "interrupted"


def test_report_speaks_of_the_latest_run_or_the_named(ask: Any, ledger: Ledger) -> None:
    """By position, by --run, by id, by name."""
    ledger.begin("second")
    assert ask("report", "--format", "json").json["run"]["id"] == 2
    for way in (["report", "1"], ["report", "nightly"], ["report", "--run", "nightly"]):
        assert ask(*way, "--format", "json").json["run"]["id"] == 1
    assert ask("report", "1").out.startswith("Run 1 (nightly) of spider docs\n")


def test_two_names_for_one_report_are_bad_usage(ask: Any) -> None:
    """Neither is silently preferred."""
    answer = ask("report", "1", "--run", "2")
    assert (answer.status, answer.out) == (2, "")
    assert "name one" in answer.err


def test_a_name_that_several_runs_share_means_the_latest(ask: Any, ledger: Ledger) -> None:
    """The others are named on standard error, the answer stays clean."""
    ledger.begin("nightly")
    answer = ask("report", "nightly", "--format", "json")
    assert answer.json["run"]["id"] == 2
    assert "names several runs; this is 2, others are 1" in answer.err


def test_an_unknown_run_is_bad_usage(ask: Any) -> None:
    """The message lists the runs there are."""
    answer = ask("report", "weekly")
    assert (answer.status, answer.out) == (2, "")
    assert "no run 'weekly' in this store; there are 1 (nightly)" in answer.err


def test_explain_knows_or_says_no(ask: Any) -> None:
    """Exit status 1 where the run has not seen the URL."""
    answer = ask("explain", "http://a.example/moved")
    assert answer.status == 0
    assert "State        It was fetched and sent the client on" in answer.out
    rejected = ask("explain", "mailto:x@y", "--format", "json")
    assert (rejected.status, rejected.json["rejected"][0]["rule"]) == (0, "scheme.unsupported")
    unknown = ask("explain", "http://nowhere.example/")
    assert unknown.status == 1
    assert "has not seen" in unknown.out


def test_history_tells_every_transition_or_says_no(ask: Any) -> None:
    """In text a line each, in JSON with all fields."""
    answer = ask("history", "http://a.example/broken", "--format", "json")
    assert answer.status == 0
    (identity,) = answer.json["identities"]
    assert [step["event"] for step in identity["transitions"]][-2:] == ["dispatch", "give_up"]
    assert "terminal (failed)" in ask("history", "http://a.example/broken").out
    assert ask("history", "http://nowhere.example/").status == 1


def test_verify_tells_sound_from_unsound(ask: Any, ledger: Ledger) -> None:
    """Exit status 1 and the findings where something is wrong."""
    assert ask("verify").status == 0
    assert ask("verify").out.startswith("Sound: 25 transitions of 5 identities replayed")
    ledger.tamper("UPDATE current SET reason_id = 0 WHERE identity_id = 1")
    answer = ask("verify")
    assert answer.status == 1
    assert "invariant 1: identity 1 (http://a.example/): reason is 0" in answer.out
    assert ask("verify", "--format", "json").json["findings"][0]["identity"] == 1


def test_doctor_finds_a_good_store_good(ask: Any) -> None:
    """It names the library, the schema, and the settings."""
    answer = ask("doctor", "-s", "USER_AGENT=bot (+https://bot.example)", "--format", "json")
    texts = {check["name"]: check["text"] for check in answer.json}
    assert answer.status == 0
    assert texts["SQLite"].startswith("SQLite 3.")
    assert f"schema {SCHEMA_VERSION}" in texts["store"]
    assert texts["store"].endswith("1 run")
    assert texts["USER_AGENT"] == "'bot (+https://bot.example)'"


def test_doctor_names_who_holds_a_run(ask: Any, ledger: Ledger) -> None:
    """The process that works on an open run, as it wrote itself into its lock."""
    run_id = ledger.begin("second")
    with RunLock(ledger.store, run_id):
        answer = ask("doctor", "--format", "json")
    (held,) = [check for check in answer.json if check["name"] == "run"]
    assert held["text"].startswith(f"{run_id} (second): a process works on it: ")
    assert f" {os.getpid()} " in held["text"]


def test_doctor_names_what_is_wrong_and_the_cure(ask: Any) -> None:
    """A misspelt setting is a failure, a nameless user agent a warning."""
    answer = ask("doctor", "-s", "FRONTIER_WINDOWS=5", "--format", "json")
    levels = {check["name"]: check for check in answer.json}
    assert answer.status == 1
    assert levels["settings"]["level"] == "FAIL"
    assert "did you mean FRONTIER_WINDOW" in levels["settings"]["text"]
    assert levels["USER_AGENT"]["level"] == "warn"
    assert "USER_AGENT =" in levels["USER_AGENT"]["cure"]
    assert levels["wiring"]["level"] == "warn"


@pytest.mark.parametrize("command", ["runs", "report", "verify"])
def test_a_store_that_is_not_there_is_an_error(ask: Any, command: str, tmp_path: Path) -> None:
    """Exit status 2, a message that names the path, nothing on standard output, nothing made."""
    answer = ask(command, store=f"sqlite:///{tmp_path}/none.db")
    assert (answer.status, answer.out) == (2, "")
    assert f"there is no store at {tmp_path}/none.db" in answer.err
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_store_is_an_error(ask: Any, tmp_path: Path) -> None:
    """Exit status 2 and no traceback."""
    (tmp_path / "notes.txt").write_text("not a database, but a text of some length\n" * 30)
    answer = ask("report", store=f"sqlite:///{tmp_path}/notes.txt")
    assert (answer.status, answer.out) == (2, "")
    assert "not an SQLite database" in answer.err
    assert ask("doctor", store=f"sqlite:///{tmp_path}/notes.txt").status == 1


def test_a_store_without_runs(ask: Any, tmp_path: Path) -> None:
    """Nothing to list is fine; nothing to report is the answer no."""
    url = f"sqlite:///{tmp_path}/empty.db"
    open_store(url, create=True).close()
    assert ask("runs", store=url).out == "No runs yet.\n"
    assert ask("runs", "--format", "json", store=url).json == []
    for command in (["report"], ["explain", "http://a.example/"]):
        answer = ask(*command, store=url)
        assert (answer.status, answer.out) == (1, "")
        assert "crawl first" in answer.err
    assert ask("verify", store=url).status == 0


def test_the_store_comes_from_the_settings_of_the_crawl(ask: Any, ledger: Ledger) -> None:
    """FRONTIER_STORE, else JOBDIR, as a crawl takes them."""
    assert ask("runs", "-s", f"FRONTIER_STORE={ledger.url}", store=None).status == 0
    job = Ledger(Path.cwd() / "frontier.db")
    job.store.close()
    assert ask("runs", "-s", f"JOBDIR={Path.cwd()}", store=None).status == 0
    elsewhere = ask("runs", store=None)
    assert elsewhere.status == 2
    assert ".scrapy/frontier.db" in elsewhere.err


def test_reading_leaves_the_file_as_it_was(ask: Any, tmp_path: Path) -> None:
    """Not a byte of the file, and no file beside it, comes from a command."""
    ledger = Ledger(tmp_path / "frontier.db")
    crawl(ledger)
    ledger.store.checkpoint("TRUNCATE")
    folder = tmp_path
    before = {
        path.name: path.read_bytes() for path in folder.glob("*.db*") if "shm" not in path.name
    }
    for command in (["runs"], ["report"], ["verify"], ["doctor"], ["explain", "http://a.example/"]):
        ask(*command, store=ledger.url)
    after = {
        path.name: path.read_bytes() for path in folder.glob("*.db*") if "shm" not in path.name
    }
    ledger.store.close()
    assert after == before
