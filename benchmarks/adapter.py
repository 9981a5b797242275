"""All that the benchmarks know of the frontier's scheduler from inside, in one place.

The baselines need none of it: for them a call here is a turn of the event loop, or nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler


def _frontier_of(scheduler: BaseScheduler) -> Any:
    # Not by class: importing it would weigh on the baselines' memory.
    return getattr(scheduler, "frontier", None)


async def breathe(scheduler: BaseScheduler) -> None:
    """What the engine gives a scheduler between calls: a turn of the loop, and, where the spider
    yields faster than the frontier can write, the wait that holds the spider up.
    """
    await asyncio.sleep(0)
    if frontier := _frontier_of(scheduler):
        await frontier.room()


def acknowledge(scheduler: BaseScheduler, crawler: Crawler, request: Request) -> None:
    """Play the engine for a request that `next_request` gave: it reaches the downloader, and leaves.

    Scrapy's schedulers are told nothing. The frontier has the origin's place free again.
    """
    if _frontier_of(scheduler):
        for signal in (signals.request_reached_downloader, signals.request_left_downloader):
            crawler.signals.send_catch_log(signal, request=request, spider=crawler.spider)


async def settle(scheduler: BaseScheduler) -> None:
    """Wait until the frontier has on disk all that it was told, and knows it."""
    while frontier := _frontier_of(scheduler):
        writer = frontier.opened.writer
        await asyncio.sleep(0.02)
        if not writer.pending and not writer.lag_s:
            return
