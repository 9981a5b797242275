"""A site too large to finish: the crawl is bounded, and the account says what was left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse

from example.extensions import LocalWeb
from example.items import Parcel


class GiantSpider(Spider):
    """Walks the register until it has enough: `-s CLOSESPIDER_PAGECOUNT=2000` for more."""

    name = "giant"
    allowed_domains = ["127.0.0.1"]
    custom_settings = {"CLOSESPIDER_PAGECOUNT": 500}

    async def start(self) -> AsyncIterator[Any]:
        web = self.crawler.get_extension(LocalWeb)
        yield Request(web.urls["giant"] + "/")

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        number = response.url.rpartition("/")[2]
        if number:
            yield Parcel(url=response.url, number=int(number))
        yield from response.follow_all(css="a::attr(href)")
