"""A real scheduler, opened by a real engine, driven by hand instead of by the engine.

The crawl is real up to the point where its spider starts; then the engine is paused and the
benchmark calls `enqueue_request` and `next_request` itself. So every scheduler is built, opened and
configured as in a crawl, and only public names are used. The process ends when the drive ends: what
is left in the queues is not crawled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.http import Response

from benchmarks.fresh import Figures, report
from benchmarks.process_figures import lift_file_limit
from benchmarks.variants import settings_of

BREATH = 16
"""After so many calls the event loop gets a turn, in every variant: a scheduler may have a thread
that answers to it.
"""

Drive = Callable[[Crawler, BaseScheduler], Awaitable[Figures]]


class DrivenSpider(Spider):
    """Does nothing but hand the open scheduler to `drive`."""

    name = "driven"
    drive: Drive

    async def start(self) -> AsyncIterator[Any]:
        engine = self.crawler.engine
        assert engine is not None
        engine.pause()
        scheduler = engine.scheduler
        assert scheduler is not None
        try:
            report(await self.drive(self.crawler, scheduler))
        except BaseException as error:
            _end(repr(error))
        _end(None)
        yield

    def parse(self, response: Response, **kwargs: Any) -> None:
        """The callback that every request names; never called."""


def _end(error: str | None) -> NoReturn:
    if error:
        print(error, file=sys.stderr, flush=True)
    os._exit(1 if error else 0)


def drive(
    variant: str, folder: str, what: Drive, settings: dict[str, Any] | None = None
) -> Figures:
    """Open a crawl of `variant` and give its scheduler to `what`; the process ends there, figures
    reported.
    """
    lift_file_limit()
    process = AsyncCrawlerProcess(settings_of(variant, Path(folder)) | (settings or {}))
    process.crawl(process.create_crawler(DrivenSpider), drive=what)
    process.start()
    raise AssertionError("the drive ends the process")


def made_requests(spider: Spider, hosts: int, first: int, count: int) -> Iterator[Request]:
    """Distinct requests number `first` and following, over so many hosts in turn."""
    assert isinstance(spider, DrivenSpider)
    for number in range(first, first + count):
        yield Request(
            f"http://host{number % hosts}.example/section/{number % 97}/page-{number}.html",
            spider.parse,
        )
