"""The spiders of the benchmarks, written as a user would: no variant has code of its own here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class FollowSpider(Spider):
    """`response.follow` on every link."""

    name = "follow"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.parse)


class UrljoinSpider(Spider):
    """`Request(response.urljoin(...))` on every link."""

    name = "urljoin"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        for href in response.css("a::attr(href)").getall():
            yield Request(response.urljoin(href), self.parse)


class LinksSpider(CrawlSpider):
    """A `CrawlSpider` with one rule that extracts and follows every link."""

    name = "links"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response: TextResponse) -> None:
        response.css("title::text").get()


SPIDERS: dict[str, type[Spider]] = {
    "follow": FollowSpider,
    "urljoin": UrljoinSpider,
    "links": LinksSpider,
}
