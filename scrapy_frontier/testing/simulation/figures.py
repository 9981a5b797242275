"""Figures of a simulated crawl, beside an oracle that knows each server's capacity."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_frontier.testing.simulation.timeline import EPOCH

if TYPE_CHECKING:
    from scrapy_frontier.testing.simulation.crawl import Simulation
    from scrapy_frontier.testing.simulation.world import Site


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """What came of one site.

    `ratio`: the time an oracle would have taken for what succeeded, over the time it took; None
    where nothing did. `refused`: answers 429 and 503. `longest_wait_s`: the longest that a URL which
    could go stood at an open gate.
    """

    name: str
    urls: int
    succeeded: int
    failed: int
    left: int
    attempts: int
    refused: int
    took_s: float
    ratio: float | None
    longest_wait_s: float
    is_closed: bool


def site_figures(simulation: Simulation) -> list[SiteFigures]:
    """The figures of each site, in the order of the world."""
    ends: dict[int, Counter[str]] = {number: Counter() for number in simulation.sites}
    for url in simulation.store.urls.all:
        ends[url.origin_id][url.end] += 1
    return [
        _of_site(simulation, number, site, ends[number])
        for number, site in simulation.sites.items()
    ]


def _of_site(simulation: Simulation, number: int, site: Site, ends: Counter[str]) -> SiteFigures:
    page = simulation.book.page(site.name)
    took_s = page.answered_at[-1] - EPOCH if page.answered_at else 0.0
    policy = simulation.base_policy(site.name)
    count = len(page.answered_at)
    ideal_s = oracle_s(site, count, policy.limit, policy.interval_s)
    return SiteFigures(
        site.name,
        site.urls,
        ends["succeeded"],
        ends["failed"],
        ends[""],
        len(page.asked_at),
        page.outcomes["429"] + page.outcomes["503"],
        took_s,
        min(1.0, ideal_s / took_s) if took_s else None,
        page.longest_wait_s,
        bool(simulation.closed[number]),
    )


def oracle_s(site: Site, count: int, limit: int, interval_s: float = 0.0) -> float:
    """Seconds that one who knows all about a server would take for `count` answers: at its capacity,
    with its bucket full at first, and without a request while it is out.
    """
    server = site.server
    capacity = server.capacity(limit, interval_s)
    saved = server.burst if server.rate == capacity else 1.0
    taken_s = max(0.0, count - saved) / capacity + server.service_s if count else 0.0
    for outage in sorted(server.outages, key=lambda outage: outage.begins_s):
        if taken_s > outage.begins_s:
            taken_s += outage.ends_s - outage.begins_s
    return taken_s


def peak_rate(asked_at: Iterable[float], begins: float, ends: float, every_s: float = 1.0) -> float:
    """The most requests a second between two instants, counted over `every_s`."""
    counts = Counter(int((at - begins) / every_s) for at in asked_at if begins <= at < ends)
    return max(counts.values(), default=0) / every_s


def median(values: Iterable[float]) -> float:
    """The median, 0 of nothing."""
    listed = list(values)
    return statistics.median(listed) if listed else 0.0
