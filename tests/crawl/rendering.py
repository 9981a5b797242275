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


class Asking(Reader):
    """Its seeds alone ask to be rendered."""

    name = "asking"

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, meta={"playwright": True})

    def parse(self, response: Any) -> Any:
        is_made = b"<title>made" in response.body
        yield {"url": response.url, "is_made": is_made, "response": response}
        yield from response.follow_all(css="a") if hasattr(response, "css") else ()


class Scroller(Follower):
    """Renders what it follows from the seeds, and scrolls there."""

    name = "scroller"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.results: list[Any] = []

    def parse(self, response: Any) -> Any:
        from scrapy_playwright.page import PageMethod

        methods = [
            PageMethod("evaluate", "window.scrollBy(0, 500)"),
            PageMethod("wait_for_selector", "a"),
            PageMethod("evaluate", "more()"),
            PageMethod("evaluate", "document.querySelectorAll('a').length"),
        ]
        meta = {"playwright": True, "playwright_page_methods": methods}
        yield from response.follow_all(css="a", callback=self.parse_grown, meta=meta)

    def parse_grown(self, response: Any) -> Any:
        self.results.append(response.meta["playwright_page_methods"][-1].result)
        yield from response.follow_all(css="a", callback=self.parse_item)

    def parse_item(self, response: Any) -> None:
        """The end."""
