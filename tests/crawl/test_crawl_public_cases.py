"""Faults that users of Scrapy and its neighbours have reported, by their numbers in tests/data/cases.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawls import Follower, Lab
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.linkextractors import LinkExtractor as ScrapysLinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.linkextractors import LinkExtractor
from scrapy_frontier.testing import Answer, page, redirect, text

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
}


class Yielder(Spider):
    """Fetches `/seed` and then, from its callback, each of `urls` in turn."""

    name = "yielder"

    def __init__(self, seed: str, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [seed]
        self.urls = urls

    def parse(self, response: Any) -> Any:
        for url in self.urls:
            yield Request(url, self.parse_page)

    def parse_page(self, response: Any) -> Any:
        yield {"url": response.url, "slot": response.meta.get("download_slot")}


class HomeSpider(CrawlSpider):
    """The spider of FC49."""

    name = "home"
    rules = (Rule(ScrapysLinkExtractor(), follow=True),)

    def __init__(self, seed: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [seed]


def table_of(case_id: str, part: str) -> dict[str, str]:
    table: dict[str, str] = CASES[case_id]["input"][part]
    return table


@pytest.mark.parametrize("starts_there", [True, False], ids=["start", "callback"])
async def test_FC16_a_retry_does_not_let_the_redirect_after_it_pass(
    lab: Lab, starts_there: bool
) -> None:
    """What a retry needs to pass a duplicate filter is no wish of the spider's (scrapy#6895)."""
    lab.main.on("/sbn", page("sbn"))
    lab.main.on("/sbn/", redirect("/bn", 307))
    lab.main.on("/bn", [Answer(status=503), redirect("/sbn", 307)])
    lab.main.on("/seed", page("seed"))
    urls = [lab.main / "sbn", lab.main / "sbn/"]
    if starts_there:
        result = await lab.crawl(Follower, seeds=urls)
    else:
        result = await lab.crawl(Yielder, seed=lab.main / "seed", urls=urls)
    result.assert_exhausted()
    assert result.log.hits_by_path()["/sbn"] == 1
    assert result.log.hits_by_path()["/bn"] == 2
    assert result.fate(lab.main / "bn").end == "redirected"


@pytest.mark.parametrize(
    ("start", "location", "target"),
    [
        ("/dir/i.html", "a//b", "/dir/a//b"),
        ("/dir/i.html", "..//x", "//x"),
        ("/r/y", "http%3A//h/x", "/r/http%3A//h/x"),
    ],
)
async def test_FC20_a_redirect_keeps_empty_path_segments(
    lab: Lab, start: str, location: str, target: str
) -> None:
    """A Location is resolved as RFC 3986, section 5.2.4, says: an empty segment is a segment."""
    lab.main.on(start, redirect(location))
    lab.main.otherwise = page("target")
    result = await lab.crawl(Follower, seeds=[lab.main / start])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {start: 1, target: 1}


async def test_FC49_a_start_page_that_links_to_itself_is_fetched_once(lab: Lab) -> None:
    """A start request is in the ledger like any other (scrapy#4067)."""
    lab.main.on("/home", page("Home", ["/home", "/home#idx1"]))
    result = await lab.crawl(HomeSpider, seed=lab.main / "home")
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/home": 1}


async def test_FC50_a_link_that_cannot_be_requested_does_not_end_the_callback(lab: Lab) -> None:
    """One bad link costs only itself, and is reported by name (scrapy#4744)."""

    class Hrefs(Follower):
        def parse(self, response: Any) -> Any:
            for href in response.css("a::attr(href)").getall():
                yield response.follow(href)

    lab.main.on("/", page("", ["/1", "javascript:void(0)", "tel:+1", "mailto:a@b.c", "/2"]))
    lab.main.on("/1", page("1"))
    lab.main.on("/2", page("2"))
    result = await lab.crawl(Hrefs, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/1": 1, "/2": 1}
    assert result.failed == []
    assert result.coverage.references.rejected == {"scheme.unsupported": 3}


def follow(response: Any) -> Iterator[Any]:
    for link in response.css("a"):
        yield response.follow(link)


def follow_all(response: Any) -> Any:
    return response.follow_all(css="a")


def extract(response: Any) -> Iterator[Any]:
    for link in LinkExtractor().extract_links(response):
        yield Request(link.url)


ways_to_follow = pytest.mark.parametrize("way", [follow, follow_all, extract])


@ways_to_follow
async def test_FC52_a_query_character_that_the_encoding_cannot_hold(lab: Lab, way: Any) -> None:
    """It is written as the WHATWG standard says, and the link is followed (scrapy#1403)."""

    class Links(Follower):
        def parse(self, response: Any) -> Any:
            return way(response)

    body = CASES["FC52"]["input"]["page"].partition(": ")[2]
    lab.main.on("/", Answer(body, content_type="text/html; charset=windows-1251"))
    result = await lab.crawl(Links, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/list?q=%26%239829%3B&p=2": 1, "/ok": 1}


@ways_to_follow
async def test_FC54_blanks_and_newlines_in_a_link(lab: Lab, way: Any) -> None:
    """Blanks around a reference and newlines within it are no part of it (scrapy#1614)."""

    class Links(Follower):
        def parse(self, response: Any) -> Any:
            return way(response)

    hrefs = [
        href.replace("\\n", "\n").replace("http://example.org", lab.main.url)
        for href in table_of("FC54", "hrefs")
    ]
    split = lab.main.url[:9] + "\n" + lab.main.url[9:] + "/a"
    lab.main.on("/", page("", [*hrefs[:2], split]))
    lab.main.on("/a", page("a"))
    result = await lab.crawl(Links, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/a": 1}


class OneSitemap(SitemapSpider):
    """Crawls what one sitemap lists."""

    name = "sitemap"

    def __init__(self, sitemap: str, **kwargs: Any) -> None:
        self.sitemap_urls = [sitemap]
        super().__init__(**kwargs)

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}


async def test_FC55_one_odd_entry_does_not_spoil_a_sitemap(lab: Lab) -> None:
    """Each entry stands for itself; the one that cannot be requested is reported (scrapy#965)."""
    port = lab.main.port
    entries = [
        entry.replace(":P/", f":{port}/").replace("A/", lab.main.url + "/")
        for entry in CASES["FC55"]["input"]["sitemap_locs"]
    ]
    locs = "".join(f"<url><loc>{entry}</loc></url>" for entry in entries)
    lab.main.on(
        "/sitemap.xml",
        Answer(
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>',
            content_type="application/xml",
        ),
    )
    lab.main.otherwise = page("listed")
    result = await lab.crawl(OneSitemap, sitemap=lab.main / "sitemap.xml")
    result.assert_exhausted()
    assert sorted(result.log.hits_by_path()) == ["/s1", "/s2", "/s3", "/s5", "/sitemap.xml"]
    assert result.coverage.references.rejected == {"port.malformed": 1}
    rejected = result.coverage.rejected[0]
    assert (rejected.kind, rejected.page) == ("sitemap", lab.main / "sitemap.xml")
    assert result.coverage.references.by_kind["sitemap"].total == 5


async def test_FC59_requests_with_lambda_callbacks_are_not_seen_for_good(lab: Lab) -> None:
    """What lived in memory only is named after a clean stop, and taken again when it comes again."""

    class Lambdas(Follower):
        def parse(self, response: Any) -> Any:
            for number in range(40):
                yield Request(f"{lab.main.url}/{number}", callback=lambda r: stop_after(r))

    def stop_after(response: Any) -> None:
        if is_first and len(lab.server.log) >= 15:
            raise CloseSpider("enough")

    lab.main.on("/seed", page("seed"))
    lab.main.otherwise = page("one")
    is_first = True
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 2}
    stopped = await lab.crawl(Lambdas, settings, seeds=[lab.main / "seed"])
    assert stopped.coverage.run.state == "stopped"
    assert stopped.coverage.unserialisable[0].count == 40
    fetched = len(lab.server.log) - 1
    assert 14 <= fetched < 40

    is_first = False
    resumed = await lab.crawl(Lambdas, settings, seeds=[lab.main / "seed"])
    resumed.assert_exhausted()
    assert resumed.coverage.identities.deferred == {"request.unserialisable": 40 - fetched}

    visits = await lab.crawl(
        Lambdas, {**settings, "FRONTIER_RUN": "another"}, seeds=[lab.main / "seed"]
    )
    assert visits.coverage.identities.deferred == {}
    assert set(visits.log.hits_by_path()) == {"/seed", *(f"/{number}" for number in range(40))}


async def test_FC60_a_url_that_failed_is_fetched_by_the_next_run(lab: Lab) -> None:
    """What failed is not done: a further crawl of the same job has it again (scrapy-redis#177)."""
    lab.main.on("/seed", page("seed", ["/p0", "/p1", "/p2"]))
    lab.main.on("/p*", Answer(status=503))
    job = {"JOBDIR": str(lab.folder / "job"), "FRONTIER_STORE": None, "FRONTIER_RUN": None}
    job["FRONTIER_STORE"] = f"sqlite:///{lab.folder / 'job' / 'frontier.db'}"
    failed = await lab.crawl(Follower, {**job, "RETRY_TIMES": 1}, seeds=[lab.main / "seed"])
    failed.assert_exhausted()
    assert failed.ends() == {"succeeded": 1, "http_error": 3}
    lab.main.on("/p*", page("well again"))
    again = await lab.crawl(Follower, job, seeds=[lab.main / "seed"])
    again.assert_sound()
    assert again.ends() == {"succeeded": 4}


async def test_FC62_a_high_priority_request_goes_next(lab: Lab) -> None:
    """Nothing that waits stands before a more urgent request (scrapy#1371)."""

    class Urgent(Follower):
        async def start(self) -> Any:
            for number in range(10):
                yield Request(f"{lab.main.url}/low{number}", self.parse_low)

        def parse_low(self, response: Any) -> Any:
            if response.url.endswith("/low0"):
                yield Request(lab.main / "HIGH", priority=1000, callback=self.parse)

    lab.main.otherwise = Answer("slow", delay_s=0.03)
    settings = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await lab.crawl(Urgent, settings)
    result.assert_exhausted()
    order = [hit.path for hit in result.log]
    assert order.index("/HIGH") <= 2
    assert len(order) == 11


async def test_FC63_a_slow_origin_does_not_hold_up_another(lab: Lab) -> None:
    """An origin that keeps an interval takes no place of one that keeps none (scrapy#7293)."""
    other = lab.server.origin("other", "127.0.0.2")

    class Both(Follower):
        async def start(self) -> Any:
            for number in range(30):
                yield Request(f"{lab.main.url}/{number}", priority=1)
                if number < 10:
                    yield Request(f"{other.url}/{number}")

        def parse(self, response: Any) -> Any:
            if len(lab.server.log.of(other.url)) == 10:
                raise CloseSpider("enough")

    lab.main.otherwise = other.otherwise = page("one")
    settings = {
        "CONCURRENT_REQUESTS": 8,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.5}},
    }
    result = await lab.crawl(Both, settings)
    result.assert_sound()
    last_of_other = max(hit.arrived_at for hit in result.log.of(other.url))
    assert last_of_other - result.log.hits[0].arrived_at < 1
    assert len(result.log.of(other.url)) == 10


async def test_FC64_the_limit_per_origin_is_kept(lab: Lab) -> None:
    """CONCURRENT_REQUESTS_PER_DOMAIN = 1 means one at a time (scrapy#3693)."""
    lab.main.on("/seed", page("seed", [f"/{number}" for number in range(20)]))
    lab.main.otherwise = Answer("slow", delay_s=0.02)
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "CONCURRENT_REQUESTS": 16}
    result = await lab.crawl(Follower, settings, seeds=[lab.main / "seed"])
    result.assert_exhausted()
    assert len(result.log) == 21
    assert result.log.max_simultaneous(lab.main.url) == 1


async def test_FC65_a_redirected_request_belongs_to_its_new_host(lab: Lab) -> None:
    """Limit and slot are those of the host that is asked, not of the one that redirected (scrapy#2141)."""
    other = lab.server.origin("other", "127.0.0.2")
    for number in range(8):
        lab.main.on(f"/r{number}", redirect(f"{other.url}/r{number}"))
    lab.main.on("/seed", page("seed"))
    other.otherwise = Answer("slow", delay_s=0.02)
    urls = [f"{lab.main.url}/r{number}" for number in range(8)]
    urls += [f"{other.url}/d{number}" for number in range(8)]
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 2}
    result = await lab.crawl(Yielder, settings, seed=lab.main / "seed", urls=urls)
    result.assert_exhausted()
    assert len(result.items) == 16
    assert {item["slot"] for item in result.items} == {"127.0.0.2"}
    assert result.log.max_simultaneous(other.url) <= 2


async def test_FC65_a_slot_that_the_user_set_stays(lab: Lab) -> None:
    """`download_slot` of the spider's own goes with its request and makes one queue of its own."""
    lab.main.on("/r", redirect("/t"))
    lab.main.on("/t", page("t"))

    class Slotted(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "r", meta={"download_slot": "mine"})

        def parse(self, response: Any) -> Any:
            yield {"slot": response.meta["download_slot"]}

    result = await lab.crawl(Slotted)
    result.assert_exhausted()
    assert result.items == [{"slot": "mine"}]
    assert {origin.origin for origin in result.coverage.origins} == {f"{lab.main.url} (mine)"}


async def test_FC67_pending_requests_do_not_fill_the_memory(lab: Lab) -> None:
    """A page that yields very many requests waits for the writer, and the window keeps its bound."""
    yielded = 0
    furthest_ahead = 0
    largest_window = 0

    class Flood(Follower):
        def parse(self, response: Any) -> Any:
            nonlocal yielded, furthest_ahead, largest_window
            for number in range(4000):
                yielded += 1
                figures = frontier.statistics()
                furthest_ahead = max(furthest_ahead, figures["frontier/writer/pending"])
                largest_window = max(largest_window, figures["frontier/window"])
                yield Request(f"{lab.main.url}/{number}", self.parse_page)
            raise CloseSpider("enough")

        def parse_page(self, response: Any) -> None:
            """Nothing to do."""

    def before(crawler: Crawler) -> None:
        nonlocal frontier
        frontier = Frontier.of(crawler)

    frontier: Any = None
    lab.main.on("/seed", page("seed"))
    lab.main.otherwise = page("one")
    settings = {"FRONTIER_WINDOW": 200, "FRONTIER_MAX_QUEUE": 300, "CONCURRENT_REQUESTS": 2}
    result = await lab.crawl(Flood, settings, before=before, seeds=[lab.main / "seed"])
    result.assert_sound()
    assert yielded == 4000
    assert result.coverage.identities.discovered == 4001
    assert furthest_ahead <= 300 + 8 + 50
    assert largest_window <= 200


async def test_FC71_an_idle_handler_that_only_repeats_lets_the_spider_close(lab: Lab) -> None:
    """A known URL from `spider_idle` is a duplicate: the crawl ends (scrapy#2709)."""
    rounds = 0

    def on_idle(spider: Spider) -> None:
        nonlocal rounds
        rounds += 1
        url = lab.main / ("x" if rounds == 1 else "y")
        assert spider.crawler.engine is not None
        spider.crawler.engine.crawl(Request(url))

    lab.main.otherwise = page("one")
    result = await lab.crawl(
        Follower,
        before=lambda crawler: crawler.signals.connect(on_idle, signals.spider_idle, weak=False),
        patience_s=4,
        seeds=[lab.main / "x"],
    )
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/x": 1}
    assert rounds == 1


async def test_FC72_one_bad_start_url_does_not_cancel_the_rest(lab: Lab) -> None:
    """The others are fetched, and the bad one is reported (scrapy#4182)."""
    lab.main.otherwise = text("fine")
    seeds = [lab.main / "ok1", "http://127.0.0.1:99999/", lab.main / "ok2"]
    result = await lab.crawl(Follower, seeds=seeds)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/ok1": 1, "/ok2": 1}
    assert result.coverage.references.rejected == {"port.malformed": 1}
