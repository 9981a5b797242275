"""What the documentation shows in Python is used: settings and spiders by a crawl, the rest as it stands."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from crawls import Follower, Lab
from documentation import blocks
from scrapy import Request, Spider
from scrapy.crawler import CrawlerRunner
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from test_crawl_metrics import free_port

from scrapy_frontier.testing import page

NOT_HERE = {
    "FRONTIER_STORE",  # a server, or a file beside the spider
    "FRONTIER_ARTIFACTS",  # a bucket
    "FRONTIER_RENDER",  # a browser: test_render.py
    "FRONTIER_METRICS_PORT",  # one that may be taken
    "JOBDIR",
    "TWISTED_DNS_RESOLVER",  # belongs to the process: test_resolver_process.py
}
"""Settings whose value is not that of the page, because this machine lacks what it names."""


def python(*, of_settings: bool) -> list[Any]:
    """Every block of Python that assigns settings and nothing else, or every other one."""
    return [
        block
        for block in blocks("python")
        if all(map(_is_setting, ast.parse(block.values[0]).body)) is of_settings
    ]


def _is_setting(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.isupper()
    return False


def run(source: str, **names: Any) -> dict[str, Any]:
    """All names after the block was run among these."""
    exec(compile(source, "block", "exec"), names)
    return names


def make_pages(lab: Lab) -> None:
    lab.main.on("/", page("Home", ["/a"]))
    lab.main.on("/a", page("A"))
    lab.main.on("/result", page("Sold"))


@pytest.mark.parametrize("source", python(of_settings=True))
async def test_settings_are_crawled_with(source: str, lab: Lab) -> None:
    """A crawl with the settings of a block runs, and its account adds up."""
    make_pages(lab)
    settings = {name: value for name, value in run(source).items() if name.isupper()}
    for name in NOT_HERE & set(settings):
        value = settings.pop(name)
        if name == "TWISTED_DNS_RESOLVER":
            load_object(value)
        if name == "FRONTIER_METRICS_PORT":
            settings[name] = free_port()
    settings |= {"AUTOTHROTTLE_START_DELAY": 0.1} if "AUTOTHROTTLE_ENABLED" in settings else {}
    crawl = await lab.crawl(settings=settings, seeds=[lab.main / ""])
    crawl.assert_sound()
    assert crawl.reason == "finished"
    assert lab.main / "" in crawl.fates


@pytest.mark.parametrize("source", python(of_settings=False))
async def test_code_is_run(source: str, lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A spider crawls, a script does what it says."""
    from twisted.internet import reactor

    make_pages(lab)
    resolver: Any = reactor.nameResolver  # type: ignore[attr-defined]
    try:
        names = run(source, url=lab.main / "", Request=Request, runner=CrawlerRunner(Settings()))
    finally:
        reactor.installNameResolver(resolver)  # type: ignore[attr-defined]
    spiders = [
        found
        for found in names.values()
        if isinstance(found, type) and issubclass(found, Spider) and "name" in vars(found)
    ]
    for shown in spiders:
        here = type(shown.__name__, (shown,), {"start_urls": [lab.main / ""]})
        here.allowed_domains = []  # type: ignore[attr-defined]
        crawl = await lab.crawl(here, {"FRONTIER_MAX_DURATION": 3})
        crawl.assert_sound()
        assert crawl.failed == []
        assert crawl.fate(lab.main / "").attempts >= 1
    if "print(" in source:
        assert capsys.readouterr().out.strip()


def test_every_kind_of_block_is_found() -> None:
    """The sorting above has something on either side."""
    assert len(python(of_settings=True)) > 25
    assert len(python(of_settings=False)) > 4
    assert issubclass(Follower, Spider)
