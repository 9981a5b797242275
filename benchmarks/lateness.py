"""How late a request that asks not to be sent before a time reaches the server.

The frontier is asked with `meta["frontier_delay"]`. Scrapy has no such request, so under its
scheduler the spider sleeps before it yields: that shows how late the loop and the network alone
are. The server writes down the arrival, on the same machine's clock. With `--load` the crawl has
that many other pages to fetch meanwhile; then what one turn of the event loop takes is in the
figure. Required of the frontier: a median under 20 ms on an idle crawl.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from benchmarks import crawling, fresh
from benchmarks.figures import Table
from benchmarks.fresh import Figures, MeasurementError
from benchmarks.site import CLOCK, Plan, running
from benchmarks.variants import FRONTIER, MEMORY, add_variant_option

QUICK = ["--requests", "40", "--longest-s", "1"]


class DelaySpider(Spider):
    """Asks for requests at times to come and compares them with when the server saw them."""

    name = "delays"
    bases: list[str]
    delays_s: list[float]
    sleeps: bool
    load_url: str | None

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.late_ms: list[float] = []

    async def start(self) -> AsyncIterator[Any]:
        if self.load_url:
            yield Request(self.load_url, self.follow)
        began_at = time.time()
        for number, delay_s in enumerate(sorted(self.delays_s)):
            url = f"{self.bases[number % len(self.bases)]}{CLOCK.decode()}/{number}"
            if self.sleeps:
                due_at = began_at + delay_s
                await asyncio.sleep(max(0.0, due_at - time.time()))
                yield self._request(url, due_at, {})
            else:
                yield self._request(url, time.time() + delay_s, {"frontier_delay": delay_s})

    def _request(self, url: str, due_at: float, meta: dict[str, Any]) -> Request:
        return Request(url, self.note, meta=meta, cb_kwargs={"due_at": due_at})

    def note(self, response: Response, due_at: float) -> None:
        """The answer's body is the time of arrival."""
        self.late_ms.append(int(response.text) / 1e6 - due_at * 1e3)

    def follow(self, response: Response) -> Iterator[Request]:
        """The load: an ordinary crawl."""
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.follow)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    add_variant_option(parser, (MEMORY, FRONTIER))
    parser.add_argument("--requests", type=int, default=200, help="delayed requests")
    parser.add_argument("--longest-s", type=float, default=5.0, help="delays are spread up to this")
    parser.add_argument("--hosts", type=int, default=50, help="hosts of the delayed requests")
    parser.add_argument("--load", type=int, default=0, help="other pages to crawl meanwhile")


def run(options: argparse.Namespace) -> list[Table]:
    """One table: the distribution of lateness."""
    table = Table(
        f"lateness: {options.requests} requests delayed by up to {options.longest_s:g} s"
        f" over {options.hosts} hosts, {options.load} other pages, in ms",
        ("variant", "median", "p95", "worst", "earliest"),
    )
    for variant in options.variants:
        figures = _crawl_once(variant, options)
        late = sorted(figures["late_ms"])
        chosen = (late[len(late) // 2], late[int(len(late) * 0.95)], late[-1], late[0])
        table.add(variant, *(f"{value:.1f}" for value in chosen))
        table.data.append(figures)
    table.notes.append("earliest below 0 would be a request sent before its time")
    return [table]


def _crawl_once(variant: str, options: argparse.Namespace) -> Figures:
    draw = random.Random(1)
    plan = Plan(pages=max(options.load, 1), origins=max(options.hosts, 1))
    with fresh.scratch_folder(options.folder) as folder, running(plan) as site:
        figures = fresh.measure(
            "benchmarks.lateness:measure",
            variant=variant,
            folder=str(folder),
            settings={},
            bases=site.bases,
            delays_s=[draw.uniform(0.05, options.longest_s) for _ in range(options.requests)],
            sleeps=variant != FRONTIER,
            load_url=f"{site.bases[0]}/page/0" if options.load else None,
        )
    if len(figures["late_ms"]) != options.requests or figures["errors"]:
        raise MeasurementError(
            f"{variant}: {len(figures['late_ms'])} of {options.requests} came,"
            f" {figures['errors']} errors"
        )
    return {"variant": variant, **figures}


def measure(**arguments: Any) -> Figures:
    """Runs in the measuring process."""
    return crawling.crawl(DelaySpider, read=_lateness, **arguments)


def _lateness(crawler: Crawler) -> Figures:
    assert isinstance(crawler.spider, DelaySpider)
    return {"late_ms": crawler.spider.late_ms}
