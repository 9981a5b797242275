"""Puts the frontier's figures into Scrapy's stats: at intervals, and when the spider closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.frontier.watch import Watch

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    # typing.Self requires Python 3.11
    from typing_extensions import Self

INTERVAL_S = 10.0


class FrontierStatistics:
    """Stats under `frontier/`, and those of Scrapy's own scheduler and duplicate filter under their known names."""

    def __init__(self, crawler: Crawler, frontier: Frontier) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._loop: Any = None
        self._watch = Watch()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension of a crawl."""
        extension = cls(crawler, Frontier.of(crawler))
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """Begin to write figures."""
        self._loop = create_looping_call(self.write)
        self._loop.start(INTERVAL_S, now=False)

    def spider_closed(self, spider: Spider) -> None:
        """Write the last figures."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        self.write()

    def write(self) -> None:
        """Set all figures as they are now."""
        stats = self._crawler.stats
        if stats is None:
            return
        for name, value in self._frontier.statistics().items():
            stats.set_value(name, value)
        if self._frontier.is_open and self._frontier.error is None:
            self._watch.look(self._frontier.opened)
