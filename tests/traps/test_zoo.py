"""In the zoo of traps, the useful pages are all fetched and the rest is cut to a sample."""

from __future__ import annotations

import pytest

from scrapy_frontier.testing.zoo import SITES, TrapSite
from tests.traps.walk import walk
from tests.traps.zoo import walked

USEFUL = 120
SAMPLE = 40
"""Fetches that a trap may cost at the most, whatever the size of the site: samples, and what is in flight meanwhile."""


@pytest.mark.parametrize("make", SITES, ids=lambda make: make.name.replace(" ", "-"))
def test_a_trap_costs_a_sample(make: type[TrapSite]) -> None:
    site = make(USEFUL)
    outcome = walked(site, limit=1500)
    assert outcome.missed == 0
    assert outcome.waste <= SAMPLE
    assert outcome.deferred > 0
    assert site.rules.intersection(outcome.rules.split(", "))


@pytest.mark.parametrize("make", SITES, ids=lambda make: make.name.replace(" ", "-"))
def test_decisions_are_the_same_every_time(make: type[TrapSite]) -> None:
    first, second = (walk(make(40).answer, limit=400) for _ in range(2))
    assert first.fetched == second.fetched
    assert first.deferred == second.deferred


def test_without_likeness_what_is_plain_from_the_urls_is_still_held() -> None:
    held = {make.name: walk(make(40).answer, limit=600, has_likeness=False).rules for make in SITES}
    assert held["session in query"]["session"]
    assert held["sort orders"]["sort"]
    assert held["search"]["search"]
    assert held["calendar"]["calendar"]
