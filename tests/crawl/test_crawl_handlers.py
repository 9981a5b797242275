"""The same faults through Scrapy's other download handlers: what failed is named as well as their exceptions allow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from crawls import Lab
from test_crawl_faults import FAULTS, ask, rule_of

from scrapy_frontier.testing import page
from scrapy_frontier.testing.raw import RawPort, says

FOLDER = "scrapy.core.downloader.handlers"
HANDLERS = {
    "aiohttp": f"{FOLDER}._aiohttp.AiohttpDownloadHandler",
    "httpx": f"{FOLDER}._httpx.HttpxDownloadHandler",
}
LESS_CLOSELY = {
    ("download.connect_timeout", "aiohttp"): "download.timeout",
    ("download.connect_timeout", "httpx"): "download.timeout",
    ("download.tls.cut", "aiohttp"): "download.refused",
    ("download.tls.cut", "httpx"): "download.refused",
}
"""What the handler's exceptions do not tell apart."""


@pytest.fixture(params=HANDLERS)
def handler(request: pytest.FixtureRequest) -> str:
    path = HANDLERS[request.param]
    try:
        importlib.import_module(path.rpartition(".")[0])
    except ImportError:
        pytest.skip(f"this Scrapy has no {request.param} handler")
    return str(request.param)


def with_handler(handler: str, settings: dict[str, Any]) -> dict[str, Any]:
    both = dict.fromkeys(("http", "https"), HANDLERS[handler])
    return {**settings, "DOWNLOAD_HANDLERS": {**both, **settings.get("DOWNLOAD_HANDLERS", {})}}


@pytest.mark.parametrize("rule", FAULTS)
async def test_faults(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, handler: str
) -> None:
    open_it, settings, attempts = FAULTS[rule]
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with open_it(lab, tmp_path) as url:
        result = await ask(lab, url, settings=with_handler(handler, settings))
    fate = result.assert_finished().fate(url)
    named = LESS_CLOSELY.get((rule, handler), rule)
    assert (fate.end, fate.reason, fate.attempts) == ("failed", named, attempts)
    assert rule_of(result, url) == named


async def test_a_page(lab: Lab, handler: str) -> None:
    lab.main.on("/page", page("fine"))
    url = lab.main / "page"
    result = await ask(lab, url, settings=with_handler(handler, {}))
    assert result.assert_exhausted().fate(url).end == "succeeded"


async def test_what_has_no_name_of_its_own_is_tried_again(lab: Lab, handler: str) -> None:
    """Of a header block that makes no sense, some handlers say no more than that it failed."""
    with RawPort(
        says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rubbish\r\nContent-Length: x\r\n\r\n")
    ) as port:
        url = f"http://127.0.0.1:{port.number}/"
        result = await ask(lab, url, settings=with_handler(handler, {}))
    result.assert_finished()
    rule = "download.failed" if handler == "httpx" else "download.malformed"
    assert rule_of(result, url) == rule
    assert result.fate(url).attempts == 2
