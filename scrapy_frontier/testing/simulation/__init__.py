"""A crawl in virtual time: thousands of origins, hours of crawling, in seconds.

The schedule, its gates, the health of origins and the retry policy are the real ones; servers, wire
and clock are simulated. Each dispatch is checked against the limits in force (`InvariantBroken`).

    from scrapy_frontier.testing.simulation import ServerPlan, Simulation, Site, World

    site = Site("http://shop.test", ServerPlan(rate=2.0, burst=5), urls=300)
    run = Simulation(World((site,), seed=1)).run()
    print(site_figures(run)[0].ratio)  # 1.0: as fast as one who knows the server

The same world and plan give the same run.
"""

from __future__ import annotations

from scrapy_frontier.testing.simulation.book import Book, InvariantBroken
from scrapy_frontier.testing.simulation.crawl import Simulation, Store, samples_as_text
from scrapy_frontier.testing.simulation.figures import (
    SiteFigures,
    median,
    oracle_s,
    peak_rate,
    site_figures,
)
from scrapy_frontier.testing.simulation.servers import Outage, Reply, ServerPlan, SimulatedServer
from scrapy_frontier.testing.simulation.timeline import EPOCH, Timeline
from scrapy_frontier.testing.simulation.world import CrawlPlan, Site, World, mixed_world

__all__ = [
    "EPOCH",
    "Book",
    "CrawlPlan",
    "InvariantBroken",
    "Outage",
    "Reply",
    "ServerPlan",
    "SimulatedServer",
    "Simulation",
    "Site",
    "SiteFigures",
    "Store",
    "Timeline",
    "World",
    "median",
    "mixed_world",
    "oracle_s",
    "peak_rate",
    "samples_as_text",
    "site_figures",
]
