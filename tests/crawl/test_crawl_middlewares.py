"""Whatever a component makes of a request, ledger and server agree, and the crawl ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crawls import Lab
from scrapy import Request, Spider, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

from scrapy_frontier.testing import Answer, page, redirect


def answering(method: str, function: Callable[..., Any]) -> type:
    """A downloader middleware class with this one method."""
    return type("Answering", (), {method: staticmethod(function)})


def with_middleware(middleware: type, order: int = 100) -> dict[str, Any]:
    return {"DOWNLOADER_MIDDLEWARES": {middleware: order}}


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
