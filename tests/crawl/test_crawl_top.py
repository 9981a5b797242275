"""A run watched from another terminal, by way of its store."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from typing import Any

import pytest
from crawls import Follower, Lab, on_both_stores
from processes import CrawlProcess, make_web
from terminals import AtTerminal

from scrapy_frontier.cli import main
from scrapy_frontier.report import live
from scrapy_frontier.report.live import View, count_standings
from scrapy_frontier.store.deadline import Deadline, ReadTooLong
from scrapy_frontier.store.opening import open_store

SLOW = {"DOWNLOAD_DELAY": 0.3, "RANDOMIZE_DOWNLOAD_DELAY": False, "FRONTIER_MAX_DURATION": 3600}


def once(lab: Lab, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """One frame as data."""
    capsys.readouterr()
    assert main(["top", "--once", "--format", "json", "--store", lab.store_url]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@on_both_stores
def test_a_running_crawl_is_seen_from_another_process(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only its memory holds, and what the ledger counts; then a terminal that is left as it was."""
    make_web(lab.main, 30)
    with CrawlProcess(lab, lab.main / "p0", SLOW) as process:
        process.wait_for_text("Run test in")
        deadline = time.monotonic() + 20
        while (frame := once(lab, capsys))["told"] is None or not frame["told"]["answered"]:
            assert time.monotonic() < deadline, frame
            time.sleep(0.2)
        assert (frame["name"], frame["state"], frame["is_live"]) == ("test", "running", True)
        told = frame["told"]
        assert told["in_flight"] <= 1
        assert told["scheduled"] > 0
        assert told["ends_ms"] - frame["read_ms"] < 3_600_000
        assert frame["standings"]["states"]["scheduled"] > 0
        command = [sys.executable, "-m", "scrapy_frontier.cli", "top", "--store", lab.store_url]
        command[1:3] = ["-c", "import sys; from scrapy_frontier.cli import main; sys.exit(main())"]
        program = AtTerminal([*command, "--interval", "0.2"], lab.folder)
        try:
            assert program.read_until("(?s)Running for.*queued.*Running for")
            assert "Ctrl-C ends this view" in program.written
            program.send(signal.SIGTERM)
            program.read_until()
            assert program.process.returncode == 0
        finally:
            program.close()
        assert program.written.startswith("\x1b[?1049h\x1b[?25l")
        assert program.written.endswith("\x1b[?25h\x1b[?1049l")
        process.kill()
    frame = once(lab, capsys)
    assert (frame["state"], frame["is_live"]) == ("running", False)
    assert main(["top", "--once", "--store", lab.store_url]) == 0
    text = capsys.readouterr().out
    assert "Interrupted: no process works on it" in text
    assert "queued" not in text, "what a dead process said is no news"


@on_both_stores
async def test_a_finished_run_is_told_by_its_ledger(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts by state and end are those of the report."""
    make_web(lab.main, 8)
    crawl = await lab.crawl(Follower, seeds=[lab.main / "p0"])
    crawl.assert_exhausted()
    assert crawl.stats["frontier/writer/pending"] == 0, "nothing is told of a run that is closed"
    frame = once(lab, capsys)
    identities = crawl.coverage.identities
    assert frame["state"] == "finished"
    assert frame["standings"]["states"] == {"terminal": identities.discovered}
    assert frame["standings"]["dispositions"] == identities.terminal
    assert main(["top", "--once", "--store", lab.store_url]) == 0
    assert "Finished (exhausted), after 1 session." in capsys.readouterr().out


async def test_what_is_held_back_is_named_by_its_rule(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """A budget that is spent holds the rest, and the view says which."""
    make_web(lab.main, 8)
    lab.settings["FRONTIER_MAX_URLS"] = 3
    crawl = await lab.crawl(Follower, seeds=[lab.main / "p0"])
    assert once(lab, capsys)["standings"]["deferred"] == crawl.coverage.identities.deferred
    assert main(["top", "--once", "--store", lab.store_url]) == 0
    assert re.search(r"held by +\d+ budget\.urls", capsys.readouterr().out)


async def test_counting_is_done_in_short_reads_with_rests(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each range is a snapshot of its own, and a count that took long is not repeated soon."""
    make_web(lab.main, 12)
    crawl = await lab.crawl(Follower, seeds=[lab.main / "p0"])
    monkeypatch.setattr(live, "RANGE", 5)
    rests: list[float] = []
    with open_store(lab.store_url, read_only=True) as store:
        found = count_standings(store, crawl.run_id, rest=rests.append)
        assert sum(found.states.values()) == crawl.coverage.identities.discovered
        assert len(rests) == (crawl.coverage.identities.discovered - 1) // 5

        now = 100.0

        def clock() -> float:
            nonlocal now
            now += 1.0  # everything takes a second
            return now

        view = View(store, None, lambda _: True, clock, rests.append)
        first = view.frame().standings
        assert view.frame().standings is first
        now += 1000
        assert view.frame().standings is not first


@on_both_stores
async def test_a_read_that_takes_too_long_is_ended(lab: Lab) -> None:
    """It does not hold up the writer's log; and the connection serves on."""
    from sqlalchemy import text

    make_web(lab.main, 2)
    await lab.crawl(Follower, seeds=[lab.main / "p0"])
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)"
        " SELECT count(*) FROM n"
    )
    with open_store(lab.store_url, read_only=True) as store:
        began = time.monotonic()
        with (
            pytest.raises(ReadTooLong, match=r"longer than 0\.2 s"),
            store.reader(Deadline(0.2)) as c,
        ):
            c.execute(text(endless))
        assert time.monotonic() - began < 5
        with store.reader(Deadline(5)) as connection:
            assert connection.scalar(text("SELECT count(*) FROM run")) == 1
