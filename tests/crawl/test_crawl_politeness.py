"""No origin sees more at once, or shorter intervals, than its policy allows (invariant 7)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawls import Follower, Lab, on_both_stores
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.settings import default_settings

from scrapy_frontier.testing import Answer, Hit, ServerProcess, page, redirect

SLACK_S = 0.004
"""What a loopback connection and the log may take: arrivals are seen from the server's side."""


def many(count: int) -> list[str]:
    return [f"/{number}" for number in range(count)]


@pytest.mark.parametrize("limit", [1, 3])
async def test_limit_per_origin(lab: Lab, limit: int) -> None:
    """In flight at one origin is never more than its limit, and the limit is made use of."""
    lab.main.on("/", page("", many(24)))
    lab.main.otherwise = Answer("slow", delay_s=0.02)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": limit}
    result = await lab.crawl(Follower, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.max_simultaneous(lab.main.url) == limit


async def test_ports_of_one_host_are_origins_of_their_own(lab: Lab) -> None:
    """The unit of politeness is the origin, scheme and host and port, not the host name."""
    other = lab.server.origin("other")
    lab.main.on("/", page("", [*many(8), *(f"{other.url}/{number}" for number in range(8))]))
    lab.main.otherwise = other.otherwise = Answer("slow", delay_s=0.03)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await lab.crawl(Follower, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    for origin in (lab.main, other):
        assert result.log.max_simultaneous(origin.url) == 1
    first_of_other = result.log.of(other.url)[0]
    last_of_main = result.log.of(lab.main.url)[-1]
    assert first_of_other.arrived_at < last_of_main.arrived_at


@on_both_stores
async def test_total_in_flight(lab: Lab) -> None:
    """The total in flight is never more than CONCURRENT_REQUESTS."""
    origins = [lab.server.origin(f"o{number}") for number in range(5)]
    for origin in origins:
        origin.otherwise = Answer("slow", delay_s=0.03)

    class Everywhere(Follower):
        async def start(self) -> Any:
            for number in range(8):
                for origin in origins:
                    yield Request(f"{origin.url}/{number}")

    settings = {"CONCURRENT_REQUESTS": 6, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
    result = await lab.crawl(Everywhere, settings)
    result.assert_exhausted()
    assert most_at_once(list(result.log)) <= 6
    for origin in origins:
        assert result.log.max_simultaneous(origin.url) <= 4


def most_at_once(hits: list[Hit]) -> int:
    """The most requests that were in flight together, over all origins."""
    changes = [(hit.arrived_at, 1) for hit in hits]
    changes += [(hit.departed_at or float("inf"), -1) for hit in hits]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def script(folder: Path, paths: dict[str, Any], otherwise: Any = None) -> Path:
    """A script for a server of one origin, in a process of its own: its arrivals are exact."""
    path = folder / "script.json"
    site = {"paths": paths, "otherwise": otherwise or {"body": "fine", "delay_s": 0.02}}
    path.write_text(json.dumps({"origins": {"main": site}}))
    return path


async def crawl_of(
    lab: Lab, paths: dict[str, Any], settings: dict[str, Any], spider: type[Follower] = Follower
) -> list[Hit]:
    """Crawl the script from `/`; the hits in order of arrival."""
    with ServerProcess(lab.folder / "hits.log", script(lab.folder, paths)) as server:
        result = await lab.crawl(spider, settings, seeds=[f"{server.urls['main']}/"])
        result.assert_sound()
        assert result.coverage.stop.reason == "exhausted"
    hits = server.read_log().hits
    assert sum(result.wire_attempts().values()) == len(hits)
    return hits


def assert_gaps(hits: list[Hit], interval_s: float) -> None:
    """The end of each answer and the next arrival are at least the interval apart."""
    for before, after in pairwise(hits):
        assert before.departed_at is not None
        assert after.arrived_at - before.departed_at >= interval_s - SLACK_S


STEADY: dict[str, Any] = (
    {"DOWNLOAD_DELAY_JITTER": 0}
    if hasattr(default_settings, "DOWNLOAD_DELAY_JITTER")
    else {"RANDOMIZE_DOWNLOAD_DELAY": False}  # Scrapy 2.18
)


async def test_interval_with_limit_1_counts_from_the_end_of_the_answer(lab: Lab) -> None:
    """A server that answers slowly gets its rest all the same."""
    hits = await crawl_of(
        lab,
        {"/": {"links": many(6)}},
        {"DOWNLOAD_DELAY": 0.1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, **STEADY},
    )
    assert len(hits) == 7
    assert_gaps(hits, 0.1)


async def test_interval_with_a_higher_limit_counts_between_dispatches(lab: Lab) -> None:
    """Answers may overlap, departures of requests are the interval apart."""
    slow = {f"/{number}": {"body": "slow", "delay_s": 0.25} for number in range(6)}
    hits = await crawl_of(
        lab,
        {"/": {"links": many(6)}, **slow},
        {"DOWNLOAD_DELAY": 0.1, "CONCURRENT_REQUESTS_PER_DOMAIN": 4, **STEADY},
    )
    assert len(hits) == 7
    intervals = [after.arrived_at - before.arrived_at for before, after in pairwise(hits)]
    assert min(intervals) >= 0.1 - SLACK_S
    assert max(hit.concurrency for hit in hits) > 1


async def test_jittered_interval_stays_in_its_bounds(lab: Lab) -> None:
    """Scrapy's jitter of one half varies the interval between half and one and a half."""
    hits = await crawl_of(
        lab,
        {"/": {"links": many(10)}},
        {"DOWNLOAD_DELAY": 0.08, "CONCURRENT_REQUESTS_PER_DOMAIN": 1},
    )
    assert_gaps(hits, 0.04)
    gaps = [after.arrived_at - before.departed_at for before, after in pairwise(hits)]
    assert max(gaps) - min(gaps) > 0.005


async def test_interval_is_kept_across_redirects_and_retries(lab: Lab) -> None:
    """A hop and a second attempt are requests like any other to the server that gets them."""
    paths = {
        "/": {"links": ["/moved", "/weak", "/plain", "/dead"]},
        "/moved": {"redirect": "/target"},
        "/weak": [{"status": 503}, {"status": 503}, {"body": "fine"}],
        "/dead": [{"fault": "reset"}, {"body": "fine"}],
    }
    hits = await crawl_of(
        lab, paths, {"DOWNLOAD_DELAY": 0.08, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, **STEADY}
    )
    assert len(hits) == 9
    assert_gaps(hits, 0.08)


async def test_interval_is_kept_across_robots_and_direct_fetches(lab: Lab) -> None:
    """What middlewares and callbacks fetch themselves waits for the same gate."""

    class Direct(Follower):
        async def parse(self, response: Any) -> Any:
            if response.url.endswith("/"):
                for number in range(3):
                    request = Request(response.urljoin(f"/direct{number}"))
                    await self.crawler.engine.download_async(request)
            for request in response.follow_all(css="a"):
                yield request

    hits = await crawl_of(
        lab,
        {"/": {"links": many(3)}, "/robots.txt": {"status": 404}},
        {
            "DOWNLOAD_DELAY": 0.08,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            "ROBOTSTXT_OBEY": True,
            **STEADY,
        },
        Direct,
    )
    assert [hit.path for hit in hits[:2]] == ["/robots.txt", "/"]
    assert len(hits) == 8
    assert_gaps(hits, 0.08)


@on_both_stores
async def test_interval_is_kept_across_a_resumption(lab: Lab) -> None:
    """The timing of a host is loaded before anything is dispatched."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            yield from super().parse(response)
            if is_first:
                raise CloseSpider("for_now")

    is_first = True
    settings = {
        "DOWNLOAD_DELAY": 1.2,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        **STEADY,
    }
    with ServerProcess(
        lab.folder / "hits.log", script(lab.folder, {"/": {"links": ["/1"]}})
    ) as server:
        seeds = [f"{server.urls['main']}/"]
        stopped = await lab.crawl(Stops, settings, seeds=seeds)
        assert stopped.coverage.run.state == "stopped"
        is_first = False
        resumed = await lab.crawl(Stops, settings, seeds=seeds)
        resumed.assert_sound()
    hits = server.read_log().hits
    assert [hit.path for hit in hits] == ["/", "/1"]
    assert_gaps(hits, 1.2)


async def test_download_slots_name_hosts_origins_and_slots(lab: Lab) -> None:
    """DOWNLOAD_SLOTS is an input: its entry for a host or an origin goes before the defaults."""
    other = lab.server.origin("other", "127.0.0.2")
    links = [*many(9), *(f"{other.url}/{number}" for number in range(9))]
    lab.main.on("/", page("", links))
    lab.main.otherwise = other.otherwise = Answer("slow", delay_s=0.02)
    settings = {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "DOWNLOAD_SLOTS": {lab.main.url: {"concurrency": 1}, "127.0.0.2": {"concurrency": 3}},
    }
    result = await lab.crawl(Follower, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.max_simultaneous(lab.main.url) == 1
    assert result.log.max_simultaneous(other.url) == 3


async def test_copied_meta_makes_no_gate_of_its_own(lab: Lab) -> None:
    """`meta=response.meta`, as many spiders write, brings no `download_slot` of the user's along."""

    class Copies(Follower):
        async def parse(self, response: Any) -> Any:
            yield {"slot": response.meta["download_slot"]}
            if response.url.endswith("/"):
                for number in range(6):
                    yield Request(response.urljoin(f"/{number}"), meta=response.meta)
            else:
                request = Request(response.url + "/direct", meta=response.meta)
                await self.crawler.engine.download_async(request)

    lab.main.otherwise = Answer("slow", delay_s=0.02)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await lab.crawl(Copies, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log) == 13
    assert result.log.max_simultaneous(lab.main.url) == 1
    assert [origin.origin for origin in result.coverage.origins] == [lab.main.url]
    assert {item["slot"] for item in result.items} == {"127.0.0.1"}


async def test_copied_meta_does_not_keep_a_hop_from_its_gate(lab: Lab) -> None:
    """The hops of a direct fetch wait for the gate of the origin that they lead to."""

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            own = Request(response.url.replace("page", "moved"))
            yield {"url": (await self.crawler.engine.download_async(own)).url}

    lab.main.on("/moved*", redirect("/target"))
    lab.main.otherwise = Answer("slow", delay_s=0.02)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    seeds = [f"{lab.main.url}/page{number}" for number in range(5)]
    result = await lab.crawl(Fetches, settings, seeds=seeds)
    result.assert_exhausted()
    assert result.log.hits_by_path()["/target"] == 5
    assert result.log.max_simultaneous(lab.main.url) == 1


async def test_copied_meta_does_not_take_a_slot_to_another_host(lab: Lab) -> None:
    """A page of one host that is yielded with the meta of another belongs to its own host."""
    other = lab.server.origin("other", "127.0.0.2")

    class Copies(Follower):
        def parse(self, response: Any) -> Any:
            yield {"slot": response.meta["download_slot"]}
            if response.url == lab.main / "":
                yield Request(f"{other.url}/x", meta=response.meta)

    lab.main.otherwise = other.otherwise = page("any")
    result = await lab.crawl(Copies, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert [item["slot"] for item in result.items] == ["127.0.0.1", "127.0.0.2"]
