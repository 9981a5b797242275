"""A site that scripts make: the same spider finds next to nothing without a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response

from example.extensions import LocalWeb
from example.items import Page, Price

TO_THE_END = """(async () => {
  while (document.getElementById('more')) {
    scrollTo(0, document.body.scrollHeight);
    await new Promise(done => setTimeout(done, 50));
  }
})()"""
"""Scrolls until nothing more is promised."""


class MarketSpider(Spider):
    """`scrapy crawl market -s FRONTIER_RENDER=all` renders it; needs scrapy-playwright and Chromium."""

    name = "market"
    allowed_domains = ["127.0.0.1"]

    async def start(self) -> AsyncIterator[Any]:
        web = self.crawler.get_extension(LocalWeb)
        yield Request(web.urls["market"] + "/")

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            for line in response.text.splitlines():
                ware, _, price = line.partition(",")
                yield Price(response.url, ware, price)
            return
        yield self.page(response)
        if ware := response.css("h2::text").get():
            yield Price(response.url, ware, response.css(".price::text").get("").removeprefix("£"))
        for link in response.css("a"):
            meta = scrolling() if link.attrib["href"] == "/goods" else {}
            yield response.follow(link, meta=meta)
        # The windows that a page has opened, and the files that it has offered, are ours to fetch.
        seen = response.meta.get("frontier_rendered", {})
        yield from response.follow_all([*seen.get("popups", ()), *seen.get("downloads", ())])

    def page(self, response: HtmlResponse) -> Page:
        text = " ".join(response.css("li::text, p::text, h2::text").getall())
        return Page(response.url, response.css("h1::text").get(""), "market", len(text.split()))


def scrolling() -> dict[str, Any]:
    """What has a browser scroll to the end; nothing where there is no browser."""
    if find_spec("scrapy_playwright") is None:
        return {}
    from scrapy_playwright.page import PageMethod

    return {"playwright_page_methods": [PageMethod("evaluate", TO_THE_END)]}
