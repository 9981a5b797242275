"""The scheduler alone: enqueue and next per CPU second, by number of hosts.

All requests are enqueued, then all are taken; the requests are made beforehand and differ. Required
of the frontier: no growth with the number of hosts (Scrapy's default queue looks at every host at
each pop).
"""

from __future__ import annotations

import argparse
import asyncio
import time

from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler

from benchmarks import fresh
from benchmarks.adapter import acknowledge, settle
from benchmarks.driven import BREATH, drive, made_requests
from benchmarks.figures import Spread, Table, ratios
from benchmarks.fresh import Figures
from benchmarks.process_figures import Stopwatch
from benchmarks.variants import add_variant_option

QUICK = ["--requests", "2000", "--hosts", "50,500", "--reps", "1"]

PATIENCE_S = 30.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    add_variant_option(parser)
    parser.add_argument(
        "--requests", type=int, default=20_000, help="requests enqueued, then taken"
    )
    parser.add_argument("--reps", type=int, default=3, help="turns; medians are taken over them")
    parser.add_argument(
        "--hosts",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[50, 500, 5000],
        metavar="N,N",
        help="numbers of hosts (default: 50,500,5000)",
    )


def run(options: argparse.Namespace) -> list[Table]:
    """One table for each number of hosts."""
    return [_compare(hosts, options) for hosts in options.hosts]


def _compare(hosts: int, options: argparse.Namespace) -> Table:
    turns = []
    for _ in range(options.reps):
        turn = {}
        for variant in options.variants:
            with fresh.scratch_folder(options.folder) as folder:
                turn[variant] = fresh.measure(
                    "benchmarks.raw_scheduler:measure",
                    variant=variant,
                    folder=str(folder),
                    hosts=hosts,
                    count=options.requests,
                )
        turns.append(turn)
    return _table(hosts, options, turns)


def measure(variant: str, folder: str, hosts: int, count: int) -> Figures:
    """Runs in the measuring process."""

    async def enqueue_then_take(crawler: Crawler, scheduler: BaseScheduler) -> Figures:
        enqueue_cpu_s, enqueue_wall_s = await _enqueue(variant, crawler, scheduler, hosts, count)
        next_cpu_s, next_wall_s = await _take(variant, crawler, scheduler, count)
        return {
            "variant": variant,
            "hosts": hosts,
            "requests": count,
            "enqueue_cpu_s": enqueue_cpu_s,
            "enqueue_wall_s": enqueue_wall_s,
            "next_cpu_s": next_cpu_s,
            "next_wall_s": next_wall_s,
        }

    return drive(variant, folder, enqueue_then_take)


async def _enqueue(
    variant: str, crawler: Crawler, scheduler: BaseScheduler, hosts: int, count: int
) -> tuple[float, float]:
    assert crawler.spider is not None
    requests = list(made_requests(crawler.spider, hosts, 0, count))
    stopwatch = Stopwatch.start()
    for number, request in enumerate(requests):
        if not scheduler.enqueue_request(request):
            raise AssertionError(f"{request} was refused")
        if number % BREATH == 0:
            await asyncio.sleep(0)
    await settle(variant, scheduler)
    return stopwatch.read()


async def _take(
    variant: str, crawler: Crawler, scheduler: BaseScheduler, count: int
) -> tuple[float, float]:
    stopwatch = Stopwatch.start()
    taken = 0
    progress_at = time.monotonic()
    while taken < count:
        request = scheduler.next_request()
        if request is not None:
            taken += 1
            acknowledge(variant, crawler, request)
            progress_at = time.monotonic()
        elif time.monotonic() - progress_at > PATIENCE_S:
            raise AssertionError(f"{taken} of {count} requests came; none for {PATIENCE_S} s")
        if request is None or taken % BREATH == 0:
            await asyncio.sleep(0)
    await settle(variant, scheduler)
    return stopwatch.read()


def _table(hosts: int, options: argparse.Namespace, turns: list[dict[str, Figures]]) -> Table:
    table = Table(
        f"raw_scheduler: {options.requests} requests over {hosts} hosts, {options.reps} turns",
        ("variant", "enqueue/CPU s", "next/CPU s", "both/CPU s", "ratio"),
    )
    phases = (("enqueue_cpu_s",), ("next_cpu_s",), ("enqueue_cpu_s", "next_cpu_s"))
    for variant in options.variants:
        rates = [
            [options.requests / sum(turn[variant][phase] for phase in chosen) for turn in turns]
            for chosen in phases
        ]
        base = [
            options.requests / sum(turn[options.variants[0]][phase] for phase in phases[2])
            for turn in turns
        ]
        table.add(
            variant,
            *(Spread.of(rate).text(0) for rate in rates),
            ratios(rates[2], base).text(2),
        )
    table.data.extend(figures for turn in turns for figures in turn.values())
    return table
