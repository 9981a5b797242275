"""One whole crawl in this process, measured from outside: the way `scrapy crawl` runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler

from benchmarks.fresh import Figures
from benchmarks.process_figures import Spent, Stopwatch, lift_file_limit, max_rss_bytes
from benchmarks.variants import settings_of

Read = Callable[[Crawler], Figures]


def crawl(
    spider: type[Spider],
    variant: str,
    folder: str,
    settings: dict[str, Any],
    read: Read | None = None,
    **arguments: Any,
) -> Figures:
    """Crawl and return what it cost from the opening of the spider to the end of the crawl, the
    closing of stores included; what came before, imports and the opening of stores, is
    `startup_cpu_s`: the same for a crawl of any length.

    `read` adds figures of its own from the finished crawler. `arguments` go to the spider.
    """
    lift_file_limit()
    process = AsyncCrawlerProcess(settings_of(variant, Path(folder)) | settings)
    crawler = process.create_crawler(spider)
    started = Stopwatch()
    opened: list[Stopwatch] = []
    startup: list[Spent] = []

    def note_opening() -> None:
        startup.append(started.read())
        opened.append(Stopwatch())

    crawler.signals.connect(note_opening, signals.spider_opened, weak=False)
    process.crawl(crawler, **arguments)
    process.start()
    spent = opened[0].read()
    stats = crawler.stats.get_stats()
    return {
        "cpu_s": spent.cpu_s,
        "wall_s": spent.wall_s,
        "startup_cpu_s": startup[0].cpu_s,
        "max_rss_bytes": max_rss_bytes(),
        "responses": stats.get("response_received_count", 0),
        "finish_reason": stats.get("finish_reason"),
        "errors": stats.get("log_count/ERROR", 0) + stats.get("log_count/CRITICAL", 0),
        **(read(crawler) if read else {}),
    }
