"""Rendered pages: stock scrapy-playwright beside the frontier, on pages with 20 sub-requests each.

`plain` fetches the same pages and renders none. `stock` hands a page over when it has loaded; `stock idle` waits until
the network has been idle for half a second, as scripts that fetch content make necessary; `frontier` waits until
nothing has been under way for `FRONTIER_RENDER_QUIET` seconds, `frontier unquiet` for a millisecond. Each measurement
is a process of its own; CPU seconds are those of all its processes, the browser's and the site's included.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response

from benchmarks.figures import Spread, Table, ratios
from benchmarks.fresh import Figures, MeasurementError, measure, scratch_folder
from benchmarks.process_figures import Stopwatch
from scrapy_frontier.testing import Answer, ScriptedServer

QUICK = ["--pages", "6", "--reps", "1"]

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"

SUB_REQUESTS = {"script": 8, "stylesheet": 2, "fetch": 10}
"""What each page asks for, by type; the addresses are the page's own, so that no cache serves them."""

HASTY = ("stock", "frontier unquiet")
"""Variants that hand a page over although its scripts may still be about to ask for something."""

VARIANTS = ("stock", "stock idle", "frontier", "frontier unquiet", "plain")


class RenderSpider(Spider):
    """Asks for each page, to be rendered."""

    name = "render"
    urls: list[str] = []
    meta: dict[str, Any] = {}

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, meta=dict(self.meta), dont_filter=False)

    def parse(self, response: Response, **kwargs: Any) -> dict[str, int]:
        return {"links": len(response.css("a"))}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=2, help="pages in the browser at once")
    parser.add_argument("--variants", default=",".join(VARIANTS))


def run(options: argparse.Namespace) -> list[Table]:
    """One table: pages per second, and what a page costs."""
    variants = [name.strip() for name in options.variants.split(",")]
    found: dict[str, list[Figures]] = {name: [] for name in variants}
    for _ in range(options.reps):
        for name in variants:
            with scratch_folder(options.folder) as folder:
                found[name].append(
                    measure(
                        "benchmarks.rendering:one",
                        variant=name,
                        pages=options.pages,
                        at_once=options.at_once,
                        folder=str(folder),
                    )
                )
    table = Table(
        f"{options.pages} pages of {sum(SUB_REQUESTS.values())} sub-requests, {options.at_once} at once",
        ["variant", "pages/s", "to the first", "CPU ms/page", "to the first"],
    )
    walls = {name: [one["pages_per_s"] for one in runs] for name, runs in found.items()}
    costs = {name: [one["cpu_ms"] for one in runs] for name, runs in found.items()}
    first = variants[0]
    for name in variants:
        table.add(
            name,
            Spread.of(walls[name]).text(2),
            ratios(walls[name], walls[first]).text(2),
            Spread.of(costs[name]).text(0),
            ratios(costs[name], costs[first]).text(2),
        )
        table.data.append({"variant": name, "runs": found[name]})
    return [table]


def one(variant: str, pages: int, at_once: int, folder: str) -> Figures:
    """Crawl in this process, on a site in a thread of it, and count what everything cost."""
    with ScriptedServer() as server:
        site = server.origin()
        for number in range(pages):
            site.on(f"/page{number}", _page(number))
        site.on("/script*", Answer("var done = 1", content_type="text/javascript"))
        site.on("/style*", Answer("p { color: black }", content_type="text/css"))
        site.on("/data*", Answer('{"text": "x"}', content_type="application/json"))
        settings, meta = _settings(variant, at_once, folder)
        process = AsyncCrawlerProcess(settings)
        crawler = process.create_crawler(RenderSpider)
        urls = [site / f"page{number}" for number in range(pages)]
        watch = Stopwatch()
        process.crawl(crawler, urls=urls, meta=meta)
        process.start()
        spent = watch.read()
        asked = len(server.log)
    items = crawler.stats.get_value("item_scraped_count", 0)
    expected = pages * (1 if variant == "plain" else 1 + sum(SUB_REQUESTS.values()))
    is_short = asked < expected and variant not in HASTY
    if items != pages or asked > expected or is_short:
        raise MeasurementError(
            f"{variant}: {items} of {pages} pages, {asked} of {expected} requests"
        )
    return {"pages_per_s": pages / spent.wall_s, "cpu_ms": 1000 * spent.cpu_s / pages}


def _page(number: int) -> Answer:
    scripts = "".join(f"<script src=/script{number}-{n}></script>" for n in range(8))
    styles = "".join(f"<link rel=stylesheet href=/style{number}-{n}>" for n in range(2))
    code = (
        f"for (let n = 0; n < 10; n++) fetch('/data{number}-' + n).then(r => r.json())"
        ".then(d => { const a = document.createElement('a'); a.textContent = d.text;"
        " document.body.append(a) })"
    )
    return Answer(
        f"<html><head>{styles}{scripts}</head><body><script>{code}</script></body></html>"
    )


def _settings(variant: str, at_once: int, folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    from scrapy_frontier.handlers.launch import executable

    settings: dict[str, Any] = {
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "CONCURRENT_REQUESTS": 16,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": executable(None, {})},
        "PLAYWRIGHT_MAX_PAGES_PER_CONTEXT": at_once,
    }
    if variant.startswith("stock"):
        settings["DOWNLOAD_HANDLERS"] = {"http": HANDLER, "https": HANDLER}
        idle = {"playwright_page_goto_kwargs": {"wait_until": "networkidle"}}
        return settings, {"playwright": True, **(idle if variant == "stock idle" else {})}
    settings |= {
        "ADDONS": {"scrapy_frontier.Addon": 500},
        "FRONTIER_STORE": f"sqlite:///{folder}/store.db",
        "FRONTIER_RENDER_CONCURRENCY": at_once,
    }
    if variant == "frontier unquiet":
        settings["FRONTIER_RENDER_QUIET"] = 0.001
    return settings, {} if variant == "plain" else {"playwright": True}
