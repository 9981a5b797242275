"""Every rule of the table is reached by what really happens: the rare ones here, and that none is left out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Lab
from h2_server import Http2Port
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from test_crawl_faults import FAULTS, STATUSES, ask, rule_of
from twisted.internet.defer import CancelledError

from scrapy_frontier.policy.retry import TABLE
from scrapy_frontier.testing import Answer, page
from scrapy_frontier.testing.certificates import Authority

H2 = "scrapy.core.downloader.handlers.http2.H2DownloadHandler"
Asked = tuple[Crawl, str]
Scenario = Callable[[Lab, Path], Awaitable[Asked]]


async def from_an_address_of_others(lab: Lab, folder: Path) -> Asked:
    """192.0.2.0/24 is nobody's (RFC 5737): no connection leaves from there."""
    url = lab.main / "page"
    return await ask(lab, url, meta={"bindaddress": ("192.0.2.1", 0)}), url


async def server_that_goes_away(lab: Lab, folder: Path) -> Asked:
    with Http2Port(Authority(folder).context(protocols=("h2",))) as port:
        url = port.url("/away")
        return await ask(lab, url, settings={"DOWNLOAD_HANDLERS": {"https": H2}}), url


async def connection_that_ends_before_the_request(lab: Lab, folder: Path) -> Asked:
    """The server takes one stream at a time, and goes away over the first: the second was never sent."""
    with Http2Port(Authority(folder).context(protocols=("h2",)), streams=1) as port:
        urls = port.url("/away1"), port.url("/away2")
        settings = {"DOWNLOAD_HANDLERS": {"https": H2}, "RETRY_TIMES": 0}
        result = await ask(lab, *urls, settings=settings)
        (unsent,) = (url for url in urls if rule_of(result, url) == "download.http2.unsent")
        assert port.hits[unsent.removeprefix(port.url(""))] == 0
        return result, unsent


class Cancelling(HTTP11DownloadHandler):
    """Gives up on what takes long, as a component with a deadline of its own does."""

    async def download_request(self, request: Any) -> Any:
        download = asyncio.ensure_future(super().download_request(request))
        await asyncio.wait({download}, timeout=0.3)
        download.cancel()
        await asyncio.wait({download})
        raise CancelledError


async def download_cancelled_here(lab: Lab, folder: Path) -> Asked:
    lab.main.on("/page", Answer(fault="stall"))
    url = lab.main / "page"
    return await ask(lab, url, settings={"DOWNLOAD_HANDLERS": {"http": Cancelling}}), url


class Impatient(HTTP11DownloadHandler):
    """A handler with an error in it."""

    async def download_request(self, request: Any) -> Any:
        response = await super().download_request(request)
        return response.headers["X-Never-There"]


async def handler_that_breaks(lab: Lab, folder: Path) -> Asked:
    lab.main.on("/page", page("fine"))
    url = lab.main / "page"
    return await ask(lab, url, settings={"DOWNLOAD_HANDLERS": {"http": Impatient}}), url


async def status_of_no_class(lab: Lab, folder: Path) -> Asked:
    """A project's list makes a case of a status that is none by itself."""
    lab.main.on("/page", Answer("", status=299))
    url = lab.main / "page"
    return await ask(lab, url, settings={"RETRY_HTTP_CODES": [299]}), url


RARE: dict[str, Scenario] = {
    "download.unreachable": from_an_address_of_others,
    "download.http2.goaway": server_that_goes_away,
    "download.http2.unsent": connection_that_ends_before_the_request,
    "download.cancelled": download_cancelled_here,
    "download.any": handler_that_breaks,
    "http.any": status_of_no_class,
}


@pytest.mark.parametrize("rule", RARE)
# Twisted leaves the socket to the collector when it cannot be bound.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_rare(lab: Lab, tmp_path: Path, rule: str) -> None:
    """The ledger has the rule by which the last attempt was judged, and the errback ran."""
    result, url = await RARE[rule](lab, tmp_path)
    result.assert_finished()
    assert rule_of(result, url) == rule
    assert result.items


ELSEWHERE = {
    "http.206": "test_crawl_bodies.py",
    "download.dns.not_found": "test_crawl_resolver.py",
    "download.dns.timeout": "test_crawl_resolver.py",
    "download.http2.protocol": "test_crawl_http2.py",
    "download.stale": "test_crawl_kept_connections.py",
    "download.http2.reset": "test_crawl_http2.py",
    "download.tunnel": "test_crawl_faults.py",
    "download.decoding": "test_crawl_faults.py",
    "download.failed": "test_crawl_handlers.py",
    "retry.asked": "test_crawl_retries.py",
    "callback.exception": "test_crawl_retries.py",
    "ignored": "test_crawl_middlewares.py",
}
"""Rules that a test of another module reaches, which names them."""

NET = {"other"}
"""What catches a cause that nobody foresaw."""

RENDERING = "render."
"""Rules of the browser, which `test_render_limits.py` and `test_render_hostile.py` reach."""


def test_no_rule_is_left_out() -> None:
    reached = {*FAULTS, *RARE, *ELSEWHERE, *(rule for _, rule, _, _ in STATUSES)}
    names = {rule.name for rule in TABLE if not rule.name.startswith(RENDERING)}
    assert names - NET == reached
    for rule, name in ELSEWHERE.items():
        text = (Path(__file__).parent / name).read_text(encoding="utf-8")
        assert re.search(rf'"(retry\.)?{re.escape(rule)}"', text), f"{name} does not name {rule}"
