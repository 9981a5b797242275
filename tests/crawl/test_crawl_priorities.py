"""Priorities: which URL of an origin goes first, and why, by the order in which the server was asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab
from scrapy import Request

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.testing import page

ONE_BY_ONE = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "CONCURRENT_REQUESTS": 1}


def order(result: Crawl) -> list[str]:
    """The paths in the order in which they were asked for."""
    return [hit.path for hit in result.log]


async def test_breadth_first_by_default(lab: Lab) -> None:
    """Pages of one priority go in the order in which they were found: the near ones before the far ones."""
    lab.main.on("/", page("", ["/a", "/b"]))
    lab.main.on("/a", page("", ["/a/1"]))
    lab.main.on("/a/1", page("", ["/a/1/x"]))
    lab.main.on("/b", page("", ["/b/1"]))
    lab.main.otherwise = page("any")
    result = await lab.crawl(settings=ONE_BY_ONE, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert order(result) == ["/", "/a", "/b", "/a/1", "/b/1", "/a/1/x"]


async def test_the_narrowest_rule_decides(lab: Lab) -> None:
    """FRONTIER_PRIORITY_RULES moves places forward and back, and the ledger says by which rule."""
    host = lab.main.url.partition("://")[2]
    rules = {
        "all": {"place": host, "points": 5},
        "news": {"place": f"{host}/news", "points": 9},
        "old": {"place": f"{host}/news/old", "points": 2},
    }
    links = ["/first", "/news/old/1", "/other", "/news/1", "/news/old/2", "/news/2"]
    lab.main.on("/", page("", links))
    lab.main.otherwise = page("any")
    settings = {"FRONTIER_PRIORITY_RULES": rules, **ONE_BY_ONE}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    # The first link may go out before the others are on disk.
    assert [path for path in order(result)[1:] if path != "/first"] == [
        "/news/1",
        "/news/2",
        "/other",
        "/news/old/1",
        "/news/old/2",
    ]
    details = result.rows(
        "SELECT i.url, t.detail FROM transition AS t JOIN identity AS i USING (identity_id)"
        " JOIN reason AS r ON r.reason_id = t.reason_id WHERE r.code = 'priority.points'"
    )
    told = {url.removeprefix(lab.main.url): json.loads(detail) for url, detail in details}
    assert told["/news/1"] == {"priority": 0, "rule": "news", "points": 9}
    assert told["/news/old/1"] == {"priority": 0, "rule": "old", "points": 2}
    assert told["/other"] == {"priority": 0, "rule": "all", "points": 5}


async def test_depth_as_points(lab: Lab) -> None:
    """With a weight above 0 the far ones go first."""
    lab.main.on("/", page("", ["/a", "/b", "/c", "/d"]))
    lab.main.on("/a", page("", ["/a/1"]))
    lab.main.otherwise = page("any")
    settings = {"FRONTIER_PRIORITY_WEIGHTS": {"depth": 1}, **ONE_BY_ONE}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert order(result).index("/a/1") < order(result).index("/d")


async def test_links_are_votes(lab: Lab) -> None:
    """A page that many link to overtakes those found before it."""
    first = [f"/p{number}" for number in range(12)]
    lab.main.on("/", page("", [*first, "/plain", "/popular"]))
    for path in first:
        lab.main.on(path, page("", ["/popular"]))
    lab.main.otherwise = page("any")
    settings = {"FRONTIER_PRIORITY_WEIGHTS": {"links": 1}, **ONE_BY_ONE}
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    asked = order(result)
    assert asked.index("/popular") < asked.index("/p9") < asked.index("/plain")
    assert result.stats["frontier/promoted"] >= 1
    assert sum(result.stats[f"frontier/band/{band}"] for band in range(7)) == 0


async def test_links_that_are_promoted_while_they_are_handed_out(lab: Lab) -> None:
    """Whatever is promoted when, nothing is fetched twice and nothing is lost."""
    paths = [f"/p{number}" for number in range(60)]
    for path in ["/", *paths]:
        lab.main.on(path, page("", paths))
    settings = {
        "FRONTIER_PRIORITY_WEIGHTS": {"links": 3},
        "FRONTIER_WINDOW": 7,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    }
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert set(result.log.hits_by_path().values()) == {1}
    assert result.stats["frontier/promoted"] > 10


async def test_what_an_earlier_run_has_not_seen_for_long_goes_first(lab: Lab) -> None:
    """Freshness: a page that no run knows goes before one that the last run has fetched."""
    lab.main.on("/", page("", ["/known/1", "/known/2"]))
    lab.main.otherwise = page("any")
    before = await lab.crawl(settings={"FRONTIER_RUN": "one"}, seeds=[lab.main / ""])
    before.assert_finished()
    lab.main.on("/", page("", ["/known/1", "/known/2", "/new"]))
    settings = {
        "FRONTIER_RUN": "two",
        "FRONTIER_PRIORITY_WEIGHTS": {"freshness": 1},
        **ONE_BY_ONE,
    }
    asked_before = len(before.log)
    result = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    result.assert_finished()
    assert order(result)[asked_before:] == ["/", "/new", "/known/1", "/known/2"]


async def test_a_retry_keeps_the_points_of_its_place(lab: Lab) -> None:
    """A further attempt stands where the first one stood, moved by RETRY_PRIORITY_ADJUST alone."""
    from scrapy_frontier.testing import text

    host = lab.main.url.partition("://")[2]
    rules = {"first": {"place": f"{host}/first", "points": 10}}
    answers = iter([text("down", 500), page("up")])
    lab.main.on("/first", lambda request: next(answers))
    settings = {
        "FRONTIER_PRIORITY_RULES": rules,
        "FRONTIER_RETRY_DELAY": 0.05,
        "RETRY_TIMES": 2,
        **ONE_BY_ONE,
    }
    result = await lab.crawl(settings=settings, seeds=[lab.main / "first"])
    result.assert_exhausted()
    assert result.rows("SELECT rank FROM visit") == [(-9,)]


async def test_no_band_starves(lab: Lab) -> None:
    """While urgent work never ends, the least urgent page gets its turn all the same."""

    class Endless(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "0", priority=100)
            yield Request(lab.main / "humble", priority=-1000)

        def parse(self, response: Any) -> Any:
            number = response.url.rpartition("/")[2]
            if number.isdigit() and int(number) < 80:
                yield Request(lab.main / f"{int(number) + 1}", priority=100)
                yield Request(lab.main / f"more/{number}", priority=100)

    lab.main.otherwise = page("any")
    result = await lab.crawl(Endless, ONE_BY_ONE)
    result.assert_exhausted()
    assert order(result).index("/humble") <= 130, "one turn in 127 belongs to the last band"
    assert len(result.log) > 150


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FRONTIER_PRIORITY_RULES", {"a": {"place": "x.org"}}, "'points'"),
        ("FRONTIER_PRIORITY_RULES", {"a": {"place": "x.org", "points": 1.5}}, "whole number"),
        ("FRONTIER_PRIORITY_RULES", {"a": {"place": "x.org?y", "points": 1}}, "leave out"),
        ("FRONTIER_PRIORITY_WEIGHTS", {"deep": 1}, "unknown key 'deep'"),
        ("FRONTIER_PRIORITY_WEIGHTS", {"links": -1}, "at least 0"),
    ],
)
def test_bad_priorities_are_refused(lab: Lab, name: str, value: Any, words: str) -> None:
    """A priority that cannot be kept names the setting and what it must be."""
    with pytest.raises(ConfigError, match=name) as refused:
        lab.crawler(Follower, {name: value})._apply_settings()
    assert words in str(refused.value)
