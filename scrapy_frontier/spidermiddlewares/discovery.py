"""Sees every reference that callbacks and `start()` yield, as the last one before the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from scrapy import Spider, signals
from scrapy.http import TextResponse
from scrapy.spidermiddlewares.httperror import HttpError, HttpErrorMiddleware
from scrapy.spiders import SitemapSpider

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.frontier.leases import show_work
from scrapy_frontier.frontier.page import current_page
from scrapy_frontier.identity import Rejection, resolve
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.inventory import inventory
from scrapy_frontier.observations import unfollowed_references
from scrapy_frontier.responses import RejectedRequest, with_whatwg_links

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    # typing.Self requires Python 3.11
    from typing_extensions import Self


class DiscoveryMiddleware:
    """Belongs nearest to the engine.

    It gives responses their WHATWG links, keeps the link inventory, takes rejected references out of the output, and
    makes a page wait while the writer is behind, so that no page and no `start()` can fill the memory.
    """

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawl."""
        middleware = cls(Frontier.of(crawler))
        crawler.signals.connect(middleware.spider_error, signals.spider_error)
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(show_work, signals.item_scraped)
        crawler.signals.connect(show_work, signals.item_dropped)
        return middleware

    def spider_opened(self, spider: Spider) -> None:
        """A sitemap's entries are resolved before the spider makes requests of them."""
        if isinstance(spider, SitemapSpider):
            self._watch_sitemaps(spider)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Hand on seeds at the pace of the writer; none where an earlier run is parsed again."""
        if self.frontier.settings.reparse:
            return
        async for item in start:
            if isinstance(item, RejectedRequest):
                self.frontier.reject_seed(item.rejection)
                continue
            if self.frontier.is_crowded:
                await self.frontier.room()
            yield item

    def process_spider_input(self, response: Response) -> None:
        """Prepare the response for its callback."""
        page = current_page()
        if page is None:
            return
        page.response = response
        if not self._goes_to_callback(response):
            page.kind = ReferenceKind.ERRBACK
        if not isinstance(response, TextResponse):
            return
        if self.frontier.settings.whatwg_links:
            with_whatwg_links(response)
        if self.frontier.settings.link_inventory:
            self.frontier.take_inventory(page, inventory(response))
        if unfollowed := unfollowed_references(response):
            self.frontier.take_inventory(page, unfollowed)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Hand on what the callback yields, without the references that cannot be requested."""
        async for item in result:
            show_work()
            if isinstance(item, RejectedRequest):
                self.frontier.reject(item.rejection)
                continue
            if self.frontier.is_crowded:
                await self.frontier.room()
            yield item

    def _goes_to_callback(self, response: Response) -> bool:
        """Whether Scrapy's HttpErrorMiddleware, which comes after this one, lets the response pass."""
        if 200 <= response.status < 300:
            return True
        judge = self.frontier.crawler.get_spider_middleware(HttpErrorMiddleware)
        if judge is not None:
            try:
                judge.process_spider_input(response)
            except HttpError:
                return False
        return True

    def spider_error(self, failure: Failure) -> None:
        """The callback or errback of the page in this context raised."""
        page = current_page()
        if page is not None:
            page.error = failure.value

    def _watch_sitemaps(self, spider: SitemapSpider) -> None:
        entries_of = spider.sitemap_filter

        def resolved(entries: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
            for entry in entries_of(entries):
                yield from self._resolve_entry(entry)

        spider.sitemap_filter = resolved  # type: ignore[method-assign]

    def _resolve_entry(self, entry: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """The entry with absolute URLs: one odd `<loc>` costs neither the others nor itself its record."""
        page = current_page()
        base = page.url if page is not None else None
        if page is not None:
            page.kind = ReferenceKind.SITEMAP
        alternates = []
        for url in entry.get("alternate") or ():
            target = resolve(url, base)
            if isinstance(target, Rejection):
                self.frontier.reject(target)
            else:
                alternates.append(target.url)
        target = resolve(entry["loc"], base)
        if isinstance(target, Rejection):
            self.frontier.reject(target)
            return
        yield {**entry, "loc": target.url, **({"alternate": alternates} if alternates else {})}
