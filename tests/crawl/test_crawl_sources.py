"""Everything that issues a request is seen: ledger and server agree, and the crawl ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crawls import Follower, Lab
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

from scrapy_frontier.testing import Answer, page, redirect, text

GATE_OF_ONE = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}


def answering(method: str, function: Callable[..., Any]) -> type:
    """A downloader middleware class with this one method."""
    return type("Answering", (), {method: staticmethod(function)})


def with_middleware(middleware: type, order: int = 100) -> dict[str, Any]:
    return {"DOWNLOADER_MIDDLEWARES": {middleware: order}}


# Redirects


async def test_redirect_chain(lab: Lab) -> None:
    """Each hop is an identity that ends as redirected; the last one succeeds."""
    lab.main.on("/a", redirect("/b", 301))
    lab.main.on("/b", redirect("/c", 302))
    lab.main.on("/c", page("end"))
    result = await lab.crawl(seeds=[lab.main / "a"])
    result.assert_exhausted()
    ends = [result.fate(lab.main / path).end for path in "abc"]
    assert ends == ["redirected", "redirected", "succeeded"]
    assert result.coverage.redirects.hops == 2
    assert result.coverage.references.by_kind["redirect"].total == 2


async def test_redirect_to_a_known_page(lab: Lab) -> None:
    """A hop to a page that was seen is a duplicate; the page that redirected has its end all the same."""
    lab.main.on("/", page("", ["/old", "/new"]))
    lab.main.on("/old", redirect("/new"))
    lab.main.on("/new", page("new"))
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/old": 1, "/new": 1}
    assert result.fate(lab.main / "old").end == "redirected"


async def test_redirect_loop(lab: Lab) -> None:
    """A circle of redirects ends at once: each of its pages is known after one turn."""
    lab.main.on("/a", redirect("/b"))
    lab.main.on("/b", redirect("/a"))
    result = await lab.crawl(seeds=[lab.main / "a"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/a": 1, "/b": 1}
    assert result.ends() == {"redirected": 2}


async def test_redirect_to_itself(lab: Lab) -> None:
    """A page that redirects to itself, to set a cookie say, is asked again, and not for ever."""
    lab.main.on("/once", [redirect("/once"), page("in")])
    lab.main.on("/ever", redirect("/ever"))
    seeds = [lab.main / "once", lab.main / "ever"]
    result = await lab.crawl(settings={"REDIRECT_MAX_TIMES": 3}, seeds=seeds)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/once": 2, "/ever": 4}
    assert result.fate(lab.main / "once").end == "succeeded"
    assert result.fate(lab.main / "ever").state == "terminal"


async def test_redirect_out_of_the_scope(lab: Lab) -> None:
    """A hop is judged like a link: what the scope excludes is not asked for."""
    other = lab.server.origin("other", "127.0.0.2")
    lab.main.on("/", redirect(f"{other.url}/away"))
    result = await lab.crawl(
        settings={"FRONTIER_SCOPE": {"include": [lab.main.url]}}, seeds=[lab.main / ""]
    )
    result.assert_exhausted()
    assert result.log.of(other.url) == []
    assert result.fate(f"{other.url}/away").reason == "scope.origin"
    assert result.fate(lab.main / "").end == "redirected"


async def test_redirect_of_a_post(lab: Lab) -> None:
    """A 303 after a POST is a GET; the two are two identities."""

    class Posts(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "form", method="POST", body=b"a=1")

    lab.main.on("/form", redirect("/thanks", 303))
    lab.main.on("/thanks", page("thanks"))
    result = await lab.crawl(Posts)
    result.assert_exhausted()
    assert result.fate(f"POST {lab.main / 'form'}").end == "redirected"
    assert result.fate(lab.main / "thanks").end == "succeeded"


async def test_meta_refresh(lab: Lab) -> None:
    """A refresh in the page is a redirect, whatever its status."""
    lab.main.on("/", Answer('<meta http-equiv="refresh" content="0;url=/next">'))
    lab.main.on("/next", page("next"))
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/next": 1}
    assert result.fate(lab.main / "").end == "redirected"


async def test_redirect_that_a_spider_takes_itself(lab: Lab) -> None:
    """`handle_httpstatus_list` and `dont_redirect` keep their meaning: the callback gets the response."""

    class Takes(Follower):
        handle_httpstatus_list = [302]

        def parse(self, response: Any) -> Any:
            yield {"status": response.status}

    lab.main.on("/", redirect("/next"))
    result = await lab.crawl(Takes, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"status": 302}]
    assert result.log.hits_by_path() == {"/": 1}


# Retries


async def test_retries_are_attempts_of_one_identity(lab: Lab) -> None:
    """Failures and bad answers are tried again and counted; the identity ends once."""
    lab.main.on("/weak", [Answer(status=503), Answer(status=500), page("well")])
    lab.main.on("/dead", Answer(status=502))
    seeds = [lab.main / "weak", lab.main / "dead"]
    result = await lab.crawl(seeds=seeds)
    result.assert_exhausted()
    weak, dead = result.fate(seeds[0]), result.fate(seeds[1])
    assert (weak.end, weak.attempts) == ("succeeded", 3)
    assert (dead.end, dead.attempts) == ("http_error", 3)
    assert result.coverage.attempts.retries == 4
    assert result.coverage.identities.discovered == 2


async def test_download_failures_are_retried_and_given_up(lab: Lab) -> None:
    """What never brings a response ends as failed, with its attempts."""
    lab.main.on("/late", Answer(fault="stall"))
    result = await lab.crawl(
        settings={"DOWNLOAD_TIMEOUT": 0.2, "RETRY_TIMES": 1}, seeds=[lab.main / "late"]
    )
    result.assert_exhausted()
    late = result.fate(lab.main / "late")
    assert (late.end, late.reason, late.attempts) == ("failed", "download.timeout", 2)
    assert [letter.url for letter in result.coverage.deadletters] == [lab.main / "late"]


async def test_retry_from_a_callback(lab: Lab) -> None:
    """`get_retry_request` in a callback makes a further attempt of the same identity."""

    class Insists(Follower):
        def parse(self, response: Any) -> Any:
            if b"not yet" in response.body:
                yield get_retry_request(response.request, spider=self, reason="not yet")
            else:
                yield {"body": response.text}

    lab.main.on("/", [text("not yet"), text("not yet"), text("now")])
    result = await lab.crawl(Insists, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"body": "now"}]
    assert result.fate(lab.main / "").attempts == 3
    assert result.coverage.identities.discovered == 1


async def test_retry_settings_keep_their_meaning(lab: Lab) -> None:
    """`dont_retry` and `max_retry_times` of a request go before the settings."""

    class Wishes(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "never", meta={"dont_retry": True})
            yield Request(lab.main / "once", meta={"max_retry_times": 1})

    lab.main.otherwise = Answer(status=503)
    result = await lab.crawl(Wishes)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/never": 1, "/once": 2}


# Middlewares


async def test_middleware_answers_with_another_request(lab: Lab) -> None:
    """A request in the place of a request: the first has an end, the second is an identity of its own."""

    def process_request(request: Request) -> Any:
        if request.url.endswith("/a"):
            return request.replace(url=lab.main / "b")
        return None

    lab.main.otherwise = page("any")
    settings = with_middleware(answering("process_request", process_request))
    result = await lab.crawl(settings=settings, seeds=[lab.main / "a"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/b": 1}
    assert result.fate(lab.main / "a").state == "terminal"
    assert result.fate(lab.main / "b").end == "succeeded"


async def test_middleware_answers_a_response_with_a_request(lab: Lab) -> None:
    """A login page, say: the answer is dropped and another URL is asked."""

    def process_response(request: Request, response: Response) -> Any:
        if request.url.endswith("/a"):
            return Request(lab.main / "login")
        return response

    lab.main.otherwise = page("any")
    settings = with_middleware(answering("process_response", process_response))
    result = await lab.crawl(settings=settings, seeds=[lab.main / "a"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/a": 1, "/login": 1}
    assert result.fate(lab.main / "a").state == "terminal"
    assert result.fate(lab.main / "login").end == "succeeded"


async def test_middleware_answers_an_exception_with_a_request(lab: Lab) -> None:
    """A mirror, say: what failed has ended as failed, the mirror is an identity of its own."""

    def process_exception(request: Request, exception: Exception) -> Any:
        return Request(lab.main / "mirror") if request.url.endswith("/a") else None

    lab.main.on("/a", Answer(fault="close"))
    lab.main.on("/mirror", page("mirror"))
    settings = {
        "RETRY_ENABLED": False,
        **with_middleware(answering("process_exception", process_exception)),
    }
    result = await lab.crawl(settings=settings, seeds=[lab.main / "a"])
    result.assert_exhausted()
    assert result.fate(lab.main / "a").end == "failed"
    assert result.fate(lab.main / "mirror").end == "succeeded"


async def test_middleware_answers_without_the_wire(lab: Lab) -> None:
    """A response from a middleware is captured like any other, and costs no politeness."""

    def process_request(request: Request) -> Any:
        if "/made" in request.url:
            return HtmlResponse(request.url, body=b"<a href='/real'>r</a>", request=request)
        return None

    lab.main.otherwise = page("real")
    settings = {
        "DOWNLOAD_DELAY": 0.5,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        **with_middleware(answering("process_request", process_request)),
    }
    seeds = [f"{lab.main.url}/made{number}" for number in range(8)]
    result = await lab.crawl(settings=settings, seeds=seeds)
    result.assert_sound()
    assert result.coverage.stop.reason == "exhausted"
    assert result.log.hits_by_path() == {"/real": 1}
    assert result.ends() == {"succeeded": 9}
    assert result.stats["elapsed_time_seconds"] < 2


@pytest.mark.parametrize(
    ("method", "end", "hits"),
    [("process_request", "suppressed", 1), ("process_response", "failed", 2)],
)
async def test_middleware_drops_a_request_or_a_response(
    lab: Lab, method: str, end: str, hits: int
) -> None:
    """`IgnoreRequest` is an end with a reason: an exclusion before the wire, a failure after it."""

    def process_request(request: Request) -> None:
        if request.url.endswith("/bad"):
            raise IgnoreRequest("not this one")

    def process_response(request: Request, response: Response) -> Response:
        process_request(request)
        return response

    function = process_request if method == "process_request" else process_response
    lab.main.on("/", page("", ["/bad"]))
    lab.main.on("/bad", page("bad"))
    settings = with_middleware(answering(method, function))
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log) == hits
    assert result.fate(lab.main / "bad").end == end
    assert "ignored" in result.fate(lab.main / "bad").reason


async def test_middleware_that_breaks(lab: Lab) -> None:
    """An exception of a component is the failure of its request, and the crawl goes on."""

    def process_response(request: Request, response: Response) -> Response:
        if request.url.endswith("/bad"):
            raise ZeroDivisionError("a mistake")
        return response

    lab.main.on("/", page("", ["/bad", "/good"]))
    lab.main.otherwise = page("any")
    settings = with_middleware(answering("process_response", process_response))
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.fate(lab.main / "bad").end == "failed"
    assert result.fate(lab.main / "good").end == "succeeded"


async def test_component_drops_a_request_before_the_scheduler(lab: Lab) -> None:
    """A handler of `request_scheduled` may drop any request; a redirect so dropped has ended."""

    def drop(request: Request, spider: Spider) -> None:
        if "drop" in request.url:
            raise IgnoreRequest("not scheduled")

    lab.main.on("/", page("", ["/drop1", "/moved", "/kept"]))
    lab.main.on("/moved", redirect("/drop2"))
    lab.main.otherwise = page("any")
    result = await lab.crawl(
        before=lambda crawler: crawler.signals.connect(drop, signals.request_scheduled, weak=False),
        seeds=[lab.main / ""],
    )
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/moved": 1, "/kept": 1}
    assert result.fate(lab.main / "moved").state == "terminal"


async def test_http_cache(lab: Lab) -> None:
    """Pages from the cache are accounted for, and no origin is charged for them."""
    lab.main.on("/", page("", [f"/{number}" for number in range(10)]))
    lab.main.otherwise = page("any")
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(lab.folder / "cache")}
    first = await lab.crawl(settings=cache, seeds=[lab.main / ""])
    first.assert_exhausted()
    settings = {**cache, "DOWNLOAD_DELAY": 0.5, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    second = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    second.assert_sound()
    assert second.coverage.stop.reason == "exhausted"
    assert second.ends() == {"succeeded": 11}
    assert len(second.log) == 11
    assert second.stats["elapsed_time_seconds"] < 2


# Past the scheduler


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
                try:
                    await self.crawler.engine.download_async(Request(lab.main / path))
                except Exception as error:
                    yield {"error": type(error).__name__}

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
