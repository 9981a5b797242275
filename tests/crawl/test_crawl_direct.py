"""Requests past the scheduler and from outside of callbacks are seen, and wait for their gates."""

from __future__ import annotations

from typing import Any

import pytest
from crawls import Follower, Lab, on_both_stores
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from scrapy_frontier.testing import Answer, page, redirect, text

GATE_OF_ONE = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}


@pytest.mark.parametrize("settings", [{}, GATE_OF_ONE, {**GATE_OF_ONE, "DOWNLOAD_DELAY": 0.02}])
async def test_robots_txt(lab: Lab, settings: dict[str, Any]) -> None:
    """The fetch of robots.txt waits for its gate and holds up nobody for ever; what it forbids is named."""
    lab.main.on("/robots.txt", text("User-agent: *\nDisallow: /private\n"))
    lab.main.on("/", page("", ["/private/1", "/private/2", "/public"]))
    lab.main.otherwise = page("any")
    result = await lab.crawl(settings={**settings, "ROBOTSTXT_OBEY": True}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/robots.txt": 1, "/": 1, "/public": 1}
    assert result.log.hits[0].path == "/robots.txt"
    assert result.coverage.identities.suppressed == {"robots.disallow": 2}
    if settings:
        assert result.log.max_simultaneous(lab.main.url) == 1


@on_both_stores
async def test_robots_txt_of_many_origins_under_a_tight_limit(lab: Lab) -> None:
    """Requests that wait for robots.txt leave room for the fetch of robots.txt."""
    origins = [lab.server.origin(f"o{number}") for number in range(6)]
    for origin in origins:
        origin.on("/robots.txt", Answer("User-agent: *\nDisallow:\n", delay_s=0.02))
        origin.otherwise = page("", [f"{other.url}/x" for other in origins])
    seeds = [f"{origin.url}/{number}" for origin in origins for number in range(3)]
    settings = {
        "CONCURRENT_REQUESTS": 2,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "ROBOTSTXT_OBEY": True,
    }
    result = await lab.crawl(settings=settings, seeds=seeds)
    result.assert_exhausted()
    assert len(result.log) == 6 * 5
    assert all(hits == 1 for hits in result.log.hits_by_url().values())


@pytest.mark.parametrize("answer", [Answer(status=404), redirect("/r.txt")])
async def test_robots_txt_that_allows(lab: Lab, answer: Answer) -> None:
    """Whatever comes of robots.txt, its fetch is accounted for and the crawl ends."""
    lab.main.on("/robots.txt", answer)
    lab.main.on("/r.txt", text("User-agent: *\nDisallow: /no\n"))
    lab.main.on("/", page("", ["/1"]))
    lab.main.on("/1", page("1"))
    settings = {**GATE_OF_ONE, "ROBOTSTXT_OBEY": True, "RETRY_TIMES": 1}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.fate(lab.main / "1").end == "succeeded"


@pytest.mark.parametrize("answer", [Answer(status=500), Answer(status=429), Answer(fault="close")])
async def test_robots_txt_that_never_comes(lab: Lab, answer: Answer) -> None:
    """An origin whose robots.txt cannot be had is closed for the run: nothing of it is fetched, nothing is lost."""
    lab.main.on("/robots.txt", answer)
    lab.main.on("/", page("", ["/1"]))
    settings = {
        "ROBOTSTXT_OBEY": True,
        "FRONTIER_ROBOTS_MAX_TRIES": 3,
        "FRONTIER_ROBOTS_BACKOFF": 0.05,
    }
    result = await lab.crawl(settings=settings, seeds=[lab.main / "", lab.main / "2"])
    result.assert_sound()
    assert result.log.hits_by_path() == {"/robots.txt": 3}
    assert result.coverage.stop.reason == "exhausted"
    assert result.coverage.run.state == "stopped"
    assert result.coverage.identities.unresolved == {"scheduled": 2}

    lab.main.on("/robots.txt", text("User-agent: *\nDisallow: /2\n"))
    resumed = await lab.crawl(settings=settings, seeds=[lab.main / "", lab.main / "2"])
    resumed.assert_exhausted()
    assert resumed.fate(lab.main / "").end == "succeeded"
    assert resumed.fate(lab.main / "2").reason == "robots.disallow"
    assert resumed.log.hits_by_path()["/robots.txt"] == 4


async def test_files_pipeline_from_the_same_origin(lab: Lab) -> None:
    """A pipeline fetches from an origin whose limit is 1 while its page is open: no deadlock."""

    class Files(Follower):
        def parse(self, response: Any) -> Any:
            number = response.url[-1]
            if number == "/":
                yield from super().parse(response)
            else:
                yield {"file_urls": [lab.main / f"file{number}.bin", lab.main / "shared.bin"]}

    lab.main.on("/", page("", ["/1", "/2", "/3"]))
    lab.main.on("/shared.bin", Answer(b"shared", content_type="application/octet-stream"))
    lab.main.on("/file*", Answer(b"file", content_type="application/octet-stream"))
    lab.main.otherwise = page("any")
    settings = {
        **GATE_OF_ONE,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(lab.folder / "files"),
    }
    result = await lab.crawl(Files, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.items) == 3
    assert all(len(item["files"]) == 2 for item in result.items)
    assert result.log.max_simultaneous(lab.main.url) == 1
    assert result.log.hits_by_path()["/file1.bin"] == 1


async def test_more_files_than_the_limits_allow_at_once(lab: Lab) -> None:
    """Many waiting pipeline fetches hold up neither each other nor the pages."""

    class Files(Follower):
        def parse(self, response: Any) -> Any:
            yield from super().parse(response)
            name = response.url.rpartition("/")[2]
            yield {"file_urls": [f"{lab.main.url}/f-{name}-{number}.bin" for number in range(6)]}

    lab.main.on("/", page("", [f"/{number}" for number in range(6)]))
    lab.main.on("/f*", Answer(b"file", content_type="application/octet-stream"))
    lab.main.otherwise = page("any")
    settings = {
        "CONCURRENT_REQUESTS": 3,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(lab.folder / "files"),
    }
    result = await lab.crawl(Files, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log) == 7 + 42
    assert result.log.max_simultaneous(lab.main.url) <= 2


async def test_download_async_from_a_callback(lab: Lab) -> None:
    """A callback's own fetch waits for its origin's gate, and is an attempt of the ledger."""

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            own = await self.crawler.engine.download_async(Request(lab.main / "api"))
            yield {"own": own.text}

    lab.main.on("/", page(""))
    lab.main.on("/api", text("answer"))
    result = await lab.crawl(Fetches, GATE_OF_ONE, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"own": "answer"}]
    assert result.log.max_simultaneous(lab.main.url) == 1
    assert result.coverage.references.by_kind["direct"].total == 1


async def test_download_async_of_one_url_at_the_same_time(lab: Lab) -> None:
    """Two fetches of one URL are two attempts of one identity, one after the other (invariant 3)."""

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            own = await self.crawler.engine.download_async(Request(lab.main / "api"))
            yield {"own": own.text}

    lab.main.on("/api", Answer("answer", delay_s=0.02))
    lab.main.otherwise = page("any")
    result = await lab.crawl(Fetches, seeds=[f"{lab.main.url}/{number}" for number in range(4)])
    result.assert_exhausted()
    assert len(result.items) == 4
    assert result.fate(lab.main / "api").attempts == 4


async def test_download_async_follows_redirects_and_retries(lab: Lab) -> None:
    """Each hop that a direct fetch takes is seen too."""

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            own = await self.crawler.engine.download_async(Request(lab.main / "moved"))
            yield {"own": own.text}

    lab.main.on("/", page(""))
    lab.main.on("/moved", redirect("/weak"))
    lab.main.on("/weak", [Answer(status=503), text("answer")])
    result = await lab.crawl(Fetches, GATE_OF_ONE, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"own": "answer"}]
    assert result.log.hits_by_path() == {"/": 1, "/moved": 1, "/weak": 2}
    assert result.fate(lab.main / "moved").end == "redirected"


async def test_download_async_that_fails(lab: Lab) -> None:
    """The callback gets the exception; the ledger has the failure; nothing hangs."""

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            for path in ("dead", "dead", "fine"):
                if error := await self.error_of(lab.main / path):
                    yield {"error": type(error).__name__}

        async def error_of(self, url: str) -> Exception | None:
            try:
                await self.crawler.engine.download_async(Request(url))
            except Exception as error:
                return error
            return None

    lab.main.on("/", page(""))
    lab.main.on("/dead", Answer(fault="stall"))
    lab.main.on("/fine", page("fine"))
    settings = {**GATE_OF_ONE, "RETRY_ENABLED": False, "DOWNLOAD_TIMEOUT": 0.2}
    result = await lab.crawl(Fetches, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.items) == 2
    assert result.fate(lab.main / "dead").end == "failed"
    assert result.fate(lab.main / "fine").end == "succeeded"


async def test_direct_fetch_of_a_page_that_is_crawled_too(lab: Lab) -> None:
    """A fetch past the scheduler takes nothing from the crawl: the page is still crawled once."""

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            if response.url == lab.main / "":
                await self.crawler.engine.download_async(Request(lab.main / "page"))
                yield Request(lab.main / "page", self.parse)
            else:
                yield {"url": response.url}

    lab.main.otherwise = page("any")
    result = await lab.crawl(Fetches, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"url": lab.main / "page"}]
    assert result.log.hits_by_path() == {"/": 1, "/page": 2}


async def test_engine_crawl_from_a_signal_handler(lab: Lab) -> None:
    """A request that a component hands to the engine is a reference without a page."""

    def opened(spider: Spider) -> None:
        assert spider.crawler.engine is not None
        spider.crawler.engine.crawl(Request(lab.main / "extra", callback=spider.parse))

    lab.main.on("/", page(""))
    lab.main.on("/extra", page("", ["/more"]))
    lab.main.on("/more", page("more"))
    result = await lab.crawl(
        before=lambda crawler: crawler.signals.connect(opened, signals.spider_opened, weak=False),
        seeds=[lab.main / ""],
    )
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/extra": 1, "/more": 1}
    assert result.coverage.references.by_kind["engine"].total == 1


async def test_idle_handler_feeds_the_crawl(lab: Lab) -> None:
    """A spider that takes its next URL when it is idle gets a turn for each of them."""
    left = ["/3", "/2", "/1"]

    def idle(spider: Spider) -> None:
        if left:
            assert spider.crawler.engine is not None
            spider.crawler.engine.crawl(Request(lab.main.url + left.pop()))

    def before(crawler: Crawler) -> None:
        crawler.signals.connect(idle, signals.spider_idle, weak=False)

    lab.main.otherwise = page("any")
    result = await lab.crawl(before=before, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert [hit.path for hit in result.log] == ["/", "/1", "/2", "/3"]


async def test_other_schemes_need_no_gate(lab: Lab) -> None:
    """`data:` and `file:` are no HTTP: they are rejected by name, not fetched, and nothing hangs."""

    class Odd(Follower):
        async def start(self) -> Any:
            yield Request("data:text/plain,hello")
            yield Request(lab.main / "")

    lab.main.on("/", page(""))
    result = await lab.crawl(Odd)
    result.assert_exhausted()
    assert result.coverage.references.rejected == {"scheme.unsupported": 1}
