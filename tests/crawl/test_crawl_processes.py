"""A run survives whatever happens to its process: no identity is lost, and only what was in flight is repeated."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from crawls import Lab, Result, needs_two_writers, on_both_stores
from processes import CrawlProcess, make_web, wait_for_hits
from test_crawl_any import make_site

from scrapy_frontier.states import Event
from scrapy_frontier.testing import Answer, Hit, RequestLog, page

pytestmark = pytest.mark.slow

LIMIT = 4

AT_ONCE = 3 * LIMIT
"""Leases that may be held at one moment: requests on the wire, and pages whose callbacks still run."""

SETTINGS = {"CONCURRENT_REQUESTS": LIMIT, "CONCURRENT_REQUESTS_PER_DOMAIN": LIMIT}


def answered(log: RequestLog) -> Counter[str]:
    """How often each page was sent whole, with a status that ends it."""
    return Counter(hit.path for hit in log if hit.outcome == "sent" and hit.status != 503)


def reclaimed(result: Result) -> int:
    """How many leases of dead processes were taken back: what was in flight or in its callback."""
    query = f"SELECT count(*) FROM transition WHERE event = {Event.RECLAIM:d}"
    return int(result.rows(query)[0][0])


def assert_repeats_were_in_flight(result: Result, hits: list[Hit]) -> None:
    """A page was asked for again only because it failed, or because its lease was lost."""
    expected = result.wire_attempts() + result.lost_attempts()
    asked = Counter(hit.url for hit in hits)
    assert all(count <= expected[url] for url, count in asked.items()), asked - expected


@on_both_stores
def test_killed_again_and_again(lab: Lab) -> None:
    """After four kills at any moment every reachable page is fetched, and the account adds up."""
    dice = random.Random(20240229)
    paths = make_web(lab.main, 90, delay_s=0.02)
    seed = lab.main / "p0"
    for _ in range(4):
        with CrawlProcess(lab, seed, SETTINGS) as process:
            wait_for_hits(lab, process, len(lab.server.log) + dice.randrange(1, 25))
            time.sleep(dice.uniform(0, 0.05))
            process.kill()
    with CrawlProcess(lab, seed, SETTINGS) as process:
        output = process.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished", output
    assert len(result.coverage.sessions) == 5
    assert set(answered(lab.server.log)) == paths
    assert set(result.ends()) == {"succeeded", "redirected"}
    assert len(result.fates) == len(paths)
    assert_repeats_were_in_flight(result, lab.server.log.hits)
    assert 0 < reclaimed(result) <= 4 * AT_ONCE
    assert lab.server.log.max_simultaneous(lab.main.url) <= LIMIT


DICEY = """
from test_crawl_any import Dicey, Drops


class Killed(Dicey):
    def __init__(self, seed, **kwargs):
        super().__init__(seed=7, seeds=[seed], **kwargs)
"""


def test_any_crawl_survives_kills(lab: Lab) -> None:
    """Visits, delays, errbacks, direct fetches, dropped requests: the account adds up after every kill."""
    dice = random.Random(7)
    origins = [lab.main, lab.server.origin("other", "127.0.0.2")]
    make_site(origins, dice)
    settings = {
        **SETTINGS,
        "ROBOTSTXT_OBEY": True,
        "FRONTIER_WINDOW": 5,
        "FRONTIER_HOT_ORIGINS": 1,
        "DOWNLOADER_MIDDLEWARES": '{"test_crawl_any.Drops": 100}',
    }
    for _ in range(4):
        with CrawlProcess(lab, lab.main / "p0", settings, DICEY) as process:
            wait_for_hits(lab, process, len(lab.server.log) + dice.randrange(1, 20))
            process.kill()
    with CrawlProcess(lab, lab.main / "p0", settings, DICEY) as process:
        output = process.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished", output
    assert "frontier/refused': 0" in output
    assert result.rows("SELECT count(*) FROM visit WHERE is_waiting = 1") == [(0,)]
    assert set(result.coverage.identities.deferred) <= {"request.unserialisable"}
    assert_repeats_were_in_flight(result, lab.server.log.hits)
    for origin in origins:
        assert lab.server.log.max_simultaneous(origin.url) <= LIMIT


FETCHES_ITSELF = """
import os
import scrapy


class Fetches(scrapy.Spider):
    name = "fetches"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [seed]

    async def parse(self, response):
        for _ in range(0 if os.path.exists("not-again") else 2):
            await self.crawler.engine.download_async(scrapy.Request(response.urljoin("/own")))
"""


@pytest.mark.parametrize(
    ("moment", "hits", "delay_s"),
    [("waiting for its place", 1, 2), ("on the wire", 2, 0), ("a second time", 3, 0)],
)
def test_direct_fetch_that_was_killed(lab: Lab, moment: str, hits: int, delay_s: int) -> None:
    """What a callback fetched itself, and nobody asks for again, has its end in the account."""
    slow = Answer("slow", delay_s=2)
    lab.main.otherwise = page("any")
    lab.main.on("/own", [page("quick"), slow] if moment == "a second time" else slow)
    settings: dict[str, object] = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": delay_s}
    with CrawlProcess(lab, lab.main / "page", settings, FETCHES_ITSELF) as process:
        wait_for_hits(lab, process, hits)
        time.sleep(0.2)
        process.kill()
    (lab.folder / "not-again").touch()
    settings["DOWNLOAD_DELAY"] = 0
    with CrawlProcess(lab, lab.main / "page", settings, FETCHES_ITSELF) as process:
        output = process.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished", output
    assert result.coverage.identities.unresolved == result.coverage.identities.deferred == {}


def test_FC56_kill_with_jobdir_loses_nothing(lab: Lab) -> None:
    """A killed crawl with JOBDIR is resumed by the same JOBDIR and covers every page (scrapy#2399)."""
    lab.main.on("/seed", page("seed", [f"/{number}" for number in range(150)]))
    lab.main.otherwise = Answer("one", delay_s=0.01)
    settings = {**SETTINGS, "JOBDIR": "job", "FRONTIER_STORE": None, "FRONTIER_RUN": None}
    with CrawlProcess(lab, lab.main / "seed", settings) as process:
        wait_for_hits(lab, process, 40)
        process.kill()
    before = len(lab.server.log)
    with CrawlProcess(lab, lab.main / "seed", settings) as process:
        process.wait()
    result = Result(f"sqlite:///{lab.folder / 'job' / 'frontier.db'}", lab.server.log)
    result.assert_reconciled()
    assert before < 150
    assert len(result.coverage.sessions) == 2
    assert set(answered(lab.server.log)) == {"/seed", *(f"/{number}" for number in range(150))}
    assert len(lab.server.log) <= 151 + reclaimed(result)
    assert reclaimed(result) <= AT_ONCE
    assert_repeats_were_in_flight(result, lab.server.log.hits)


@on_both_stores
def test_one_signal_stops_cleanly(lab: Lab) -> None:
    """What is in flight is finished, the rest is left for the next start, and nothing is repeated."""
    paths = make_web(lab.main, 60, delay_s=0.03)
    for number in (signal.SIGINT, signal.SIGTERM):
        with CrawlProcess(lab, lab.main / "p0", SETTINGS) as process:
            wait_for_hits(lab, process, len(lab.server.log) + 15)
            process.send(number)
            process.wait()
        stopped = Result(lab.store_url, lab.server.log).assert_reconciled()
        assert (stopped.coverage.run.state, stopped.coverage.stop.reason) == ("stopped", "operator")
        assert set(stopped.coverage.identities.unresolved) <= {"scheduled", "retryable"}
        assert reclaimed(stopped) == 0
        assert len(lab.server.log) < len(paths)

    with CrawlProcess(lab, lab.main / "p0", SETTINGS) as process:
        process.wait()
    resumed = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert resumed.coverage.stop.reason == "exhausted"
    assert set(answered(lab.server.log)) == paths
    assert max(answered(lab.server.log).values()) == 1
    assert resumed.wire_attempts() == lab.server.log.hits_by_url()


def test_two_signals_stop_at_once(lab: Lab) -> None:
    """The second signal skips every hook; the next start finds the run as after a kill."""
    lab.main.on("/p0", page("", [f"/{number}" for number in range(12)]))
    lab.main.otherwise = Answer("slow", delay_s=1)
    with CrawlProcess(lab, lab.main / "p0", SETTINGS) as process:
        wait_for_hits(lab, process, 3)
        process.send(signal.SIGINT)
        process.wait_for_text("Send again to force")
        process.send(signal.SIGINT)
        process.wait()
    stopped = Result(lab.store_url, lab.server.log)
    assert stopped.coverage.run.state != "finished"

    lab.main.otherwise = page("quick")
    with CrawlProcess(lab, lab.main / "p0", SETTINGS) as process:
        process.wait()
    resumed = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert resumed.coverage.stop.reason == "exhausted"
    assert len(answered(lab.server.log)) == 13
    assert_repeats_were_in_flight(resumed, lab.server.log.hits)


@pytest.mark.parametrize("moment", ["on the wire", "after the answer"])
def test_interval_is_kept_across_a_kill(lab: Lab, moment: str) -> None:
    """The host's timing is on disk with its request and loaded before anything is dispatched."""
    delay_s = 1.0 if moment == "on the wire" else 0
    lab.main.on("/p0", [Answer(page("", ["/p1"]).body, delay_s=delay_s), page("", ["/p1"])])
    lab.main.on("/p1", page("p1"))
    settings = {
        "DOWNLOAD_DELAY": 4,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    }
    with CrawlProcess(lab, lab.main / "p0", settings) as process:
        wait_for_hits(lab, process, 1)
        time.sleep(0.15)
        process.kill()
    with CrawlProcess(lab, lab.main / "p0", settings) as process:
        wait_for_hits(lab, process, 2)
        process.kill()
    first, second = lab.server.log.hits[:2]
    counted_from = first.arrived_at if moment == "on the wire" else first.departed_at
    assert counted_from is not None
    assert second.arrived_at - counted_from >= 4 - 0.05


@on_both_stores
def test_another_process_on_the_same_run_is_refused(lab: Lab) -> None:
    """The second process ends with the name of the first, and sends no request."""
    lab.main.on("/p0", page("", [f"/{number}" for number in range(50)]))
    lab.main.otherwise = Answer("slow", delay_s=0.2)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    with CrawlProcess(lab, lab.main / "p0", settings) as first:
        wait_for_hits(lab, first, 2)
        with CrawlProcess(lab, lab.main / "other", settings) as second:
            output = second.wait()
        assert first.process.poll() is None
        assert re.search(rf"(process|scrapy_frontier) {first.process.pid} ", output)
        assert "FRONTIER_RUN" in output or "WAL-reset fault" in output
        assert "/other" not in lab.server.log.hits_by_path()
        first.send(signal.SIGTERM)
        first.wait()
    Result(lab.store_url, lab.server.log).assert_reconciled()


@needs_two_writers
@on_both_stores
def test_two_runs_in_one_store_at_the_same_time(lab: Lab) -> None:
    """Two processes share a store, each with a run of its own; both accounts add up."""
    paths = make_web(lab.main, 40, delay_s=0.01)
    with (
        CrawlProcess(lab, lab.main / "p0", {**SETTINGS, "FRONTIER_RUN": "one"}) as one,
        CrawlProcess(lab, lab.main / "p0", {**SETTINGS, "FRONTIER_RUN": "two"}) as two,
    ):
        outputs = one.wait(), two.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    states = result.rows("SELECT state FROM run")
    assert states == [("finished",), ("finished",)], outputs
    assert all(answered(lab.server.log)[path] == 2 for path in paths)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"FRONTIER_WINDOW": 0}, "FRONTIER_WINDOW = '0': must be a whole number"),
        ({"FRONTIER_STORE": "sqlite:////no/such/folder/s.db"}, "/no/such/folder"),
        (
            {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
            "needs the asyncio reactor",
        ),
    ],
    ids=["setting", "store", "reactor"],
)
def test_refusal_is_one_line(lab: Lab, settings: dict[str, object], message: str) -> None:
    """A crawl that cannot begin ends by itself, with a status, a line of its own in the log, and no request."""
    lab.main.otherwise = page("any")
    with CrawlProcess(lab, lab.main / "p0", settings) as process:
        output = process.wait()
    assert process.process.returncode == 1
    assert len(lab.server.log) == 0
    lines = [line for line in output.splitlines() if message in line]
    assert any("ConfigError: " in line or "CRITICAL: " in line for line in lines), output


def test_trial_commands_do_not_touch_the_run(lab: Lab) -> None:
    """`scrapy fetch` of a project with the add-on asks for its page and leaves no store."""
    lab.main.otherwise = page("any")
    command = [sys.executable, "-m", "scrapy", "fetch", "--nolog", lab.main / "x"]
    command += ["-s", 'ADDONS={"scrapy_frontier.Addon": 500}']
    command += ["-s", f"FRONTIER_STORE={lab.store_url}"]
    done = subprocess.run(command, cwd=lab.folder, capture_output=True, timeout=60, check=True)
    assert b"<h1>any</h1>" in done.stdout
    assert lab.server.log.hits_by_path() == {"/x": 1}
    assert not (lab.folder / "store.db").exists()
