"""Crawls of the hostile web, each of them audited."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crawls import Crawl, Lab
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from scrapy_frontier.frontier import Frontier

from .plans import FRONTIER_SETTINGS, SETTINGS, Case, Plan, Probe, Seen
from .web import Web

PATIENCE_S: Final = 15.0

CLOCKS_S: Final = 0.001
"""What a wall clock and a monotonic clock may differ by over an interval."""


@dataclass
class HostileLab(Lab):
    """The hostile web, a folder for the store, and crawls that are audited when they end."""

    server: Web

    @property
    def web(self) -> Web:
        """The hostile web."""
        return self.server

    async def crawl(
        self,
        spider: type[Spider] = Probe,
        settings: Mapping[str, Any] | None = None,
        *,
        before: Callable[[Crawler], Any] | None = None,
        patience_s: float = PATIENCE_S,
        **kwargs: Any,
    ) -> Crawl:
        """Run a spider to its end on the frontier, and audit that."""
        chosen = {**SETTINGS, **FRONTIER_SETTINGS, **(settings or {})}
        result = await super().crawl(spider, chosen, before=before, patience_s=patience_s, **kwargs)
        audit(result, self.web, chosen)
        return result

    async def run(self, plan: Plan, **kwargs: Any) -> tuple[Crawl, Seen]:
        """Carry out a plan on the frontier, and hold all that came of it to the plan."""
        seen = Seen(self.web)
        result = await self.crawl(settings=plan.settings, plan=plan, seen=seen, **kwargs)
        misses = plan.misses(seen)
        if plan.failed is not None and seen.failed != plan.failed:
            misses.append(f"told {seen.failed} for {plan.failed}")
        fates = fates_of(result, self.web, plan)
        if fates != plan.fates:
            misses.append(f"in the ledger {fates} for {plan.fates}")
        unresolved = result.coverage.identities.unresolved
        if (unresolved == {}) != plan.is_over:
            misses.append(f"unresolved {unresolved}")
        assert not misses, "\n".join(misses)
        return result, seen

    async def hold(self, case: Case) -> tuple[Crawl, Seen]:
        """Hold the frontier to what is right in a case."""
        return await self.run(case.stage(self.web))


def fates_of(result: Crawl, web: Web, plan: Plan) -> dict[str, str]:
    """How the identities that the plan speaks of stand: state and rule, or the disposition."""
    found = {}
    for label in plan.fates:
        fate = next((fate for url, fate in result.fates.items() if web.label(url) == label), None)
        if fate is None:
            found[label] = "unknown"
        elif fate.end in ("succeeded", "scheduled"):
            found[label] = fate.end
        else:
            found[label] = f"{fate.end} {fate.reason}"
    return found


def audit(result: Crawl, web: Web, settings: Mapping[str, Any]) -> None:
    """What holds for every crawl, whatever the web is like.

    The account adds up; the servers saw what the ledger has and nothing else; no request trespasses; no origin sees
    more at once, or a shorter interval, than its policy allows.
    """
    error = Frontier.of(result.crawler).error
    assert error is None, error
    result.assert_sound()
    booked, asked = on_this_web(result.wire_attempts(), web), asked_urls(web)
    assert booked == asked, f"only in the ledger: {booked - asked}, only asked: {asked - booked}"
    assert web.trespasses == [], web.trespasses
    limit, interval_s = settings["CONCURRENT_REQUESTS_PER_DOMAIN"], settings["DOWNLOAD_DELAY"]
    for origin in web.log.origins():
        most = web.log.max_simultaneous(origin)
        assert most <= limit, f"{most} at once at {origin}"
        gap_s = web.log.smallest_gap_s(origin)
        is_proxy = any(hit.path.startswith("http") for hit in web.log.of(origin))
        if limit == 1 and gap_s is not None and not is_proxy:
            assert gap_s >= interval_s - CLOCKS_S, f"{gap_s} s between two at {origin}"


def asked_urls(web: Web) -> Counter[str]:
    """How often each URL was asked for; a proxy is asked for whole URLs."""
    return Counter(hit.path if hit.path.startswith("http") else hit.url for hit in web.log)


def on_this_web(booked: Counter[str], web: Web) -> Counter[str]:
    """Attempts at origins that are served here: what nobody serves leaves no trace there."""
    served = tuple(f"{origin.url}/" for origin in web.origins.values() if origin is not web.x)
    return Counter({url: times for url, times in booked.items() if url.startswith(served)})


async def crawl_plainly(plan: Plan, web: Web, patience_s: float = PATIENCE_S) -> Seen:
    """Carry out a plan on Scrapy as it comes. A crawl that does not end is stopped."""
    seen = Seen(web)
    settings = {**SETTINGS, **plan.settings}
    crawler = Crawler(
        Probe, {name: value for name, value in settings.items() if "FRONTIER" not in name}
    )

    async def finish() -> None:
        crawling = asyncio.ensure_future(crawler.crawl_async(plan=plan, seen=seen))
        await asyncio.wait({crawling}, timeout=patience_s)
        if not crawling.done():
            await crawler.stop_async()
        await crawling

    await deferred_from_coro(finish())
    return seen
