"""The figures of a crawl: in Scrapy's stats, to Prometheus, and all of them documented."""

from __future__ import annotations

import ast
import asyncio
import re
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawls import Follower, Lab
from processes import CrawlProcess, make_web
from prometheus_client.parser import text_string_to_metric_families

import scrapy_frontier
from scrapy_frontier.frontier.metrics import METRICS
from scrapy_frontier.frontier.statistics import COUNTERS, ELSEWHERE, MEANINGS
from scrapy_frontier.testing import text

PACKAGE = Path(scrapy_frontier.__file__).parent


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def scrape(port: int) -> str:
    """What Prometheus would be told."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


class Scraper(Follower):
    """Follows every link, and asks for the metrics at the third page."""

    name = "scraper"
    told: str = ""
    port: int = 0
    pages = 0

    async def parse(self, response: Any) -> Any:
        self.pages += 1
        if self.pages == 3:
            type(self).told = await asyncio.to_thread(scrape, self.port)
        for request in response.follow_all(css="a"):
            yield request


async def test_every_figure_of_a_crawl_is_documented(lab: Lab) -> None:
    """What a crawl writes under `frontier/` is what the table has, neither more nor less; counters are counters."""
    make_web(lab.main, 5)
    lab.main.on("/robots.txt", text("User-agent: *\nDisallow: /p3\n"))
    lab.settings["ROBOTSTXT_OBEY"] = True
    crawl = await lab.crawl(Follower, seeds=[lab.main / "p0"])
    crawl.assert_finished()
    own = {name for name in crawl.stats if name.startswith("frontier/")}
    assert own == {name for name in MEANINGS if name.startswith("frontier/")}
    assert set(MEANINGS) <= set(crawl.stats)
    assert crawl.stats["robotstxt/forbidden"] == 1
    assert set(MEANINGS) >= COUNTERS


def test_all_that_is_counted_elsewhere_is_documented() -> None:
    """A stat that the package writes where it happens is named beside the figures."""
    assert set(_counted()) == set(ELSEWHERE)


def _counted() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            match call:
                case ast.Call(
                    func=ast.Attribute(attr="inc_value" | "max_value" | "min_value"),
                    args=[ast.Constant(value=str(name)), *_],
                ):
                    yield name


async def test_prometheus_is_told_every_figure_by_its_documented_name(lab: Lab) -> None:
    """Names, types and labels are those of the table; the values those of the stats."""
    make_web(lab.main, 6)
    Scraper.port = lab.settings["FRONTIER_METRICS_PORT"] = free_port()
    crawl = await lab.crawl(Scraper, seeds=[lab.main / "p0"])
    crawl.assert_exhausted()
    families = {family.name: family for family in text_string_to_metric_families(Scraper.told)}
    about = families.pop("frontier_run_info")
    assert about.samples[0].labels["run"] == "test"
    assert {name: family.type for name, family in families.items()} == {
        metric.name: metric.kind for metric in METRICS
    }
    for metric in METRICS:
        for sample in families[metric.name].samples:
            assert sample.name == metric.sample
            assert set(sample.labels) == set(metric.labels)
            assert sample.labels["spider"] == "scraper"
    assert families["frontier_answered"].samples[0].value >= 3
    assert len(families["frontier_band"].samples) == 7
    assert {s.labels["state"] for s in families["frontier_gates"].samples} >= {"open", "backoff"}
    # The port is free again.
    with socket.create_server(("127.0.0.1", Scraper.port)):
        pass


def test_metrics_have_the_names_that_prometheus_asks_for() -> None:
    """Base units, no name twice, none that prometheus-client would change."""
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"frontier(_[a-z]+)+", name) for name in names)
    assert "frontier_writer_mean_commit_seconds" in names
    assert not any(name.endswith(("_s", "_total")) for name in names)


@pytest.mark.slow
def test_a_port_that_is_taken_ends_the_crawl_before_it_begins(lab: Lab) -> None:
    """The operator is told which setting, and what to do; nothing was requested."""
    make_web(lab.main, 2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with CrawlProcess(lab, lab.main / "p0", {"FRONTIER_METRICS_PORT": port}) as process:
            log = process.wait()
    assert f"FRONTIER_METRICS_PORT = {port}: 127.0.0.1 cannot be listened on" in log
    assert process.process.returncode == 1
    assert lab.server.log.hits_by_url() == {}


@pytest.mark.slow
def test_without_the_extra_the_crawl_does_not_begin(lab: Lab) -> None:
    """The error names what to install."""
    make_web(lab.main, 2)
    hidden = "import sys\nsys.modules['prometheus_client'] = None\n"
    spider = hidden + PLAIN
    with CrawlProcess(lab, lab.main / "p0", {"FRONTIER_METRICS_PORT": 0}, spider) as process:
        log = process.wait()
    assert "install scrapy-frontier[prometheus]" in log
    assert process.process.returncode == 1
    assert lab.server.log.hits_by_url() == {}


PLAIN = """
import scrapy


class Follower(scrapy.Spider):
    name = "follower"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [seed]

    def parse(self, response):
        pass
"""
