"""Where several promises meet: visits of excluded pages, waivers, retries elsewhere, several crawls in one process."""

from __future__ import annotations

from typing import Any

import pytest
from crawls import Follower, Lab, needs_two_writers
from scrapy import Request
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from twisted.internet.defer import ensureDeferred, gatherResults

from scrapy_frontier.testing import Answer, page, redirect, text

# Visits of pages that are excluded


async def test_visits_of_a_page_that_robots_txt_forbids(lab: Lab) -> None:
    """Each explicit visit is judged; none is left waiting in a run that calls itself finished."""

    class Visits(Follower):
        async def start(self) -> Any:
            for _ in range(3):
                yield Request(lab.main / "private", dont_filter=True)

    lab.main.on("/robots.txt", text("User-agent: *\nDisallow: /private\n"))
    lab.main.otherwise = page("any")
    result = await lab.crawl(Visits, {"ROBOTSTXT_OBEY": True})
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/robots.txt": 1}
    assert result.fate(lab.main / "private").reason == "robots.disallow"


async def test_visits_of_a_page_that_a_middleware_drops_once(lab: Lab) -> None:
    """A visit that waits behind one that is dropped is made all the same."""
    dropped: list[str] = []

    class DropsFirst:
        def process_request(self, request: Request) -> None:
            if not dropped:
                dropped.append(request.url)
                raise IgnoreRequest("not this time")

    class Visits(Follower):
        async def start(self) -> Any:
            for _ in range(3):
                yield Request(lab.main / "page", dont_filter=True)

        def parse(self, response: Any) -> Any:
            yield {"url": response.url}

    lab.main.otherwise = page("any")
    result = await lab.crawl(Visits, {"DOWNLOADER_MIDDLEWARES": {DropsFirst: 100}})
    result.assert_exhausted()
    assert len(result.items) == 2


async def test_visit_that_waits_behind_a_request_that_was_lost(lab: Lab) -> None:
    """A stored visit is made although the request before it lived in memory only."""

    class Visits(Follower):
        def parse(self, response: Any) -> Any:
            if response.url.endswith("/seed"):
                yield Request(lab.main / "page", callback=lambda response: None)
                yield Request(lab.main / "page", self.parse_page, dont_filter=True)
                raise CloseSpider("for_now")

        def parse_page(self, response: Any) -> Any:
            yield {"url": response.url}

    lab.main.otherwise = page("any")
    stopped = await lab.crawl(Visits, {"CONCURRENT_REQUESTS": 1}, seeds=[lab.main / "seed"])
    stopped.assert_sound()
    assert stopped.log.hits_by_path() == {"/seed": 1}
    resumed = await lab.crawl(Visits, seeds=[lab.main / "seed"])
    resumed.assert_exhausted()
    assert resumed.items == [{"url": lab.main / "page"}]


async def test_a_waiver_lets_in_what_was_excluded_before(lab: Lab) -> None:
    """`allow_offsite` on a later request is a wish for this URL, as in plain Scrapy."""
    away = lab.server.origin("away", "127.0.0.2")

    class Waives(Follower):
        allowed_domains = ["127.0.0.1"]

        def parse(self, response: Any) -> Any:
            if response.url == lab.main / "":
                yield Request(f"{away.url}/x")
                yield Request(f"{away.url}/x", meta={"allow_offsite": True})
                yield Request(f"{away.url}/y")
                yield Request(f"{away.url}/y", dont_filter=True)

    lab.main.otherwise = away.otherwise = page("any")
    result = await lab.crawl(Waives, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path(away.url) == {"/x": 1, "/y": 1}


# Hops


async def test_visit_that_redirects_to_a_known_page(lab: Lab) -> None:
    """The wish of `dont_filter` goes with the redirect, as in plain Scrapy."""

    class Visits(Follower):
        def parse(self, response: Any) -> Any:
            if response.url.endswith("/start"):
                yield Request(lab.main / "home")
            elif len(lab.server.log) == 2:
                yield Request(lab.main / "login", dont_filter=True)

    lab.main.on("/login", redirect("/home"))
    lab.main.otherwise = page("any")
    result = await lab.crawl(Visits, seeds=[lab.main / "start"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/start": 1, "/home": 2, "/login": 1}
    assert result.fate(lab.main / "home").attempts == 2


async def test_retry_at_another_url(lab: Lab) -> None:
    """A retry that goes elsewhere is another identity: the ledger never says a URL was asked that was not."""

    class Mirror:
        @classmethod
        def from_crawler(cls, crawler: Any) -> Any:
            self = cls()
            self.crawler = crawler
            return self

        def process_response(self, request: Request, response: Response) -> Any:
            if response.status == 503 and request.url.endswith("/page"):
                other = request.replace(url=lab.main / "mirror")
                return get_retry_request(other, spider=self.crawler.spider, reason="mirror")
            return response

    lab.main.on("/page", Answer(status=503))
    lab.main.on("/mirror", page("mirror"))
    settings = {"DOWNLOADER_MIDDLEWARES": {Mirror: 600}}
    result = await lab.crawl(settings=settings, seeds=[lab.main / "page"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/page": 1, "/mirror": 1}
    assert result.fate(lab.main / "mirror").end == "succeeded"
    assert result.fate(lab.main / "page").state == "terminal"


async def test_redirect_that_asks_for_something_impossible(lab: Lab) -> None:
    """A Location without a fetch key is a named rejection, and the page has its end."""
    lab.main.on("/a", redirect("http://127.0.0.1:99999/"))
    lab.main.on("/b", redirect("mailto:a@b.c"))
    lab.main.on("/c", redirect("http://user:word@127.0.0.1/"))
    seeds = [lab.main / name for name in "abc"]
    result = await lab.crawl(seeds=seeds)
    result.assert_exhausted()
    assert len(result.log) == 3
    assert set(result.coverage.references.rejected) == {
        "port.malformed",
        "scheme.unsupported",
        "userinfo",
    }
    assert all(result.fate(url).state == "terminal" for url in seeds)


# Ends


@pytest.mark.parametrize(
    ("settings", "stop"),
    [
        ({"CLOSESPIDER_PAGECOUNT": 3}, "budget:pages"),
        ({"CLOSESPIDER_ITEMCOUNT": 3}, "budget:items"),
        ({"CLOSESPIDER_ERRORCOUNT": 1}, "budget:errors"),
        ({"CLOSESPIDER_TIMEOUT": 0.3}, "deadline"),
    ],
)
async def test_stop_reasons(lab: Lab, settings: dict[str, Any], stop: str) -> None:
    """A run that a budget or a deadline has stopped says so, and goes on when it is resumed."""

    class Items(Follower):
        def parse(self, response: Any) -> Any:
            yield from response.follow_all(css="a")
            yield {"url": response.url}
            if "CLOSESPIDER_ERRORCOUNT" in settings and response.url.endswith("/3"):
                raise RuntimeError("an error")

    lab.main.on("/", page("", [f"/{number}" for number in range(40)]))
    lab.main.otherwise = Answer("slow", delay_s=0.05)
    one = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    stopped = await lab.crawl(Items, {**one, **settings}, seeds=[lab.main / ""])
    stopped.assert_sound()
    assert (stopped.coverage.run.state, stopped.coverage.stop.reason) == ("stopped", stop)
    resumed = await lab.crawl(Items, {"CONCURRENT_REQUESTS_PER_DOMAIN": 8}, seeds=[lab.main / ""])
    resumed.assert_exhausted()
    assert set(resumed.log.hits_by_path().values()) == {1}
    assert len(resumed.log) == 41


async def test_a_finished_run_is_not_resumed(lab: Lab) -> None:
    """The same name after the end is a new run: every page is fetched again."""
    lab.main.on("/", page("", ["/a"]))
    lab.main.on("/a", page("a"))
    first = await lab.crawl(seeds=[lab.main / ""])
    second = await lab.crawl(seeds=[lab.main / ""])
    second.assert_sound()
    assert second.run_id == first.run_id + 1
    assert second.log.hits_by_path() == {"/": 2, "/a": 2}


async def test_runs_without_a_name(lab: Lab) -> None:
    """Every crawl is a new run; with JOBDIR an unfinished one is resumed."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            yield from response.follow_all(css="a")
            raise CloseSpider("for_now")

    lab.main.on("/", page("", ["/a"]))
    lab.main.on("/a", page("a"))
    unnamed = {"FRONTIER_RUN": None}
    stopped = await lab.crawl(Stops, unnamed, seeds=[lab.main / ""])
    again = await lab.crawl(Stops, unnamed, seeds=[lab.main / ""])
    assert again.run_id == stopped.run_id + 1
    job = {**unnamed, "JOBDIR": str(lab.folder / "job")}
    first = await lab.crawl(Stops, job, seeds=[lab.main / ""])
    second = await lab.crawl(Follower, job, seeds=[lab.main / ""])
    assert second.run_id == first.run_id == 3
    assert second.coverage.run.state == "finished"


async def test_two_jobs_in_one_store(lab: Lab) -> None:
    """Each JOBDIR has its own run, also where FRONTIER_STORE puts them into one store."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            yield from response.follow_all(css="a")
            raise CloseSpider("for_now")

    lab.main.on("/", page("", ["/a"]))
    lab.main.on("/a", page("a"))
    runs = []
    for name in ("one", "two", "one", "two"):
        job = {"FRONTIER_RUN": None, "JOBDIR": str(lab.folder / name)}
        result = await lab.crawl(Stops, job, seeds=[lab.main / ""])
        runs.append(result.run_id)
    assert runs == [1, 2, 1, 2]


# Several at once, none limited, nothing at all


@needs_two_writers
async def test_two_crawls_in_one_process(lab: Lab) -> None:
    """Two spiders share a process and a store, each with its own run and frontier."""
    lab.main.on("/", page("", [f"/{number}" for number in range(20)]))
    lab.main.otherwise = Answer("slow", delay_s=0.01)
    first, second = await gatherResults(
        ensureDeferred(lab.crawl(settings={"FRONTIER_RUN": run}, seeds=[lab.main / ""]))
        for run in ("one", "two")
    )
    assert all(hits == 2 for hits in lab.server.log.hits_by_path().values())
    assert {first.reason, second.reason} == {"finished"}
    assert first.assert_reconciled().rows("SELECT state FROM run") == [("finished",)] * 2


async def test_no_limit_at_all(lab: Lab) -> None:
    """CONCURRENT_REQUESTS = 0 means no limit; each origin's own is kept."""
    lab.main.on("/", page("", [f"/{number}" for number in range(20)]))
    lab.main.otherwise = Answer("slow", delay_s=0.02)
    settings = {"CONCURRENT_REQUESTS": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 5}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.max_simultaneous(lab.main.url) == 5


async def test_nothing_to_crawl(lab: Lab) -> None:
    """A spider without seeds ends at once, with an account of nothing."""
    result = await lab.crawl(seeds=[])
    result.assert_exhausted()
    assert result.coverage.identities.discovered == 0


async def test_store_in_memory(lab: Lab) -> None:
    """`sqlite://` keeps the ledger in memory: a crawl for once, with the same promises."""
    lab.main.on("/", page("", [f"/{number}" for number in range(20)]))
    lab.main.otherwise = page("any")
    result = await lab.crawl(settings={"FRONTIER_STORE": "sqlite://"}, seeds=[lab.main / ""])
    assert result.reason == "finished"
    assert len(result.log) == 21
    assert result.stats["frontier/refused"] == 0


async def test_windows_smaller_than_the_crawl(lab: Lab) -> None:
    """With a window of a few URLs and origins, what waits in the store takes its turn."""
    origins = [lab.server.origin(f"o{number}") for number in range(8)]
    links = [f"{origin.url}/{number}" for origin in origins for number in range(12)]
    lab.main.on("/", page("", links))
    for origin in origins:
        origin.otherwise = page("any", [lab.main / ""])
    settings = {"FRONTIER_WINDOW": 10, "FRONTIER_HOT_ORIGINS": 2, "FRONTIER_KNOWN_URLS": 4}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log) == 97


async def test_priorities_across_a_small_window(lab: Lab) -> None:
    """The order of an origin is by priority, also where most of it waits in the store."""

    class Ranked(Follower):
        def parse(self, response: Any) -> Any:
            if response.url.endswith("/"):
                for number in range(40):
                    url = f"{lab.main.url}/{number}"
                    yield Request(url, self.parse_page, priority=1 + number % 9)

        def parse_page(self, response: Any) -> Any:
            yield {"priority": response.request.priority}

    lab.main.otherwise = page("any")
    settings = {"FRONTIER_WINDOW": 8, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Ranked, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    fetched = [item["priority"] for item in result.items]
    assert len(fetched) == 40
    assert fetched[2:] == sorted(fetched[2:], reverse=True)
