"""All eleven sites, with all that goes wrong on them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor
from twisted.python.failure import Failure

from example.extensions import LocalWeb
from example.items import Visit


class EverythingSpider(Spider):
    """Follows every link of every site and notes how each request ended.

    Two sites would go on for long or for ever, so both have a bound: `-a months=6` of the calendar,
    `-a parcels=300` of the land register.
    """

    name = "everything"
    allowed_domains = ["127.0.0.1"]
    custom_settings = {"HTTPERROR_ALLOW_ALL": True}
    links = LinkExtractor(deny_extensions=[])

    def __init__(self, months: str = "6", parcels: str = "300", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.months = int(months)
        self.parcels = int(parcels)

    async def start(self) -> AsyncIterator[Any]:
        self.web = self.crawler.get_extension(LocalWeb).urls
        for url in self.web.values():
            yield self.visit(url + "/")

    def visit(self, url: str) -> Request:
        return Request(url, callback=self.parse, errback=self.note_failure)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield Visit(response.url, response.status)
        if isinstance(response, HtmlResponse):
            for link in self.links.extract_links(response):
                if self.is_wanted(link):
                    yield self.visit(link.url)

    def note_failure(self, failure: Failure) -> Iterator[Visit]:
        yield Visit(failure.request.url, None, failure=failure.type.__name__)

    def is_wanted(self, link: Link) -> bool:
        """Whether a link is inside the bounds of the calendar and of the register."""
        site, _, path = link.url.removeprefix("http://").partition("/")
        origin = f"http://{site}"
        if origin == self.web["calendar"] and (match := re.match(r"(\d{4})/(\d\d)/", path)):
            return (int(match[1]) - 2024) * 12 + int(match[2]) <= self.months
        if origin == self.web["giant"] and (match := re.match(r"parcels/(\d+)", path)):
            return int(match[1]) <= self.parcels
        return True
