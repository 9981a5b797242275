"""What goes wrong with a store while a crawl writes to it is told in its log, with the remedy."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from crawls import Lab
from processes import make_web

from scrapy_frontier.cli import main
from scrapy_frontier.extensions import statistics
from scrapy_frontier.frontier import watch
from scrapy_frontier.frontier.life import Open
from scrapy_frontier.frontier.watch import QUIET_S, SLOW_COMMIT_S, Watch
from scrapy_frontier.store import writer
from scrapy_frontier.store.sqlite import DRIVER
from scrapy_frontier.store.vitals import Vitals

READS = f"""
import sys
from {DRIVER.__name__} import connect
connection = connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM run").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


@contextmanager
def reading(path: str) -> Iterator[int]:
    """Another process that has begun to read the store and does not end; its id."""
    command = [sys.executable, "-c", READS, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reading\n"
        yield process.pid
        process.communicate()


async def test_a_long_read_that_holds_up_the_log_is_named(
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The process that reads is named with its command, by the crawl and by `doctor`."""
    monkeypatch.setattr(writer, "CHECKPOINT_INTERVAL_S", 0.05)
    monkeypatch.setattr(watch, "HELD_UP_S", 0.3)
    monkeypatch.setattr(statistics, "INTERVAL_S", 0.1)
    make_web(lab.main, 40, delay_s=0.05)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 2}
    await lab.crawl(settings={**settings, "CLOSESPIDER_PAGECOUNT": 1}, seeds=[lab.main / "p0"])
    with reading(str(lab.folder / "store.db")) as reader:
        with caplog.at_level(logging.WARNING, "scrapy_frontier"):
            done = await lab.crawl(settings=settings, seeds=[lab.main / "p0"])
        assert main(["doctor", "--store", lab.store_url]) in (0, 1)
        assert f"being read by process {reader} (" in capsys.readouterr().out
    (told,) = [one for one in caplog.records if one.__dict__.get("action") == "store_log_held_up"]
    assert f"It is being read by process {reader} (" in told.getMessage()
    assert "end that read" in told.getMessage()
    assert done.stats["frontier/store/checkpoints"] > 1
    assert done.stats["frontier/store/log_frames_left"] > 0
    done.assert_sound()


async def test_without_a_long_read_nothing_is_left_in_the_log(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Checkpoints get through, also beside short reads, and nobody is warned."""
    monkeypatch.setattr(writer, "CHECKPOINT_INTERVAL_S", 0.05)
    monkeypatch.setattr(watch, "HELD_UP_S", 0.3)
    monkeypatch.setattr(statistics, "INTERVAL_S", 0.1)
    make_web(lab.main, 30, delay_s=0.02)
    with caplog.at_level(logging.WARNING, "scrapy_frontier"):
        done = await lab.crawl(seeds=[lab.main / "p0"])
    assert [one for one in caplog.records if "store_" in str(one.__dict__.get("action"))] == []
    assert done.stats["frontier/store/checkpoints"] > 1
    assert done.stats["frontier/writer/mean_commit_s"] > 0
    assert done.stats["frontier/writer/longest_queue_age_s"] > 0


def open_run(vitals: Vitals, lag_s: float = 0.0) -> Open:
    """What the watch looks at, with figures that no disk could be brought to on demand."""
    frontier = SimpleNamespace(settings=SimpleNamespace(max_lag_s=10.0))
    seen: Any = SimpleNamespace(
        store=SimpleNamespace(url="sqlite:///s.db", path=None),
        writer=SimpleNamespace(vitals=vitals, lag_s=lag_s),
        frontier=frontier,
    )
    return cast(Open, seen)


def test_each_kind_of_warning_is_given_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Slow commits and an old queue are two kinds, each with its remedy."""
    now = 0.0
    vitals = Vitals()
    looker = Watch(lambda: now)
    with caplog.at_level(logging.WARNING):
        for at in (0.0, 10.0, QUIET_S - 1, QUIET_S, QUIET_S + 10):
            now = at
            vitals.committed(SLOW_COMMIT_S + 1, 0.0)
            looker.look(open_run(vitals, lag_s=12.0))
    told = [one.__dict__["action"] for one in caplog.records]
    assert told == ["store_queue_old", "store_commits_slow"] * 2
    assert "has waited 12.0 s to be written" in caplog.text
    assert "FRONTIER_MAX_LAG" in caplog.text
    assert "put the store on a local disk" in caplog.text


def test_commits_that_were_slow_long_ago_are_not_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only what was committed since the last look counts."""
    now = 0.0
    vitals = Vitals()
    vitals.committed(SLOW_COMMIT_S + 1, 0.0)
    looker = Watch(lambda: now)
    looker.look(open_run(vitals))
    assert len(caplog.records) == 1
    now = QUIET_S
    vitals.committed(0.01, 0.0)
    looker.look(open_run(vitals))
    assert len(caplog.records) == 1
