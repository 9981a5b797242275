"""Simulated crawls, in virtual time: how near each server's capacity the pace of an origin comes, and what
failing servers cost.

The schedule, its gates, the health of origins and the retry policy are the real ones; servers, wire and clock are
simulated. Every dispatch is checked against the limits in force: a run that breaks one ends with an error. The
same seed gives the same figures on any machine.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence

from benchmarks.figures import Spread, Table
from scrapy_frontier.policy.health import HealthRules
from scrapy_frontier.testing.simulation import (
    EPOCH,
    CrawlPlan,
    Outage,
    ServerPlan,
    Simulation,
    Site,
    SiteFigures,
    World,
    mixed_world,
    peak_rate,
    site_figures,
)
from scrapy_frontier.testing.simulation.world import KINDS

QUICK = ["--origins", "100", "--urls", "15", "--seeds", "1"]

SERVERS: dict[str, tuple[ServerPlan, int]] = {
    "no limit": (ServerPlan(), 3000),
    "token bucket 10/s, burst 10": (ServerPlan(rate=10.0, burst=10), 3000),
    "token bucket 2/s, burst 5": (ServerPlan(rate=2.0, burst=5), 1000),
    "token bucket 0.5/s, burst 1": (ServerPlan(rate=0.5), 300),
    "2 workers of 0.5 s": (ServerPlan(workers=2, service_s=0.5), 1000),
    "breaks 1 connection of 50": (ServerPlan(breaks=0.02), 3000),
    "1 worker of 0.02 s, backlog of 5": (
        ServerPlan(workers=1, service_s=0.02, backlog=5),
        3000,
    ),
}

OUTAGES: dict[str, Outage] = {
    "refuses connections for 30 s": Outage(3.0, 33.0, "refused"),
    "resets for 30 s": Outage(3.0, 33.0, "reset"),
    "does not answer for 30 s": Outage(3.0, 33.0, "timeout"),
    "502 for 30 s": Outage(3.0, 33.0, "502"),
    "503 for 30 s": Outage(3.0, 33.0, "503"),
    "never there": Outage(0.0),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--origins", type=int, default=2000, help="origins of the mixed world")
    parser.add_argument("--urls", type=int, default=40, help="URLs of an origin on average")
    parser.add_argument("--limit", type=int, default=200, help="requests in flight over all")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each single server")


def run(options: argparse.Namespace) -> list[Table]:
    """Single servers, outages, and a world of all kinds together."""
    logging.getLogger("scrapy_frontier").setLevel(logging.ERROR)
    return [_servers(options), _outages(options), _mixed(options)]


def _alone(
    server: ServerPlan, urls: int, seed: int, plan: CrawlPlan
) -> tuple[Simulation, SiteFigures]:
    simulation = Simulation(World((Site("http://one.test", server, urls),), seed), plan).run()
    (figures,) = site_figures(simulation)
    return simulation, figures


def _servers(options: argparse.Namespace) -> Table:
    table = Table(
        f"health: pace against an oracle that knows the server, 8 in flight allowed,"
        f" {options.seeds} seeds",
        ("server", "URLs", "ratio to oracle", "refused", "without health", "refused"),
    )
    for name, (server, urls) in SERVERS.items():
        runs = [_alone(server, urls, seed, CrawlPlan())[1] for seed in range(options.seeds)]
        off = [
            _alone(server, urls, seed, CrawlPlan(health=None))[1] for seed in range(options.seeds)
        ]
        table.add(name, f"{urls}", *_pace(runs, urls), *_pace(off, urls))
        table.data.append({"server": name, "ratios": [run.ratio for run in runs]})
    table.notes.append(
        "refused: answers 429 or 503, per URL; `without health` obeys Retry-After too"
    )
    return table


def _pace(runs: Sequence[SiteFigures], urls: int) -> tuple[str, str]:
    done = [run.ratio or 0.0 for run in runs if run.succeeded == urls]
    ratio = Spread.of(done).text(2) if len(done) == len(runs) else "URLs lost"
    return ratio, f"{sum(run.refused for run in runs) / len(runs) / urls:.1%}"


def _outages(options: argparse.Namespace) -> Table:
    table = Table(
        "health: a server of 160 requests/s that fails for a while, 3000 URLs",
        ("server", "failed", "left", "attempts lost", "peak/s before", "first s after", "closed"),
    )
    for name, outage in OUTAGES.items():
        simulation, figures = _alone(
            ServerPlan(outages=(outage,)), 3000, 1, CrawlPlan(timeout_s=5.0)
        )
        asked_at = simulation.book.page("http://one.test").asked_at
        back = EPOCH + outage.ends_s
        first = min((at for at in asked_at if at >= back), default=back)
        table.add(
            name,
            f"{figures.failed}",
            f"{figures.left}",
            f"{figures.attempts - figures.succeeded}",
            f"{peak_rate(asked_at, EPOCH, EPOCH + outage.begins_s):.0f}",
            f"{peak_rate(asked_at, first, first + 1) if outage.begins_s else 0:.0f}",
            "yes" if figures.is_closed else "no",
        )
    return table


def _mixed(options: argparse.Namespace) -> Table:
    began_at = time.perf_counter()
    plan = CrawlPlan(limit=options.limit, health=HealthRules(), restarts=(20.0, 120.0))
    simulation = Simulation(mixed_world(1, options.origins, options.urls), plan).run()
    took_s = time.perf_counter() - began_at
    figures = site_figures(simulation)
    table = Table(
        f"health: {options.origins} origins together, {options.limit} in flight, killed and resumed"
        " twice",
        (
            "kind",
            "origins",
            "URLs",
            "succeeded",
            "failed",
            "left",
            "attempts/URL",
            "longest wait s",
        ),
    )
    for kind in KINDS:
        some = [one for one in figures if one.name.startswith(f"http://{kind}")]
        urls = sum(one.urls for one in some)
        table.add(
            kind,
            f"{len(some)}",
            f"{urls}",
            f"{sum(one.succeeded for one in some)}",
            f"{sum(one.failed for one in some)}",
            f"{sum(one.left for one in some)}",
            f"{sum(one.attempts for one in some) / max(1, urls):.2f}",
            f"{max((one.longest_wait_s for one in some), default=0.0):.2f}",
        )
    virtual_s = simulation.timeline.now() - EPOCH
    table.notes.append(
        f"{sum(one.attempts for one in figures):,} dispatches, all within the limits in force;"
        f" at most {simulation.book.most_in_flight} in flight; {virtual_s:,.0f} s of crawling in"
        f" {took_s:.1f} s"
    )
    table.notes.append(
        "longest wait: of a URL that could go, at an open gate, for a place of the whole crawl"
    )
    return table
