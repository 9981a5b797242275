"""Budgets: what comes after a limit is held back by name, counted, and let in when the limit is raised."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab
from scrapy import Request

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import origin_of
from scrapy_frontier.policy.scope import Scope
from scrapy_frontier.report.unfinished import place_of
from scrapy_frontier.states import State
from scrapy_frontier.testing import Answer, page

ONE_BY_ONE = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}


def held(result: Crawl) -> dict[str, int]:
    """How many identities each rule holds back."""
    return dict(result.coverage.identities.deferred)


def pages(lab: Lab, links: list[str]) -> list[str]:
    """A start page with links to pages without links; its URL."""
    lab.main.on("/", page("", links))
    lab.main.otherwise = page("any")
    return [lab.main / ""]


async def test_accepted_urls_of_the_run(lab: Lab) -> None:
    """What is discovered beyond FRONTIER_MAX_URLS is held back; with a higher limit the run takes it up."""
    seeds = pages(lab, [f"/{number}" for number in range(20)])
    cut = await lab.crawl(settings={"FRONTIER_MAX_URLS": 6}, seeds=seeds)
    cut.assert_sound()
    assert (cut.coverage.run.state, cut.coverage.stop.reason) == ("stopped", "budget:urls")
    assert set(cut.log.hits_by_path()) == {"/", "/0", "/1", "/2", "/3", "/4"}
    assert held(cut) == {"budget.urls": 15}
    (budget,) = cut.coverage.budgets
    assert (budget.rule, budget.limit, budget.used, budget.deferred) == ("budget.urls", 6, 6, 15)
    assert budget.first_example == lab.main / "5"
    assert budget.first_at is not None
    more = await lab.crawl(settings={"FRONTIER_MAX_URLS": 11}, seeds=seeds)
    more.assert_sound()
    assert held(more) == {"budget.urls": 10}
    rest = await lab.crawl(seeds=seeds)
    rest.assert_exhausted()
    assert rest.log.hits_by_path() == Counter(["/", *(f"/{number}" for number in range(20))])


async def test_urls_of_an_origin_do_not_touch_another(lab: Lab) -> None:
    """FRONTIER_MAX_URLS_PER_ORIGIN is counted for each origin alone, and ends no run."""
    other = lab.server.origin("other")
    links = [f"{origin.url}/{number}" for number in range(9) for origin in (lab.main, other)]
    other.otherwise = page("any")
    seeds = pages(lab, links)
    result = await lab.crawl(settings={"FRONTIER_MAX_URLS_PER_ORIGIN": 4}, seeds=seeds)
    result.assert_exhausted()
    assert {hit.url.rpartition("/")[0] for hit in result.log} == {lab.main.url, other.url}
    assert len(result.log.of(lab.main.url)) == len(result.log.of(other.url)) == 4
    assert {budget.pattern: budget.deferred for budget in result.coverage.budgets} == {
        lab.main.url: 6,
        other.url: 5,
    }


async def test_queries_of_a_path(lab: Lab) -> None:
    """FRONTIER_MAX_QUERIES_PER_PATH bounds a search page, and leaves pages without a query alone."""
    links = [f"/search?q={number}" for number in range(30)] + ["/search", "/a", "/b?x=1"]
    seeds = pages(lab, links)
    result = await lab.crawl(settings={"FRONTIER_MAX_QUERIES_PER_PATH": 3}, seeds=seeds)
    result.assert_exhausted()
    assert len(result.log) == 1 + 3 + 3
    (budget,) = result.coverage.budgets
    assert (budget.rule, budget.pattern) == ("budget.queries", f"{lab.main.url}/search?*")
    assert budget.deferred == 27


async def test_budgets_of_a_place(lab: Lab) -> None:
    """A place has limits of its own; the narrowest budget that is spent is named."""
    host = lab.main.url.partition("://")[2]
    places = {
        "archive": {"place": f"{host}/archive", "urls": 3},
        "search": {"place": f"{host}/archive/search", "queries": 1},
        "deep": {"place": f"{host}/deep/", "depth": 1},
    }
    links = [f"/archive/{number}" for number in range(6)]
    links += ["/archive/search?q=1", "/archive/search?q=2", "/deep/1", "/other"]
    lab.main.on("/deep/1", page("", ["/deep/2"]))
    seeds = pages(lab, links)
    settings = {"FRONTIER_PLACE_BUDGETS": places, **ONE_BY_ONE}
    result = await lab.crawl(settings=settings, seeds=seeds)
    result.assert_exhausted()
    assert held(result) == {"budget.place_urls": 5, "budget.place_depth": 1}
    assert result.fate(lab.main / "deep/2").reason == "budget.place_depth"
    assert {budget.pattern for budget in result.coverage.budgets} == {"archive", "deep"}


async def test_a_shorter_way_lifts_the_depth_of_a_place(lab: Lab) -> None:
    """What was too deep is let in when a shorter way to it is found, and counts from then on."""
    host = lab.main.url.partition("://")[2]
    places = {"docs": {"place": f"{host}/d/", "depth": 2}}
    lab.main.on("/", page("", ["/d/1", "/late"]))
    lab.main.on("/d/1", page("", ["/d/2"]))
    lab.main.on("/d/2", page("", ["/d/target"]))
    lab.main.on(
        "/late", Answer(page("", ["/d/target"]).body, delay_s=0.3, headers=page("").headers)
    )
    lab.main.otherwise = page("any")
    result = await lab.crawl(settings={"FRONTIER_PLACE_BUDGETS": places}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.history(lab.main / "d/target")[:3] == ["discover", "defer", "release"]


async def test_bytes_of_the_run(lab: Lab) -> None:
    """When FRONTIER_MAX_BYTES are spent the spider is closed, and says so; what waits stays in the queue."""
    lab.main.on("/", page("", [f"/{number}" for number in range(30)]))
    lab.main.otherwise = Answer(b"x" * 10_000)
    seeds = [lab.main / ""]
    cut = await lab.crawl(settings={"FRONTIER_MAX_BYTES": 45_000, **ONE_BY_ONE}, seeds=seeds)
    cut.assert_sound()
    assert (cut.coverage.run.state, cut.coverage.stop.reason) == ("stopped", "budget:bytes")
    assert 5 <= len(cut.log) <= 7
    assert cut.coverage.identities.unresolved["scheduled"] >= 24
    before = len(cut.log)
    again = await lab.crawl(settings={"FRONTIER_MAX_BYTES": 45_000, **ONE_BY_ONE}, seeds=seeds)
    assert again.coverage.stop.reason == "budget:bytes", "what was spent before counts"
    assert len(again.log) <= before + 1
    rest = await lab.crawl(seeds=seeds)
    rest.assert_finished()
    assert set(rest.log.hits_by_path().values()) == {1}


async def test_bytes_of_an_origin(lab: Lab) -> None:
    """An origin whose bytes are spent is left, its URLs held back; its neighbour goes on."""
    other = lab.server.origin("other")
    links = [f"{origin.url}/{number}" for number in range(12) for origin in (lab.main, other)]
    lab.main.on("/", page("", links))
    lab.main.otherwise = Answer(b"x" * 10_000)
    other.otherwise = Answer(b"y" * 10)
    settings = {"FRONTIER_MAX_BYTES_PER_ORIGIN": 30_000, **ONE_BY_ONE}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log.of(other.url)) == 12
    assert held(result) == {"budget.origin_bytes": 13 - len(result.log.of(lab.main.url))}
    assert result.coverage.budgets[0].pattern == lab.main.url
    rest = await lab.crawl(settings={"FRONTIER_RUN": "rest"}, seeds=[lab.main / ""])
    rest.assert_finished()


async def test_time_of_the_run(lab: Lab) -> None:
    """FRONTIER_MAX_DURATION is the deadline of the run, over all its sessions."""
    lab.main.on("/", page("", [f"/{number}" for number in range(40)]))
    lab.main.otherwise = Answer("slow", delay_s=0.1)
    settings = {"FRONTIER_MAX_DURATION": 0.6, **ONE_BY_ONE}
    cut = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    cut.assert_sound()
    assert (cut.coverage.run.state, cut.coverage.stop.reason) == ("stopped", "deadline")
    before = len(cut.log)
    again = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    assert again.coverage.stop.reason == "deadline"
    assert len(again.log) - before <= 3, "the time of the first session counts"


async def test_a_bounded_queue_loses_nothing(lab: Lab) -> None:
    """FRONTIER_MAX_PENDING holds what is discovered beside the queue, and lets it in as room comes."""
    lab.main.on("/", page("", [f"/{number}" for number in range(200)]))
    lab.main.otherwise = page("any")
    result = await lab.crawl(settings={"FRONTIER_MAX_PENDING": 10}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log) == 201
    assert result.rows("SELECT held FROM budget WHERE rule = 'budget.pending'")[0][0] >= 150
    assert longest_queue(result) == 10
    (budget,) = result.coverage.budgets
    assert (budget.deferred, budget.limit) == (0, 10)
    assert budget.held >= 150


def longest_queue(result: Crawl) -> int:
    """How many identities stood scheduled at once at the most, by the ledger."""
    queue = longest = 0
    for (from_to,) in result.rows("SELECT from_to FROM transition ORDER BY seq"):
        queue += (from_to % 16 == State.SCHEDULED) - (from_to // 16 == State.SCHEDULED)
        longest = max(longest, queue)
    return longest


async def test_what_waits_beside_the_queue_survives_a_stop(lab: Lab) -> None:
    """A resumed run lets it in, also where the queue is not bounded any more."""
    lab.main.on("/", page("", [f"/{number}" for number in range(50)]))
    lab.main.otherwise = page("any")
    seeds = [lab.main / ""]
    settings = {"FRONTIER_MAX_PENDING": 5, "CLOSESPIDER_PAGECOUNT": 4, **ONE_BY_ONE}
    cut = await lab.crawl(settings=settings, seeds=seeds)
    assert cut.coverage.stop.reason == "budget:pages"
    assert held(cut).get("budget.pending", 0) > 30
    rest = await lab.crawl(seeds=seeds)
    rest.assert_exhausted()
    assert len(rest.log) == 51


async def test_a_seed_beyond_the_budget_is_in_the_account(lab: Lab) -> None:
    """Seeds count as any other URL, each once, also when the run is resumed."""

    class Seeds(Follower):
        async def start(self) -> Any:
            for number in range(5):
                yield Request(lab.main / f"{number}", dont_filter=True)

    lab.main.otherwise = page("any")
    cut = await lab.crawl(Seeds, {"FRONTIER_MAX_URLS": 2})
    cut.assert_sound()
    assert held(cut) == {"budget.urls": 3}
    again = await lab.crawl(Seeds, {"FRONTIER_MAX_URLS": 2})
    again.assert_sound()
    assert held(again) == {"budget.urls": 3}
    assert len(again.log) == 2


async def test_a_redirect_beyond_the_budget_waits(lab: Lab) -> None:
    """The target of a redirect counts; where no room is left it is held back, and its callback comes later."""
    from scrapy_frontier.testing import redirect

    lab.main.on("/", redirect("/there"))
    lab.main.on("/there", page("there"))
    cut = await lab.crawl(settings={"FRONTIER_MAX_URLS": 1}, seeds=[lab.main / ""])
    cut.assert_sound()
    assert cut.log.hits_by_path() == {"/": 1}
    assert held(cut) == {"budget.urls": 1}
    rest = await lab.crawl(settings={"FRONTIER_MAX_URLS": 5}, seeds=[lab.main / ""])
    rest.assert_exhausted()
    assert rest.log.hits_by_path() == {"/": 1, "/there": 1}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FRONTIER_MAX_URLS", 0, "at least 1"),
        ("FRONTIER_MAX_DURATION", -1, "above 0"),
        ("FRONTIER_PLACE_BUDGETS", {"a": {"urls": 3}}, "'place'"),
        ("FRONTIER_PLACE_BUDGETS", {"a": {"place": "x.org"}}, "limits nothing"),
        ("FRONTIER_PLACE_BUDGETS", {"a": {"place": "x.org", "url": 3}}, "unknown key 'url'"),
        ("FRONTIER_PLACE_BUDGETS", {"a": {"place": "x.org", "depth": -1}}, "at least 0"),
        ("FRONTIER_PLACE_BUDGETS", {"a": {"place": "ftp://x.org", "urls": 1}}, "scheme"),
        ("FRONTIER_PLACE_BUDGETS", [1], "must be a dictionary"),
    ],
)
def test_bad_budgets_are_refused(lab: Lab, name: str, value: Any, words: str) -> None:
    """A budget that cannot be kept names the setting and what it must be."""
    with pytest.raises(ConfigError, match=name) as refused:
        lab.crawler(Follower, {name: value})._apply_settings()
    assert words in str(refused.value)


async def test_a_scope_for_what_is_left(lab: Lab) -> None:
    """A run that was cut leaves a scope; a new run with it fetches what was left, and nothing else."""
    links = [f"/done/{number}" for number in range(3)] + [f"/left/{number}" for number in range(9)]
    seeds = pages(lab, links)
    cut = await lab.crawl(settings={"FRONTIER_MAX_URLS": 4}, seeds=seeds)
    (region,) = cut.coverage.unfinished.regions
    assert (region.place, region.deferred, region.by_rule) == (
        lab.main / "left/",
        9,
        {"budget.urls": 9},
    )
    (path,) = (lab.folder / "reports").glob("*.scope.json")
    scope = json.loads(path.read_text())["FRONTIER_SCOPE"]
    second = await lab.crawl(
        settings={"FRONTIER_RUN": "second", "FRONTIER_SCOPE": scope},
        seeds=[lab.main / f"{link[1:]}" for link in links],
    )
    second.assert_finished()
    fetched = {url for url, fate in second.fates.items() if fate.end == "succeeded"}
    assert fetched == {lab.main / f"left/{number}" for number in range(9)}
    assert second.coverage.unfinished.scope is None


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://a.example/", "https://a.example/"),
        ("https://a.example/page?x=/y/", "https://a.example/"),
        ("https://a.example/docs/page", "https://a.example/docs/"),
        ("https://a.example/docs/deep/page;v=/1", "https://a.example/docs/"),
        ("https://a.example:8443/docs/", "https://a.example:8443/docs/"),
        ("https://a.example/@user/page", "https://a.example/"),
    ],
)
def test_places_of_what_is_left(url: str, place: str) -> None:
    """A region is a place as FRONTIER_SCOPE takes it, and its URLs lie in it."""
    assert place_of(url) == place
    assert Scope.from_setting({"include": [place]}).decide(url, origin_of(url)).excludes is False
