"""All that the benchmarks know of the frontier's inside, in one place. The baselines need none of
it.
"""

from __future__ import annotations

import asyncio
import time

from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler

from benchmarks.variants import FRONTIER


def acknowledge(variant: str, crawler: Crawler, request: Request) -> None:
    """Play the engine for a request that `next_request` gave: it reaches the downloader, and leaves
    it.

    Scrapy's schedulers are told nothing. The frontier opens the gate of the request's origin again.
    """
    if variant != FRONTIER:
        return
    for signal in (signals.request_reached_downloader, signals.request_left_downloader):
        crawler.signals.send_catch_log(signal, request=request, spider=crawler.spider)


async def settle(variant: str, scheduler: BaseScheduler, *, quiet_s: float = 0.3) -> None:
    """Wait until a scheduler that writes behind has written all: until the process uses no more CPU
    time.
    """
    if variant != FRONTIER:
        return
    used = time.process_time()
    while True:
        await asyncio.sleep(quiet_s)
        before, used = used, time.process_time()
        if used - before < 0.02 * quiet_s:
            return
