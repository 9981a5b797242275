"""Crawls in virtual time: manners, fairness, pace and recovery of the schedule with the health of origins."""

from __future__ import annotations

import json
import logging

import pytest

from scrapy_frontier.policy.health import HealthRules, Sample, recompute
from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.testing.simulation import (
    EPOCH,
    Book,
    CrawlPlan,
    InvariantBroken,
    Outage,
    ServerPlan,
    Simulation,
    Site,
    SiteFigures,
    World,
    median,
    mixed_world,
    oracle_s,
    peak_rate,
    samples_as_text,
    site_figures,
)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "scrapy_frontier")


def alone(
    server: ServerPlan, urls: int, plan: CrawlPlan | None = None, seed: int = 1
) -> SiteFigures:
    """What comes of one site in a world of its own."""
    run = Simulation(World((Site("http://one.test", server, urls),), seed), plan).run()
    (figures,) = site_figures(run)
    return figures


@pytest.mark.parametrize("seed", [1, 2])
def test_manners_hold_in_a_mixed_world(seed: int) -> None:
    """Invariant 7 at each of thousands of dispatches, over outages, refusals and restarts; every URL has its place."""
    plan = CrawlPlan(limit=40, hot_origins=30, window=500, restarts=(7.0, 21.0, 60.0))
    run = Simulation(mixed_world(seed, 80, 15), plan).run()
    assert run.book.most_in_flight == 40
    for url in run.store.urls.all:
        is_closed = run.closed[url.origin_id]
        assert url.end in {"succeeded", "failed"} or is_closed, url
    dead = [f for f in site_figures(run) if f.name.startswith("http://dead")]
    assert all(figures.is_closed or not figures.left for figures in dead)


def test_the_same_seed_gives_the_same_run() -> None:
    world = mixed_world(5, 40, 10)
    first, second = (Simulation(world, CrawlPlan(limit=30)).run() for _ in range(2))
    assert samples_as_text(first) == samples_as_text(second)
    assert site_figures(first) == site_figures(second)
    other = Simulation(mixed_world(6, 40, 10), CrawlPlan(limit=30)).run()
    assert site_figures(other) != site_figures(first)


def test_every_sample_is_recomputed_from_what_is_stored() -> None:
    run = Simulation(mixed_world(3, 60, 20)).run()
    assert len(run.store.samples) > 50
    for message in run.store.samples:
        sample = Sample.from_data(
            message.code, json.loads(message.inputs), json.loads(message.state)
        )
        assert recompute(sample) == sample


def test_nobody_starves() -> None:
    """With room for all, a URL that could go goes at once; with little room, each gets its turn, whatever others do."""
    world = mixed_world(4, 60, 20)
    free = Simulation(world).run()
    assert max(figures.longest_wait_s for figures in site_figures(free)) < 1e-6
    crowded = site_figures(Simulation(world, CrawlPlan(limit=12)).run())
    assert max(figures.longest_wait_s for figures in crowded) < 60


def test_a_failing_neighbour_costs_nothing() -> None:
    """A healthy site takes the same time beside dead and refusing ones as without them."""
    healthy = tuple(Site(f"http://well{n}.test", ServerPlan(), 100) for n in range(5))
    dead = ServerPlan(outages=(Outage(0.0, how="timeout"),))
    sick = tuple(Site(f"http://sick{n}.test", dead, 50) for n in range(20))
    by_itself = site_figures(Simulation(World(healthy)).run())
    beside = site_figures(Simulation(World(healthy + sick)).run())
    for before, after in zip(by_itself, beside, strict=False):
        assert after.took_s == pytest.approx(before.took_s, rel=0.05)
        assert after.succeeded == 100


@pytest.mark.parametrize(
    ("server", "urls", "least"),
    [
        (ServerPlan(rate=10.0, burst=10), 1500, 0.85),
        (ServerPlan(rate=2.0, burst=5), 400, 0.8),
        (ServerPlan(rate=0.5), 150, 0.7),
        (ServerPlan(workers=2, service_s=0.5), 300, 0.9),
        (ServerPlan(), 1000, 0.95),
        (ServerPlan(breaks=0.02), 1000, 0.6),
        (ServerPlan(workers=1, service_s=0.02, backlog=5), 1000, 0.85),
    ],
    ids=["10/s", "2/s", "0.5/s", "two workers", "no limit", "breaks", "backlog"],
)
def test_pace_comes_near_the_server_s_capacity(server: ServerPlan, urls: int, least: float) -> None:
    """Against an oracle that knows the server; and few answers are refusals on the way."""
    figures = alone(server, urls)
    assert figures.succeeded == urls
    assert figures.ratio is not None
    assert figures.ratio >= least
    assert figures.refused <= 0.12 * urls


@pytest.mark.parametrize("how", ["refused", "reset", "timeout", "502"])
def test_an_outage_loses_nothing_and_ends_without_a_burst(how: str) -> None:
    """Once back, the server is asked little by little: never more in the first seconds than it took before."""
    server = ServerPlan(outages=(Outage(3.0, 33.0, how),))
    plan = CrawlPlan(timeout_s=5.0)
    run = Simulation(World((Site("http://one.test", server, 1500),)), plan).run()
    asked_at = run.book.page("http://one.test").asked_at
    (figures,) = site_figures(run)
    assert figures.left == 0
    assert figures.failed <= 5
    back = EPOCH + 33.0
    before = peak_rate(asked_at, EPOCH + 1, EPOCH + 3)
    assert peak_rate(asked_at, EPOCH + 5, back) <= 10, "asked rarely while it is out"
    # Only the wait that was running when it came back lies before the first request.
    first = min(at for at in asked_at if at >= back)
    assert peak_rate(asked_at, first, first + 1) <= 0.25 * before
    assert peak_rate(asked_at, first, first + 600) <= 1.2 * before


def test_a_dead_origin_costs_few_attempts_and_is_closed() -> None:
    figures = alone(ServerPlan(outages=(Outage(0.0),)), 500)
    assert figures.is_closed
    assert figures.attempts <= 40
    assert figures.left >= 480


def test_a_restart_is_no_new_beginning() -> None:
    """A process that takes over asks a limited server as the one before had learned to: no herd."""
    server = ServerPlan(rate=1.0, burst=8)
    site = Site("http://one.test", server, 200)
    run = Simulation(World((site,)), CrawlPlan(restarts=(90.0,))).run()
    page = run.book.page(site.name)
    assert peak_rate(page.asked_at, EPOCH + 90, EPOCH + 100) <= 3
    (figures,) = site_figures(run)
    assert figures.succeeded == 200


def test_slower_answers_lower_the_number_in_flight() -> None:
    server = ServerPlan(workers=2, service_s=0.05, slower_after_s=3.0, slower_by=10.0)
    run = Simulation(World((Site("http://one.test", server, 400),))).run()
    eased = [m for m in run.store.samples if m.code == "health.ease"]
    assert eased
    assert min(m.concurrency for m in eased) <= 4


def test_without_rules_every_gate_keeps_its_policy() -> None:
    figures = alone(ServerPlan(rate=2.0, burst=2), 60, CrawlPlan(health=None))
    with_health = alone(ServerPlan(rate=2.0, burst=2), 60)
    assert with_health.refused < figures.refused


def test_target_of_autothrottle_is_kept() -> None:
    """AUTOTHROTTLE_TARGET_CONCURRENCY: no more than that in flight on average."""
    plan = CrawlPlan(health=HealthRules(start_s=1.0, target=2.0), policy=OriginPolicy(8))
    server = ServerPlan(service_s=0.5)
    figures = alone(server, 400, plan)
    at_most = 400 * 0.5 / 2.0
    assert figures.took_s >= 0.9 * at_most
    assert figures.took_s <= 1.4 * at_most


def test_the_book_finds_what_must_not_be() -> None:
    """A check that cannot fail would prove nothing."""
    policy = OriginPolicy(1, 1.0)
    book = Book(limit=1)
    book.ask("a", EPOCH, base=policy, policy=policy, interval_s=1.0)
    with pytest.raises(InvariantBroken, match="early"):
        book.ask("a", EPOCH + 0.5, base=policy, policy=policy, interval_s=1.0)
    with pytest.raises(InvariantBroken, match="2 in flight"):
        book.ask("a", EPOCH + 2, base=policy, policy=policy, interval_s=1.0)
    with pytest.raises(InvariantBroken, match="0 are allowed"):
        Book(limit=0).ask("b", EPOCH, base=policy, policy=policy, interval_s=0.0)


def test_oracle() -> None:
    site = Site("http://one.test", ServerPlan(rate=2.0, burst=5, service_s=0.1), 25)
    assert oracle_s(site, 25, 8) == pytest.approx(10.1)
    out = ServerPlan(service_s=1.0, workers=1, outages=(Outage(5.0, 15.0),))
    assert oracle_s(Site("http://two.test", out, 10), 11, 8) == pytest.approx(21.0)
    assert median([]) == 0.0
