"""The gazette by its sitemaps: no link is followed, every article is known from the start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy.http import HtmlResponse
from scrapy.spiders import SitemapSpider

from example.extensions import LocalWeb
from example.items import Article


class NewsSpider(SitemapSpider):
    """Reads robots.txt, the sitemap index it names, the four sitemaps, and every article."""

    name = "news"
    allowed_domains = ["127.0.0.1"]
    sitemap_rules = [(r"/\d{4}/\d\d/\d\d/$", "parse_article")]

    async def start(self) -> AsyncIterator[Any]:
        web = self.crawler.get_extension(LocalWeb)
        self.sitemap_urls = [web.urls["news"] + "/robots.txt"]
        async for request in super().start():
            yield request

    def parse_article(self, response: HtmlResponse) -> Iterator[Article]:
        yield Article(
            url=response.url,
            headline=response.css("h1::text").get(""),
            day=response.css("time::attr(datetime)").get(""),
            topic=response.css(".byline a::text").get(""),
        )
