"""Many small hosts beside one giant host: how long each small host takes, beside the giant and
without it.

The giant's root is requested first, and its links flood the queue. The time of a small host runs
from the start of the crawl to its last response. Required of the frontier: within 1.5 of its time
without the giant.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from benchmarks import crawling, fresh
from benchmarks.figures import Spread, Table
from benchmarks.fresh import Figures, MeasurementError
from benchmarks.site import Plan, running
from benchmarks.variants import FRONTIER, MEMORY, add_variant_option

QUICK = ["--small", "10", "--pages", "5", "--giant", "150", "--reps", "1", "--latency-ms", "20"]


class HostsSpider(Spider):
    """Follows every link and notes when each host answered last."""

    name = "hosts"

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.started_at = time.monotonic()
        self.finished_s: dict[str, float] = {}

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        base = response.url.partition("/of/")[0]
        self.finished_s[base] = time.monotonic() - self.started_at
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.parse)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    add_variant_option(parser, (MEMORY, FRONTIER))
    parser.add_argument("--small", type=int, default=50, help="small hosts")
    parser.add_argument("--pages", type=int, default=20, help="pages of a small host")
    parser.add_argument("--giant", type=int, default=1500, help="pages of the giant host")
    parser.add_argument(
        "--latency-ms", type=float, default=100.0, help="time the site takes to answer"
    )
    parser.add_argument("--concurrency", type=int, default=16, help="CONCURRENT_REQUESTS")
    parser.add_argument("--per-domain", type=int, default=8, help="CONCURRENT_REQUESTS_PER_DOMAIN")
    parser.add_argument("--reps", type=int, default=3, help="turns; medians are taken over them")


def run(options: argparse.Namespace) -> list[Table]:
    """One table: the small hosts' times, and the ratio together / alone."""
    turns = [
        {variant: _both(variant, options) for variant in options.variants}
        for _ in range(options.reps)
    ]
    table = Table(
        f"fairness: {options.small} hosts of {options.pages} pages beside one of {options.giant},"
        f" {options.latency_ms:g} ms an answer, {options.concurrency} at once,"
        f" {options.reps} turns",
        (
            "variant",
            "alone s",
            "together s",
            "median host",
            "worst host",
            "giant s",
            "giant/last small",
        ),
    )
    for variant in options.variants:
        of_variant = [turn[variant] for turn in turns]
        table.add(
            variant,
            Spread.of(max(t["alone"]) for t in of_variant).text(2),
            Spread.of(max(t["together"]) for t in of_variant).text(2),
            Spread.of(Spread.of(t["ratios"]).median for t in of_variant).text(2),
            Spread.of(max(t["ratios"]) for t in of_variant).text(2),
            Spread.of(t["giant_s"] for t in of_variant).text(2),
            Spread.of(t["giant_s"] / max(t["together"]) for t in of_variant).text(2),
        )
    table.notes.append(
        "alone, together: until the last small host is done;"
        " median and worst host: ratio together / alone"
    )
    table.data.extend({"variant": name, **t} for turn in turns for name, t in turn.items())
    return [table]


def _both(variant: str, options: argparse.Namespace) -> Figures:
    small = (options.pages,) * options.small
    alone = _crawl_once(variant, small, options)
    giant_s, *together = _crawl_once(variant, (options.giant, *small), options)
    return {
        "alone": alone,
        "together": together,
        "giant_s": giant_s,
        "ratios": [beside / by_itself for beside, by_itself in zip(together, alone, strict=True)],
    }


def _crawl_once(variant: str, sizes: tuple[int, ...], options: argparse.Namespace) -> list[float]:
    """The time of each host, in the order of `sizes`."""
    plan = Plan(kind="hosts", sizes=sizes, latency_s=options.latency_ms / 1000)
    with fresh.scratch_folder(options.folder) as folder, running(plan) as site:
        figures = fresh.measure(
            "benchmarks.fairness:measure",
            variant=variant,
            folder=str(folder),
            settings={
                "CONCURRENT_REQUESTS": options.concurrency,
                "CONCURRENT_REQUESTS_PER_DOMAIN": options.per_domain,
            },
            start_urls=[
                f"{base}/of/{size}/page/0" for base, size in zip(site.bases, sizes, strict=True)
            ],
        )
    if site.counts["requests"] != sum(sizes) or figures["errors"]:
        raise MeasurementError(
            f"{variant}: {sum(sizes)} pages, {site.counts['requests']} requests,"
            f" {figures['errors']} errors"
        )
    return [figures["finished_s"][base] for base in site.bases]


def measure(start_urls: list[str], **arguments: Any) -> Figures:
    """Runs in the measuring process."""
    return crawling.crawl(HostsSpider, read=_finished, start_urls=start_urls, **arguments)


def _finished(crawler: Crawler) -> Figures:
    assert isinstance(crawler.spider, HostsSpider)
    return {"finished_s": crawler.spider.finished_s}
