"""Memory per pending URL: resident, and as Python's allocator counts it.

One process for each variant enqueues up to the largest size and is read at each size on the way;
tracemalloc runs in a second process because it costs memory itself. Required of the frontier: flat
beyond the window, which is what the last column shows: what each URL after the size before has
cost.
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from collections.abc import Sequence

from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler

from benchmarks import fresh
from benchmarks.adapter import breathe, settle
from benchmarks.driven import BREATH, drive, made_requests
from benchmarks.figures import Table
from benchmarks.fresh import Figures
from benchmarks.process_figures import rss_bytes
from benchmarks.variants import add_variant_option

QUICK = ["--sizes", "2000,10000", "--hosts", "100"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    add_variant_option(parser)
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[100_000, 1_000_000],
        metavar="N,N",
        help="numbers of pending URLs",
    )
    parser.add_argument("--hosts", type=int, default=500, help="hosts of the URLs")
    parser.add_argument(
        "--no-tracemalloc",
        action="store_true",
        help="leave out the second process, which takes three times as long as the first",
    )


def run(options: argparse.Namespace) -> list[Table]:
    """One table for all sizes."""
    table = Table(
        f"memory: pending URLs over {options.hosts} hosts, bytes per URL",
        ("variant", "pending", "RSS", "tracemalloc", "total RSS MB", "RSS of each further URL"),
    )
    for variant in options.variants:
        rss = _measure(variant, options, traced=False)
        traced = None if options.no_tracemalloc else _measure(variant, options, traced=True)
        _add_rows(table, variant, rss, traced)
        table.data.extend(figures for figures in (rss, traced) if figures)
    return [table]


def _measure(variant: str, options: argparse.Namespace, *, traced: bool) -> Figures:
    with fresh.scratch_folder(options.folder) as folder:
        return fresh.measure(
            "benchmarks.memory:measure",
            variant=variant,
            folder=str(folder),
            hosts=options.hosts,
            sizes=sorted(options.sizes),
            traced=traced,
        )


def measure(variant: str, folder: str, hosts: int, sizes: Sequence[int], traced: bool) -> Figures:
    """Runs in the measuring process."""

    async def fill(crawler: Crawler, scheduler: BaseScheduler) -> Figures:
        if traced:
            tracemalloc.start()
        start_bytes = _used_bytes(traced)
        used_bytes = []
        reached = 0
        for size in sizes:
            await _enqueue(crawler, scheduler, hosts, reached, size - reached)
            await settle(scheduler)
            reached = size
            used_bytes.append(_used_bytes(traced))
        return {
            "variant": variant,
            "traced": traced,
            "sizes": list(sizes),
            "start_bytes": start_bytes,
            "used_bytes": used_bytes,
        }

    return drive(variant, folder, fill)


async def _enqueue(
    crawler: Crawler, scheduler: BaseScheduler, hosts: int, first: int, count: int
) -> None:
    assert crawler.spider is not None
    for number, request in enumerate(made_requests(crawler.spider, hosts, first, count)):
        if not scheduler.enqueue_request(request):
            raise AssertionError(f"{request} was refused")
        if number % BREATH == 0:
            await breathe(scheduler)


def _used_bytes(traced: bool) -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] if traced else rss_bytes()


def _add_rows(table: Table, variant: str, rss: Figures, traced: Figures | None) -> None:
    before_size, before_bytes = 0, rss["start_bytes"]
    for n, size in enumerate(rss["sizes"]):
        used = rss["used_bytes"][n]
        allocated = (traced["used_bytes"][n] - traced["start_bytes"]) / size if traced else None
        table.add(
            variant,
            f"{size:,}",
            f"{(used - rss['start_bytes']) / size:,.0f}",
            "-" if allocated is None else f"{allocated:,.0f}",
            f"{used / 1e6:,.0f}",
            f"{(used - before_bytes) / (size - before_size):,.0f}",
        )
        before_size, before_bytes = size, used
