"""The pace of an origin follows how it fares, one origin does not slow another, and a dead one ends."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab, Result
from scrapy import Request, Spider
from scrapy.settings import default_settings

from scrapy_frontier.policy.health import Sample, recompute
from scrapy_frontier.testing import Answer, page

QUICK = {"FRONTIER_CLOSE_AFTER": 0.6, "FRONTIER_MAX_INTERVAL": 0.2, "RETRY_ENABLED": False}
"""Failing origins are given up within a second."""


STEADY = (
    {"DOWNLOAD_DELAY_JITTER": 0.0}
    if hasattr(default_settings, "DOWNLOAD_DELAY_JITTER")
    else {"RANDOMIZE_DOWNLOAD_DELAY": False}  # Scrapy 2.18
)


class Pages(Spider):
    """Asks for numbered pages of origins, all at once; whatever comes is fine."""

    name = "pages"
    handle_httpstatus_all = True

    def __init__(self, bases: list[str], count: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bases = bases
        self.count = count

    async def start(self) -> Any:
        for number in range(self.count):
            for base in self.bases:
                yield Request(f"{base}/{number}", meta={"handle_httpstatus_all": True})

    def parse(self, response: Any) -> Any:
        return None


def samples(result: Result) -> list[Sample]:
    """Every stored decision about the pace of an origin, oldest first."""
    found = result.rows("SELECT code, inputs, state FROM health_sample ORDER BY sample_id")
    return [
        Sample.from_data(code, json.loads(inputs), json.loads(state))
        for code, inputs, state in found
    ]


def assert_recomputed(result: Result) -> None:
    """Every stored sample follows from its stored inputs."""
    found = samples(result)
    assert found
    for sample in found:
        assert recompute(sample) == sample


def state_of(result: Result, gate: str) -> dict[str, Any]:
    """The stored state of an origin's health."""
    ((state,),) = result.rows(f"SELECT state FROM health WHERE gate = '{gate}'")
    return dict(json.loads(state))


def unresolved(result: Result) -> int:
    return sum(result.coverage.identities.unresolved.values())


async def test_a_dead_origin_is_closed_and_the_run_ends(lab: Lab) -> None:
    """Its URLs stay unresolved, most of them without a single attempt; the neighbour is done as if it were alone."""
    dead = lab.server.origin("dead")
    dead.otherwise = Answer(fault="reset")
    lab.main.otherwise = page("fine")
    result = await lab.crawl(Pages, QUICK, bases=[dead.url, lab.main.url], count=60)
    result.assert_sound()
    assert result.coverage.stop.reason == "exhausted"
    assert result.coverage.run.state == "stopped"
    assert len(result.log.of(dead.url)) <= 25
    assert unresolved(result) == 60 - len(result.log.of(dead.url))
    assert all(result.fate(f"{lab.main.url}/{n}").end == "succeeded" for n in range(60))
    assert state_of(result, dead.url)["is_closed"]
    assert_recomputed(result)


async def test_urls_that_wait_to_be_retried_do_not_keep_a_run_from_its_end(lab: Lab) -> None:
    """The URLs of a closed origin that wait for a time stay unresolved as well, and the run ends before it comes."""
    dead = lab.server.origin("dead")
    dead.otherwise = Answer(fault="reset")
    lab.main.otherwise = page("fine")
    settings = {**QUICK, "RETRY_ENABLED": True, "FRONTIER_RETRY_DELAY": 60}
    result = await lab.crawl(Pages, settings, bases=[dead.url, lab.main.url], count=30)
    result.assert_sound()
    assert result.coverage.run.state == "stopped"
    assert result.coverage.identities.unresolved["retryable"] >= 2
    assert unresolved(result) == 30
    assert all(result.fate(f"{lab.main.url}/{n}").end == "succeeded" for n in range(30))


async def test_a_resumed_run_asks_a_closed_origin_with_one_request_first(lab: Lab) -> None:
    """Alive again, it gets the rest of its URLs, one at a time at first, and the run finishes."""
    lab.main.otherwise = Answer(fault="reset")
    first = await lab.crawl(Pages, QUICK, bases=[lab.main.url], count=40)
    assert state_of(first, lab.main.url)["is_closed"]
    failed = len(first.log.of(lab.main.url))
    lab.main.otherwise = Answer("fine", delay_s=0.02)
    second = await lab.crawl(Pages, QUICK, bases=[lab.main.url], count=40)
    second.assert_sound()
    assert second.coverage.run.state == "finished"
    hits = second.log.of(lab.main.url)[failed:]
    assert len(hits) == 40 - failed
    for before, after in pairwise(hits[:5]):
        assert before.departed_at is not None
        assert after.arrived_at >= before.departed_at, "one at a time"
    assert_recomputed(second)


async def test_a_failing_origin_does_not_slow_its_neighbour(lab: Lab) -> None:
    """While one origin is backed off, the other keeps its pace: well within the time that the first is given."""
    failing = lab.server.origin("failing")
    failing.otherwise = Answer("later", status=429)
    lab.main.otherwise = Answer("fine", delay_s=0.01)
    settings = {**QUICK, "FRONTIER_CLOSE_AFTER": 3.0, "FRONTIER_MAX_INTERVAL": 1.0}
    result = await lab.crawl(Pages, settings, bases=[failing.url, lab.main.url], count=50)
    hits = result.log.of(lab.main.url)
    assert len(hits) == 50
    assert hits[-1].arrived_at - hits[0].arrived_at < 2.0


async def test_a_slow_server_is_eased_before_it_complains(lab: Lab) -> None:
    """Answers that take much longer than they did lower the number in flight."""

    def slowing(request: Any) -> Answer:
        return Answer("fine", delay_s=0.02 if int(request.path[1:]) < 60 else 0.4)

    lab.main.otherwise = slowing
    result = await lab.crawl(
        Pages, {"CONCURRENT_REQUESTS_PER_DOMAIN": 8}, bases=[lab.main.url], count=100
    )
    result.assert_finished()
    eased = [sample for sample in samples(result) if sample.code == "health.ease"]
    assert eased
    assert eased[0].after.concurrency == 6
    assert_recomputed(result)


async def test_gaps_grow_while_everything_is_refused(lab: Lab) -> None:
    """FC35: with AutoThrottle's settings, gaps grow exponentially up to AUTOTHROTTLE_MAX_DELAY on 429 and 503, where
    Scrapy's own AutoThrottle keeps them."""
    for status in (429, 503):
        origin = lab.server.origin(f"refuses{status}")
        origin.otherwise = Answer("no", status=status)
        settings = {
            "AUTOTHROTTLE_ENABLED": True,
            "AUTOTHROTTLE_START_DELAY": 0.05,
            "AUTOTHROTTLE_TARGET_CONCURRENCY": 4,
            "AUTOTHROTTLE_MAX_DELAY": 0.8,
            **STEADY,
            "RETRY_ENABLED": False,
            "RETRY_TIMES": 0,
            "FRONTIER_RUN": f"refused {status}",
        }
        result = await lab.crawl(Pages, settings, bases=[origin.url], count=10)
        gaps = [b.arrived_at - a.arrived_at for a, b in pairwise(result.log.of(origin.url))]
        assert len(gaps) == 9
        for shorter, longer in zip(gaps[1:], gaps[3:], strict=False):
            assert longer > 1.5 * shorter or longer > 0.7
        assert gaps[-1] > 0.7
        assert max(gaps) < 1.5


async def test_state_survives_a_restart(lab: Lab) -> None:
    """An origin that asked for less is asked for less by the next process from its first request on."""
    lab.main.otherwise = Answer("no", status=429)
    settings = {**QUICK, "FRONTIER_MAX_INTERVAL": 0.5, "FRONTIER_CLOSE_AFTER": None}
    settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = 2
    first = await lab.crawl(
        Pages, {**settings, "CLOSESPIDER_PAGECOUNT": 6}, bases=[lab.main.url], count=30
    )
    left = state_of(first, lab.main.url)
    assert left["concurrency"] == 1
    assert left["interval_s"] >= 0.3
    seen = len(first.log.of(lab.main.url))
    lab.main.otherwise = page("fine")
    second = await lab.crawl(
        Pages, {**settings, "CLOSESPIDER_PAGECOUNT": 4}, bases=[lab.main.url], count=30
    )
    hits = second.log.of(lab.main.url)[seen:]
    assert len(hits) >= 3
    assert hits[1].arrived_at - hits[0].arrived_at >= 0.5 * left["interval_s"] - 0.05


@pytest.mark.parametrize("throttled", [False, True])
async def test_switched_off_nothing_is_adapted(lab: Lab, throttled: bool) -> None:
    """FRONTIER_HEALTH = False: every gate keeps its configured policy, whatever the server says."""
    lab.main.otherwise = Answer("no", status=429, delay_s=0.02)
    settings = {"FRONTIER_HEALTH": False, "RETRY_ENABLED": False, "AUTOTHROTTLE_ENABLED": throttled}
    result = await lab.crawl(
        Pages, {**settings, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}, bases=[lab.main.url], count=40
    )
    assert len(result.log.of(lab.main.url)) == 40
    assert result.log.max_simultaneous(lab.main.url) == 4
    assert result.rows("SELECT count(*) FROM health_sample") == [(0,)]


async def test_an_ordinary_crawl_is_not_slowed(lab: Lab) -> None:
    """All goes well: the limit is made use of and nothing is held back."""
    lab.main.on("/", page("", [f"/{number}" for number in range(60)]))
    lab.main.otherwise = Answer("fine", delay_s=0.02)
    result: Crawl = await lab.crawl(Follower, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.max_simultaneous(lab.main.url) == 8
    assert result.stats["frontier/health/held_back"] == 0
