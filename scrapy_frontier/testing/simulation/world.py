"""What is simulated: the servers there are, and how the crawl is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from scrapy_frontier.policy.health import HealthRules
from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.policy.retry import Limits, RetryRules
from scrapy_frontier.testing.simulation.servers import Outage, ServerPlan


@dataclass(frozen=True, slots=True)
class Site:
    """A server and the URLs it has; `policy` goes before the crawl's."""

    name: str
    server: ServerPlan
    urls: int
    policy: OriginPolicy | None = None


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    """How a crawl is set up. Times in seconds.

    `limit`: requests in flight over all origins. `health` None: every gate keeps its policy.
    `restarts`: instants from the start at which the process is killed and another one goes on with
    what is stored.
    """

    limit: int = 10_000
    policy: OriginPolicy = field(default_factory=lambda: OriginPolicy(8))
    health: HealthRules | None = field(default_factory=HealthRules)
    retry: RetryRules = field(default_factory=lambda: RetryRules((), Limits()))
    timeout_s: float = 30.0
    hot_origins: int = 10_000
    window: int = 50_000
    restarts: tuple[float, ...] = ()

    @property
    def longest_hold_s(self) -> float:
        """The longest time that an origin is left alone."""
        ceiling_s = 0.0 if self.health is None else self.health.ceiling_s
        return max(ceiling_s, self.retry.limits.retry_after_cap_s)


@dataclass(frozen=True, slots=True)
class World:
    """Sites, and the seed that everything random in a run is drawn from."""

    sites: tuple[Site, ...]
    seed: int = 1


KINDS = ("plain", "slow", "limited", "tight", "outage", "dead")
"""Kinds of sites in a mixed world: without limits; with few workers; with a token bucket; with one
of less than a request a second; out for a while; never there."""

SHARES = (50, 15, 20, 5, 8, 2)


def mixed_world(seed: int, origins: int, urls: int) -> World:
    """A world of every kind of site, `urls` on each on average."""
    random = Random(seed)
    sites = []
    for number in range(origins):
        (kind,) = random.choices(KINDS, SHARES)
        count = max(1, round(random.expovariate(1 / urls)))
        sites.append(Site(f"http://{kind}{number}.test", _server(kind, random), count))
    return World(tuple(sites), seed)


def _server(kind: str, random: Random) -> ServerPlan:
    service_s = min(2.0, random.lognormvariate(-2.3, 0.8))
    if kind == "slow":
        return ServerPlan(random.randint(1, 4), 3 * service_s)
    if kind == "limited":
        return ServerPlan(64, service_s, random.uniform(1.0, 20.0), random.uniform(1, 10))
    if kind == "tight":
        return ServerPlan(64, service_s, random.uniform(0.2, 1.0), 1.0)
    if kind == "outage":
        begins_s = random.uniform(0.0, 10.0)
        how = random.choice(("refused", "reset", "timeout", "503", "502"))
        lasts_s = random.uniform(5.0, 60.0)
        return ServerPlan(64, service_s, outages=(Outage(begins_s, begins_s + lasts_s, how),))
    if kind == "dead":
        return ServerPlan(outages=(Outage(0.0, how=random.choice(("refused", "timeout"))),))
    return ServerPlan(64, service_s)
