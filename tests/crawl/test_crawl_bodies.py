"""Bodies that are not whole: half a page is no page (cases FC38, FC40 and FC41 of tests/data/cases.json)."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from crawls import Crawl, Lab
from scrapy import Request, Spider

from scrapy_frontier.testing import Answer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
ALLOWED = {"DOWNLOAD_FAIL_ON_DATALOSS": False}


class Getter(Spider):
    """Asks for `/page`, and tells what came of it."""

    name = "getter"

    def __init__(self, url: str, meta: Any = None, headers: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.request = Request(url, self.parse, errback=self.told, meta=meta, headers=headers)

    async def start(self) -> Any:
        yield self.request

    def parse(self, response: Any) -> Any:
        yield {"body": response.body, "flags": response.flags}

    def told(self, failure: Any) -> Any:
        yield {"error": type(failure.value).__name__}


async def get(lab: Lab, answer: Any, settings: dict[str, Any] | None = None, **more: Any) -> Crawl:
    lab.main.on("/page", answer)
    result = await lab.crawl(
        Getter, {"RETRY_TIMES": 1, **(settings or {})}, url=lab.main / "page", **more
    )
    return result.assert_finished()


SHORT = Answer("hello", content_length=100)
CHUNK = Answer(raw=HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
CONFLICT = Answer(raw=HEAD + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello")
RESET = Answer(raw=HEAD + b"\r\nhello", fault="reset")
CUT_GZIP = Answer(
    raw=HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 1000)[:-12]
)


@pytest.mark.parametrize(
    "answer", [SHORT, CHUNK, RESET, CUT_GZIP], ids=["short", "chunk", "reset", "gzip"]
)
async def test_FC38_FC40_a_body_that_is_cut_is_no_success(lab: Lab, answer: Answer) -> None:
    """It is tried again, then given up as lost data, and the errback is told (RFC 9112, sections 6.3 and 8)."""
    result = await get(lab, answer)
    fate = result.fate(lab.main / "page")
    assert (fate.end, fate.reason, fate.attempts) == ("failed", "download.truncated", 2)
    assert result.items == [{"error": "ResponseDataLossError"}]
    assert result.log.hits_by_path() == {"/page": 2}


@pytest.mark.parametrize(
    ("answer", "body"),
    [(SHORT, b"hello"), (CHUNK, b"hello"), (RESET, b"hello"), (CUT_GZIP, None)],
    ids=["short", "chunk", "reset", "gzip"],
)
async def test_FC38_FC40_where_half_is_enough_it_is_marked(
    lab: Lab, answer: Answer, body: bytes | None
) -> None:
    """`DOWNLOAD_FAIL_ON_DATALOSS = False`: what came goes to the callback, with the flag `dataloss`."""
    result = await get(lab, answer, ALLOWED)
    (item,) = result.items
    assert "dataloss" in item["flags"]
    assert body is None or item["body"] == body
    assert result.log.hits_by_path() == {"/page": 1}


@pytest.mark.parametrize("settings", [{}, ALLOWED])
async def test_FC38_lengths_that_differ_are_always_a_failure(
    lab: Lab, settings: dict[str, Any]
) -> None:
    result = await get(lab, CONFLICT, settings)
    assert result.fate(lab.main / "page").end == "failed"
    assert "error" in result.items[0]


async def test_FC40_a_body_without_a_length_may_end_by_closing(lab: Lab) -> None:
    """A clean close is how such a body ends (RFC 9112, section 6.3, item 8), with a whole gzip in it or none."""
    result = await get(lab, Answer(raw=HEAD + b"\r\nhello"))
    assert result.items == [{"body": b"hello", "flags": ["partial"]}]
    packed = HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello")
    lab.main.on("/packed", Answer(raw=packed))
    result = await lab.crawl(Getter, {"FRONTIER_RUN": "second"}, url=lab.main / "packed")
    assert result.items[0]["body"] == b"hello"


STALL = Answer("hello" * 20, fault="stall", sent="half")


async def test_FC41_a_timeout_in_mid_body_keeps_what_came_where_that_is_wished(lab: Lab) -> None:
    settings = {**ALLOWED, "DOWNLOAD_TIMEOUT": 0.5}
    result = await get(lab, STALL, settings)
    assert result.items == [{"body": b"hello" * 10, "flags": ["dataloss"]}]
    assert result.log.hits_by_path() == {"/page": 1}


async def test_FC41_a_timeout_in_mid_body_is_a_failure_else(lab: Lab) -> None:
    result = await get(lab, STALL, {"DOWNLOAD_TIMEOUT": 0.3})
    assert result.items == [{"error": "DownloadTimeoutError"}]
    fate = result.fate(lab.main / "page")
    assert (fate.reason, fate.attempts) == ("download.timeout", 2)


async def test_a_timeout_before_the_answer_is_one_whatever_is_wished(lab: Lab) -> None:
    settings = {**ALLOWED, "DOWNLOAD_TIMEOUT": 0.3}
    result = await get(lab, Answer(fault="stall"), settings)
    assert result.items == [{"error": "DownloadTimeoutError"}]


async def test_a_part_that_nobody_asked_for_is_not_the_page(lab: Lab) -> None:
    """206 answers a request with `Range`, and no other (RFC 9110, section 15.3.7)."""
    part = Answer("half", status=206, headers=[("Content-Range", "bytes 0-3/8")])
    result = await get(lab, [part, Answer("whole")])
    assert result.items[0]["body"] == b"whole"
    lab.main.on("/part", part)
    asked = await lab.crawl(
        Getter, {"FRONTIER_RUN": "2"}, url=lab.main / "part", headers={"Range": "bytes=0-3"}
    )
    assert asked.items[0]["body"] == b"half"
    lab.main.on("/never", part)
    never = await lab.crawl(Getter, {"FRONTIER_RUN": "3", "RETRY_TIMES": 1}, url=lab.main / "never")
    assert never.items == [{"error": "ResponseDataLossError"}]
    assert never.fate(lab.main / "never").reason == "http.206"
