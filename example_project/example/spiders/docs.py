"""The main job: the handbook, and the shop and the gazette that it links to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from example.extensions import LocalWeb
from example.items import Article, Page, Product


class DocsSpider(CrawlSpider):
    """Follows every link of the three sites but the shop's thousand ways to sort and narrow."""

    name = "docs"
    allowed_domains = ["127.0.0.1"]
    rules = [
        Rule(LinkExtractor(allow=r"/products/\w+"), callback="parse_product", follow=True),
        Rule(LinkExtractor(allow=r"/\d{4}/\d\d/\d\d/$"), callback="parse_article", follow=True),
        Rule(
            LinkExtractor(allow=r"/(trees|work|ailments|months)/.+"),
            callback="parse_page",
            follow=True,
        ),
        Rule(LinkExtractor(deny=r"[?&](sort|colour|size)=")),
    ]

    async def start(self) -> AsyncIterator[Any]:
        web = self.crawler.get_extension(LocalWeb)
        for site in ("docs", "shop", "news"):
            yield Request(web.urls[site] + "/")

    def parse_page(self, response: HtmlResponse) -> Iterator[Page]:
        text = " ".join(response.css("p::text, li::text, p a::text").getall())
        yield Page(
            url=response.url,
            title=response.css("h1::text").get(""),
            section=response.url.split("/")[3],
            words=len(text.split()),
        )

    def parse_product(self, response: HtmlResponse) -> Iterator[Product]:
        price = response.css(".price")
        yield Product(
            url=response.css("link[rel=canonical]::attr(href)").get(response.url),
            sku=price.attrib["data-sku"],
            name=response.css("h1::text").get(""),
            price=Decimal(price.css("::text").get("").removeprefix("£")),
        )

    def parse_article(self, response: HtmlResponse) -> Iterator[Article]:
        yield Article(
            url=response.url,
            headline=response.css("h1::text").get(""),
            day=response.css("time::attr(datetime)").get(""),
            topic=response.css(".byline a::text").get(""),
        )
