"""A lease holds while work is seen to go on; what hangs is taken back, and a spider never hears of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from crawls import Follower, Lab
from scrapy import Request

from scrapy_frontier.frontier.leases import warn_of_short_lease
from scrapy_frontier.testing import Answer, page, text

SHORT = {"FRONTIER_LEASE": 0.6, "DOWNLOAD_TIMEOUT": 30}


class Listens(Follower):
    """Notes what its callback and its errback are told."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.told: list[str] = []

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Any) -> Any:
        self.told.append(response.text)
        yield {"url": response.url}

    def failed(self, failure: Any) -> None:
        self.told.append(repr(failure.value))


async def test_download_that_hangs_is_ended_and_made_again(lab: Lab) -> None:
    """Its connection is closed, its place given back; neither callback nor errback hears of the lost one."""
    lab.main.on("/page", [Answer(fault="stall"), page("there")])
    # One request at a time: the second could not go out while the first holds the place of its origin.
    settings = {**SHORT, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Listens, settings, seeds=[lab.main / "page"])
    result.assert_finished()
    assert len(result.spider.told) == len(result.items) == 1
    assert "there" in result.spider.told[0]
    assert result.history(lab.main / "page")[3:] == [
        "dispatch",
        "reclaim",
        "dispatch",
        "respond",
        "process",
    ]
    assert result.coverage.attempts.by_outcome == {"http.200": 1, "lease.expired": 1}
    assert result.stats["frontier/leases/expired"] == result.stats["frontier/leases/lost"] == 1
    assert await lab.nobody_waits()


async def test_url_that_hangs_each_time_is_given_up(lab: Lab) -> None:
    """After so many expired leases it is a dead letter, and the crawl ends."""
    lab.main.on("/page", Answer(fault="stall"))
    settings = {**SHORT, "FRONTIER_LEASE_EXPIRIES": 2}
    result = await lab.crawl(Listens, settings, seeds=[lab.main / "page"])
    result.assert_finished()
    assert result.spider.told == []
    fate = result.fate(lab.main / "page")
    assert (fate.end, fate.reason, fate.attempts) == ("failed", "lease.exhausted", 2)
    assert result.coverage.attempts.by_outcome == {"lease.expired": 1, "lease.exhausted": 1}
    assert [letter.url for letter in result.coverage.deadletters] == [lab.main / "page"]


async def test_callback_that_hangs_is_taken_back_and_its_end_comes_late(lab: Lab) -> None:
    """The page is fetched again; what the hung callback brings at last is evidence, and its links are kept."""

    class HangsOnce(Listens):
        released: asyncio.Event | None = None

        async def parse(self, response: Any) -> Any:
            if self.released is None:
                self.released = asyncio.Event()
                await self.released.wait()
                self.told.append("late")
                yield response.follow("/late", self.parse_late)
            else:
                self.told.append("in time")
                self.released.set()

        def parse_late(self, response: Any) -> None:
            self.told.append("child")

    lab.main.on("/page", page("any"))
    lab.main.on("/late", page("child"))
    result = await lab.crawl(HangsOnce, SHORT, seeds=[lab.main / "page"])
    result.assert_finished()
    assert result.spider.told == ["in time", "late", "child"]
    assert result.history(lab.main / "page").count("reclaim") == 1
    assert result.coverage.attempts.late == 1
    assert result.rows(
        "SELECT l.attempt_id, l.event, r.code FROM late AS l JOIN reason AS r ON r.reason_id = l.outcome_id"
    ) == [(1, 13, "http.200")]


@pytest.mark.parametrize("what", ["bytes", "items"])
async def test_lease_is_renewed_while_work_goes_on(lab: Lab, what: str) -> None:
    """A slow download, and a slow callback, keep their lease as long as something comes of them."""

    class Slow(Listens):
        async def parse(self, response: Any) -> Any:
            for number in range(10 if what == "items" else 1):
                await asyncio.sleep(0.2 if what == "items" else 0)
                yield {"number": number}

    body = "x" * 200_000
    lab.main.on("/page", Answer(body, trickle_s=2.0 if what == "bytes" else 0.0))
    result = await lab.crawl(Slow, SHORT, seeds=[lab.main / "page"])
    result.assert_exhausted()
    assert result.coverage.attempts.total == 1
    assert result.stats["frontier/leases/renewed"] > 0
    assert result.stats["frontier/leases/expired"] == 0


async def test_callback_keeps_its_lease_while_a_download_that_it_awaits_gets_on(lab: Lab) -> None:
    """What a callback fetches itself is work of its page."""

    class Awaits(Listens):
        async def parse(self, response: Any) -> Any:
            inner = await self.crawler.engine.download_async(Request(lab.main / "inner"))
            self.told.append(str(len(inner.body)))

    lab.main.on("/page", page("any"))
    lab.main.on("/inner", Answer("x" * 200_000, trickle_s=2.0))
    result = await lab.crawl(Awaits, SHORT, seeds=[lab.main / "page"])
    result.assert_exhausted()
    assert result.spider.told == ["200000"]
    assert result.coverage.attempts.total == 2


async def test_request_in_a_queue_keeps_its_lease_while_others_get_on(lab: Lab) -> None:
    """Those that wait for a place on the wire are not taken for hung."""
    seeds = [lab.main / f"{number}" for number in range(8)]
    lab.main.otherwise = Answer("x", delay_s=0.3)
    settings = {**SHORT, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Listens, settings, seeds=seeds)
    result.assert_exhausted()
    assert result.coverage.attempts.total == 8


async def test_request_that_lives_in_memory_only_survives_its_lost_lease(lab: Lab) -> None:
    """It is made again from memory, as it was."""

    class Volatile(Listens):
        async def start(self) -> Any:
            yield Request(lab.main / "page", callback=lambda response: self.told.append("once"))

    lab.main.on("/page", [Answer(fault="stall"), page("there")])
    result = await lab.crawl(Volatile, SHORT)
    result.assert_finished()
    assert result.spider.told == ["once"]


async def test_download_past_the_scheduler_that_hangs_ends_for_its_issuer(lab: Lab) -> None:
    """Nobody else can take its answer: it is cancelled by name, and who waits for it is told."""

    class Awaits(Listens):
        async def parse(self, response: Any) -> Any:
            try:
                await self.crawler.engine.download_async(Request(lab.main / "hangs"))
            except Exception as error:
                self.told.append(type(error).__name__)
            yield {"ended": True}

    lab.main.on("/page", page("any"))
    lab.main.on("/hangs", Answer(fault="stall"))
    # Its page shows no work either, but is given time by the download's own lease.
    result = await lab.crawl(Awaits, SHORT, seeds=[lab.main / "page"])
    result.assert_finished()
    assert "LeaseLost" in result.spider.told
    assert result.fate(lab.main / "hangs").end == "cancelled"


async def test_loop_that_was_held_up_takes_nothing_back(lab: Lab) -> None:
    """While a callback computes, no other attempt can show that it gets on."""

    class Computes(Listens):
        def parse(self, response: Any) -> Any:
            if response.url.endswith("/heavy"):
                import time

                time.sleep(1.5)
            self.told.append(response.url)
            yield {"url": response.url}

    lab.main.on("/heavy", page("any"))
    lab.main.on("/other", Answer("x", delay_s=0.4))
    seeds = [lab.main / "heavy", lab.main / "other"]
    result = await lab.crawl(Computes, SHORT, seeds=seeds)
    result.assert_exhausted()
    assert result.coverage.attempts.total == 2


@pytest.mark.parametrize(("lease", "timeout", "warns"), [(180, 180, True), (600, 180, False)])
def test_short_lease_is_warned_of(
    caplog: pytest.LogCaptureFixture, lease: float, timeout: float, *, warns: bool
) -> None:
    """A lease that a silent server may outlast is named, with the setting."""
    from scrapy.settings import Settings

    warn_of_short_lease(lease, Settings({"DOWNLOAD_TIMEOUT": timeout}))
    assert ("FRONTIER_LEASE" in caplog.text) is warns


async def test_robots_and_links_are_the_same_with_and_without_an_expiry(lab: Lab) -> None:
    """The links of a page whose first attempt was lost are its own all the same."""
    lab.main.on("/robots.txt", text("User-agent: *\nAllow: /\n"))
    lab.main.on("/", [Answer(fault="stall"), page("home", ["/a", "/b"])])
    lab.main.otherwise = page("leaf")
    settings = {**SHORT, "ROBOTSTXT_OBEY": True}
    result = await lab.crawl(Follower, settings, seeds=[lab.main / ""])
    result.assert_finished()
    assert result.coverage.identities.terminal == {"succeeded": 4}
