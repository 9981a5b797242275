"""A rate-limited server on real sockets: how many requests it has to refuse, and how many URLs are lost.

The server is a token bucket that answers 429 with Retry-After when it is empty. The crawls differ in settings only;
all may have 8 requests in flight.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from benchmarks import crawling, fresh
from benchmarks.figures import Spread, Table
from benchmarks.fresh import Figures
from benchmarks.variants import FRONTIER, MEMORY
from scrapy_frontier.testing import Answer, ScriptedServer
from scrapy_frontier.testing import Request as Asked

QUICK = ["--pages", "30", "--rate", "10", "--reps", "1"]

THROTTLED: dict[str, Any] = {
    "AUTOTHROTTLE_ENABLED": True,
    "AUTOTHROTTLE_START_DELAY": 0.2,
    "AUTOTHROTTLE_TARGET_CONCURRENCY": 4,
}

CRAWLS: dict[str, tuple[str, dict[str, Any]]] = {
    "Scrapy": (MEMORY, {}),
    "Scrapy, AutoThrottle": (MEMORY, THROTTLED),
    "frontier": (FRONTIER, {}),
    "frontier, AutoThrottle settings": (FRONTIER, THROTTLED),
    "frontier, health off": (FRONTIER, {"FRONTIER_HEALTH": False}),
}


class PagesSpider(Spider):
    """Asks for numbered pages of one origin and counts those that came to its callback."""

    name = "pages"

    def __init__(self, base: str, count: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.base = base
        self.count = int(count)
        self.got: set[str] = set()

    async def start(self) -> Any:
        for number in range(self.count):
            yield Request(f"{self.base}/page/{number}")

    def parse(self, response: Any, **kwargs: Any) -> None:
        self.got.add(response.url)


class Bucket:
    """A token bucket in front of pages; thread-safe enough for the one loop that asks it."""

    def __init__(self, rate: float, burst: float, service_s: float) -> None:
        self.rate = rate
        self.burst = burst
        self.service_s = service_s
        self.refused = 0
        self._tokens = burst
        self._filled_at = time.monotonic()
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Answer:
        """A page, or 429 with the whole seconds until there is a token."""
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.rate)
            self._filled_at = now
            if self._tokens >= 1:
                self._tokens -= 1
                return Answer("<p>page</p>", delay_s=self.service_s)
            self.refused += 1
            wait_s = math.ceil((1 - self._tokens) / self.rate)
            return Answer("slow down", status=429, headers=(("Retry-After", str(wait_s)),))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--pages", type=int, default=200, help="URLs asked for")
    parser.add_argument("--rate", type=float, default=5.0, help="requests a second let through")
    parser.add_argument("--burst", type=float, default=10.0, help="tokens the bucket holds")
    parser.add_argument("--latency-ms", type=float, default=20.0, help="time a page takes")
    parser.add_argument("--reps", type=int, default=1, help="turns; medians are taken over them")


def run(options: argparse.Namespace) -> list[Table]:
    """One table: what each crawl got, and what it cost the server."""
    table = Table(
        f"throttle: {options.pages} pages of a server that lets {options.rate:g} requests/s through"
        f" (burst {options.burst:g}), 8 in flight allowed, {options.reps} turns",
        ("crawl", "pages got", "URLs lost", "429s", "seconds", "of the ideal time"),
    )
    ideal_s = max(0.0, options.pages - options.burst) / options.rate + options.latency_ms / 1000
    turns = [
        {name: _crawl_once(*crawl, options) for name, crawl in CRAWLS.items()}
        for _ in range(options.reps)
    ]
    for name in CRAWLS:
        of_crawl = [turn[name] for turn in turns]
        table.add(
            name,
            Spread.of(one["got"] for one in of_crawl).text(0),
            Spread.of(options.pages - one["got"] for one in of_crawl).text(0),
            Spread.of(one["refused"] for one in of_crawl).text(0),
            Spread.of(one["wall_s"] for one in of_crawl).text(1),
            Spread.of(one["wall_s"] / ideal_s for one in of_crawl).text(2),
        )
    table.notes.append(f"an ideal client takes {ideal_s:.1f} s; URLs lost: given up after retries")
    table.data.extend({"crawl": name, **one} for turn in turns for name, one in turn.items())
    return [table]


def _crawl_once(variant: str, settings: dict[str, Any], options: argparse.Namespace) -> Figures:
    bucket = Bucket(options.rate, options.burst, options.latency_ms / 1000)
    with fresh.scratch_folder(options.folder) as folder, ScriptedServer() as server:
        server.origin("limited").otherwise = bucket.answer
        figures = fresh.measure(
            "benchmarks.throttle:measure",
            variant=variant,
            folder=str(folder),
            settings={"LOG_LEVEL": "CRITICAL", **settings},
            base=server.origins["limited"].url,
            count=str(options.pages),
        )
    figures["refused"] = bucket.refused
    return figures


def measure(**arguments: Any) -> Figures:
    """Runs in the measuring process."""
    return crawling.crawl(PagesSpider, read=_got, **arguments)


def _got(crawler: Crawler) -> Figures:
    assert isinstance(crawler.spider, PagesSpider)
    return {"got": len(crawler.spider.got)}
