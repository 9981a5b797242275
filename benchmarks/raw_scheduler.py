"""The scheduler alone: enqueue and next per CPU second, by number of hosts.

All requests are enqueued, then all are taken; the requests are made beforehand and differ. Required
of the frontier: no growth with the number of hosts (Scrapy's default queue looks at every host at
each pop).
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import asdict

from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler

from benchmarks import fresh
from benchmarks.adapter import acknowledge, breathe, settle
from benchmarks.driven import BREATH, drive, made_requests
from benchmarks.figures import Spread, Table, ratios
from benchmarks.fresh import Figures
from benchmarks.process_figures import Spent, Stopwatch
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
        help="numbers of hosts",
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
        enqueued = await _enqueue(crawler, scheduler, hosts, count)
        taken = await _take(crawler, scheduler, count)
        return {
            "variant": variant,
            "hosts": hosts,
            "requests": count,
            "enqueue": asdict(enqueued),
            "next": asdict(taken),
        }

    return drive(variant, folder, enqueue_then_take)


async def _enqueue(crawler: Crawler, scheduler: BaseScheduler, hosts: int, count: int) -> Spent:
    assert crawler.spider is not None
    requests = list(made_requests(crawler.spider, hosts, 0, count))
    stopwatch = Stopwatch()
    for number, request in enumerate(requests):
        if not scheduler.enqueue_request(request):
            raise AssertionError(f"{request} was refused")
        if number % BREATH == 0:
            await breathe(scheduler)
    await settle(scheduler)
    return stopwatch.read()


async def _take(crawler: Crawler, scheduler: BaseScheduler, count: int) -> Spent:
    stopwatch = Stopwatch()
    taken = 0
    progress_at = time.monotonic()
    while taken < count:
        request = scheduler.next_request()
        if request is not None:
            taken += 1
            acknowledge(scheduler, crawler, request)
            progress_at = time.monotonic()
            if taken % BREATH == 0:
                await breathe(scheduler)
        elif time.monotonic() - progress_at < PATIENCE_S:
            # The engine would sleep until it is woken.
            await asyncio.sleep(0.001)
        else:
            raise AssertionError(f"{taken} of {count} requests came; none for {PATIENCE_S} s")
    await settle(scheduler)
    return stopwatch.read()


def _table(hosts: int, options: argparse.Namespace, turns: list[dict[str, Figures]]) -> Table:
    table = Table(
        f"raw_scheduler: {options.requests} requests over {hosts} hosts, {options.reps} turns",
        (
            "variant",
            "enqueue/CPU s",
            "next/CPU s",
            "both/CPU s",
            "ratio",
            "both/loop CPU s",
            "ratio",
        ),
    )

    def rates(variant: str, clock: str, *phases: str) -> list[float]:
        spent = (sum(turn[variant][phase][clock] for phase in phases) for turn in turns)
        return [options.requests / seconds for seconds in spent]

    both = ("enqueue", "next")
    for variant in options.variants:
        cells = [
            Spread.of(rates(variant, "cpu_s", "enqueue")).text(0),
            Spread.of(rates(variant, "cpu_s", "next")).text(0),
        ]
        for clock in ("cpu_s", "thread_cpu_s"):
            own, first = (rates(name, clock, *both) for name in (variant, options.variants[0]))
            cells += [Spread.of(own).text(0), ratios(own, first).text(2)]
        table.add(variant, *cells)
    table.notes.append("loop CPU: the event loop's thread alone, without a writer's")
    table.data.extend(figures for turn in turns for figures in turn.values())
    return table
