"""Crawls of sites with traps end by themselves, with the useful pages fetched and the rest deferred by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from crawls import Follower, Lab

from scrapy_frontier.testing import page
from scrapy_frontier.testing.zoo import SITES, TrapSite, serve

SETTINGS = {"CONCURRENT_REQUESTS": 8, "CLOSESPIDER_PAGECOUNT": 2000}
USEFUL = 60
SAMPLE = 45


class Tame(Follower):
    """Follows every link of every page, as people write it."""

    def parse(self, response: Any) -> Any:
        if hasattr(response, "css"):
            yield from response.follow_all(css="a")


@pytest.mark.parametrize("make", SITES, ids=lambda make: make.name.replace(" ", "-"))
async def test_a_trap_costs_a_sample_of_fetches(lab: Lab, make: type[TrapSite]) -> None:
    site = make(USEFUL)
    serve(site, lab.main)
    crawl = await lab.crawl(Tame, SETTINGS, seeds=[lab.main / ""], patience_s=60)
    crawl.assert_exhausted()
    names = [site.name_of(url.removeprefix(lab.main.url)) for url in crawl.log.hits_by_url()]
    useful = site.useful_names.intersection(names)
    assert useful == site.useful_names
    assert len(names) - len(useful) <= SAMPLE
    assert {rule.removeprefix("trap.") for rule in crawl.coverage.identities.deferred} & site.rules


async def test_a_reason_holds_what_the_decision_was_made_from(lab: Lab) -> None:
    serve(SITES[2](40), lab.main)
    crawl = await lab.crawl(Tame, SETTINGS, seeds=[lab.main / ""], patience_s=60)
    ((_, detail),) = crawl.rows(
        "SELECT r.code, t.detail FROM transition AS t JOIN reason AS r USING (reason_id)"
        " WHERE t.event = 5 AND r.code = 'trap.sort' LIMIT 1"
    )
    inputs = json.loads(detail)
    assert inputs["family"] == "/list/{number}.html?dir={text}&sort={text}"
    assert inputs["dry"] >= inputs["sample"]
    assert inputs["discovered"] > inputs["fetched"] >= inputs["dry"]


async def test_switched_off_nothing_is_deferred(lab: Lab) -> None:
    serve(SITES[2](20), lab.main)
    settings = {**SETTINGS, "FRONTIER_TRAPS": False}
    crawl = await lab.crawl(Tame, settings, seeds=[lab.main / ""], patience_s=60)
    assert crawl.coverage.identities.deferred == {}


async def test_what_somebody_asks_for_by_name_is_fetched(lab: Lab) -> None:
    lab.main.on("/", page("start", ["/8031/01/01/"]))
    lab.main.on("/8031/01/01/", page("far away"))

    class Insists(Follower):
        def parse(self, response: Any) -> Any:
            yield from response.follow_all(css="a")
            yield from response.follow_all(css="a", dont_filter=True, callback=self.parse_day)

        def parse_day(self, response: Any) -> Any:
            return {"url": response.url}

    crawl = await lab.crawl(Insists, seeds=[lab.main / ""])
    crawl.assert_exhausted()
    assert crawl.items == [{"url": lab.main / "8031/01/01/"}]
    assert crawl.history(lab.main / "8031/01/01/")[:3] == ["discover", "defer", "release"]


async def test_an_exception_is_said_in_the_account(lab: Lab) -> None:
    lab.main.on("/", page("start", ["/archive/8031/01/01/", "/other/8031/01/01/"]))
    lab.main.on("/archive/8031/01/01/", page("far away"))
    exceptions = [{"place": f"{lab.main.url}/archive/", "rules": ["calendar"], "name": "ours"}]
    crawl = await lab.crawl(
        settings={"FRONTIER_TRAP_EXCEPTIONS": exceptions}, seeds=[lab.main / ""]
    )
    assert crawl.fate(lab.main / "archive/8031/01/01/").end == "succeeded"
    assert crawl.fate(lab.main / "other/8031/01/01/").reason == "trap.calendar"
    (waiver,) = crawl.coverage.waivers
    assert (waiver.name, waiver.count) == ("trap.calendar: ours", 1)
