"""HTTP/2: what is wrong with one response costs its neighbours nothing (case FC74 of tests/data/cases.json)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Lab
from h2_server import Http2Port
from scrapy import Request, Spider

from scrapy_frontier.testing.certificates import Authority

SETTINGS = {
    "DOWNLOAD_HANDLERS": {"https": "scrapy.core.downloader.handlers.http2.H2DownloadHandler"},
    "RETRY_TIMES": 1,
}
GOOD = ["/ok1", "/ok2", "/ok3"]


class Asker(Spider):
    """Asks for each URL, and yields what came of it."""

    name = "asker"

    def __init__(self, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls

    async def start(self) -> Any:
        for url in self.urls:
            yield Request(url, self.parse, errback=self.told)

    def parse(self, response: Any) -> Any:
        yield {"path": response.url[-4:], "flags": response.flags, "body": response.body}

    def told(self, failure: Any) -> Any:
        yield {"error": type(failure.value).__name__}


async def crawl(lab: Lab, port: Http2Port, paths: list[str], **settings: Any) -> Crawl:
    urls = [port.url(path) for path in paths]
    return await lab.crawl(Asker, {**SETTINGS, **settings}, urls=urls)


def port_of(folder: Path, *once: str) -> Http2Port:
    return Http2Port(Authority(folder).context(protocols=("h2",)), frozenset(once))


async def test_FC74_a_length_that_does_not_hold_fails_alone(lab: Lab, tmp_path: Path) -> None:
    """It is an error of its stream (RFC 9113, section 8.1.1): the others are asked once, and delivered."""
    with port_of(tmp_path) as port:
        result = await crawl(lab, port, ["/short", *GOOD])
    result.assert_finished()
    fate = result.fate(port.url("/short"))
    assert (fate.end, fate.reason, fate.attempts) == ("failed", "download.truncated", 2)
    assert {path: port.hits[path] for path in GOOD} == dict.fromkeys(GOOD, 1)
    assert result.ends() == {"succeeded": 3, "failed": 1}


@pytest.mark.parametrize("path", ["/short", "/reset", "/cut"])
async def test_FC74_half_a_response_is_delivered_where_that_is_wished(
    lab: Lab, tmp_path: Path, path: str
) -> None:
    with port_of(tmp_path) as port:
        result = await crawl(lab, port, [path], DOWNLOAD_FAIL_ON_DATALOSS=False)
    result.assert_finished()
    (item,) = result.items
    assert (item["body"], item["flags"]) == (b"hello", ["dataloss"])
    assert port.hits[path] == 1


@pytest.mark.parametrize(
    ("path", "reasons"),
    [("/reset", {"download.http2.reset"}), ("/cut", {"download.reset", "download.http2.protocol"})],
)
async def test_FC74_a_stream_or_a_connection_that_breaks_off_is_tried_again(
    lab: Lab, tmp_path: Path, path: str, reasons: set[str]
) -> None:
    with port_of(tmp_path) as port:
        result = await crawl(lab, port, [path])
    fate = result.assert_finished().fate(port.url(path))
    assert fate.end == "failed"
    assert fate.reason in reasons
    assert fate.attempts == 2


async def test_FC74_who_goes_down_with_a_connection_loses_no_attempt(
    lab: Lab, tmp_path: Path
) -> None:
    """A frame that ends the connection takes all down; nobody's `RETRY_TIMES` pay for it."""
    with port_of(tmp_path, "/bad") as port:
        result = await crawl(lab, port, ["/bad", *GOOD], RETRY_TIMES=1)
    result.assert_finished()
    assert result.ends() == {"succeeded": 4}
    counts = result.rows(
        "SELECT DISTINCT r.code FROM transition AS t JOIN reason AS r USING (reason_id)"
        " WHERE r.code LIKE 'retry.%'"
    )
    assert counts == [("retry.download.http2.protocol",)]
