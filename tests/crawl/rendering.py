"""A site of scripts, and spiders whose pages a real Chromium renders."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from crawls import Follower
from scrapy import Request

from scrapy_frontier.handlers import launch
from scrapy_frontier.testing import Answer

BROWSER = launch.executable(None, {})

needs_browser = pytest.mark.skipif(
    importlib.util.find_spec("scrapy_playwright") is None or BROWSER is None,
    reason="no Chromium on the path, or no scrapy-playwright",
)

RENDER = {"FRONTIER_RENDER": "all", "FRONTIER_RENDER_TIME": 10}


def script(code: str, before: str = "", after: str = "") -> Answer:
    """A page that runs some code."""
    return Answer(f"<html><head>{before}</head><body><script>{code}</script>{after}</body></html>")


def javascript(code: str) -> Answer:
    """A script by itself."""
    return Answer(code, content_type="text/javascript")


class Reader(Follower):
    """Follows links, and yields what it sees."""

    name = "reader"

    def parse(self, response: Any) -> Any:
        yield {
            "url": response.url,
            "text": response.text,
            "flags": response.flags,
            "seen": response.meta.get("frontier_rendered"),
        }
        yield from super().parse(response)


class Listener(Reader):
    """Yields what its errback is told, too."""

    name = "listener"

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, errback=self.failed)

    def failed(self, failure: Any) -> Any:
        yield {"failure": failure.value}
