"""A backup is a checked copy of one snapshot; restored, it says what the store said."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_ledger import Ledger, crawl
from store_kinds import Databases

from scrapy_frontier.cli import main
from scrapy_frontier.errors import StoreError
from scrapy_frontier.report.verify import verify
from scrapy_frontier.store import backup
from scrapy_frontier.store.backup import back_up
from scrapy_frontier.store.opening import open_store


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A store on disk with one finished run."""
    monkeypatch.chdir(tmp_path)
    made = Ledger(tmp_path / "frontier.db")
    crawl(made)
    made.close()
    yield made
    made.store.close()


def run(*arguments: str) -> int:
    return main(["backup", *arguments])


def report(url: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The report of the latest run, as text and as JSON."""
    capsys.readouterr()
    assert main(["report", "--store", url]) == 0
    assert main(["report", "--store", url, "--format", "json"]) == 0
    return capsys.readouterr().out


def test_a_copy_gives_the_same_report(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte, opened where it is, and it is sound."""
    assert run("copy.db", "--store", ledger.url) == 0
    assert "Copied to copy.db" in capsys.readouterr().out
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    assert report(copy, capsys) == report(ledger.url, capsys)
    assert main(["verify", "--store", copy]) == 0


def test_commits_during_a_copy_are_not_in_it(ledger: Ledger, tmp_path: Path) -> None:
    """The snapshot is pinned: what is written meanwhile neither comes in nor starts it anew."""
    steps = []

    def write_on(step: str, done: int, total: int) -> None:
        if step == "Copying pages":
            steps.append((done, total))
            ledger.seed(f"http://a.example/{len(steps)}")

    step, backup.STEP = backup.STEP, 5  # type: ignore[misc]
    try:
        with open_store(ledger.url, read_only=True) as store:
            made = back_up(store, tmp_path / "copy.db", progress=write_on)
    finally:
        backup.STEP = step  # type: ignore[misc]
    assert len(steps) > 5
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})
    assert made.identities == 5
    with open_store(f"sqlite:///{tmp_path / 'copy.db'}", read_only=True) as copy:
        found = verify(copy)
    assert (found.is_sound, found.identities) == (True, 5)


def test_a_file_that_is_there_stays(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless its end is asked for; nothing half-made is left in either case."""
    (tmp_path / "copy.db").write_text("mine")
    assert run("copy.db", "--store", ledger.url) == 2
    assert "copy.db is there already; name another file" in capsys.readouterr().err
    assert (tmp_path / "copy.db").read_text() == "mine"
    assert run("copy.db", "--overwrite", "--store", ledger.url) == 0
    assert (tmp_path / "copy.db").read_bytes().startswith(b"SQLite format 3")
    assert list(tmp_path.glob("*.part")) == list(tmp_path.glob(".*.part")) == []


def test_a_copy_is_put_back(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over a damaged store, whose write-ahead log must not be taken into the copy."""
    before = report(ledger.url, capsys)
    assert run("copy.db", "--store", ledger.url) == 0
    ledger.store.checkpoint("TRUNCATE")
    ledger.begin("lost")
    # A store that was killed: its log is still beside it.
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / f"frontier.db{suffix}", tmp_path / f"lost.db{suffix}")
    with (tmp_path / "lost.db").open("r+b") as file:
        file.truncate(4096 * 8)
        file.seek(4096 * 2)
        file.write(b"\xff" * 4096 * 6)
    lost = f"sqlite:///{tmp_path / 'lost.db'}"
    assert main(["verify", "--store", lost]) != 0
    assert run("copy.db", "--restore", "--store", lost) == 2
    assert "is there already" in capsys.readouterr().err
    assert run("copy.db", "--restore", "--overwrite", "--store", lost) == 0
    assert report(lost, capsys) == before
    assert main(["verify", "--store", lost]) == 0


def test_a_store_that_is_crawled_is_not_replaced(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """The holder of the run's lock is named."""
    assert run("copy.db", "--store", ledger.url) == 0
    with ledger.store.run_lock(ledger.run_id):
        assert run("copy.db", "--restore", "--overwrite", "--store", ledger.url) == 2
    assert "is being crawled by process" in capsys.readouterr().err


def test_a_copy_that_is_not_sound_is_not_left(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is read again before it gets its name."""
    copy = backup._copy

    def damage(connection: object, part: Path, progress: object) -> None:
        copy(connection, part, progress)  # type: ignore[arg-type]
        with sqlite3.connect(part) as target:
            target.execute("DROP TRIGGER transition_no_DELETE")
            target.execute("DELETE FROM transition WHERE seq = 3")
        target.close()

    monkeypatch.setattr(backup, "_copy", damage)
    with pytest.raises(StoreError, match="the copy is not sound"):
        back_up(ledger.store, tmp_path / "copy.db")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_what_backup_cannot_do_is_said(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run alone, a folder, a place that is not there, the store itself."""
    for arguments, words in (
        (("copy.db", "--run", "1"), "a backup holds all runs of a store"),
        ((str(tmp_path),), "is a folder; name a file in it"),
        ((str(tmp_path / "no" / "copy.db"),), "does not exist; create it"),
        (("frontier.db", "--restore"), "is the store itself"),
    ):
        assert run(*arguments, "--store", ledger.url) == 2
        assert words in capsys.readouterr().err


@pytest.mark.postgresql
def test_a_postgresql_store_is_left_to_its_own_tools(
    databases: Databases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the tools, and nothing is written."""
    assert run(str(tmp_path / "copy.db"), "--store", databases.store_url()) == 2
    assert "pg_dump --format=custom, put it back with pg_restore" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
