"""An earlier run parsed again: new code, old responses, no request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request

from scrapy_frontier.testing import Answer, page, redirect


class Titles(Follower):
    """The parser of the first run: it overlooks the text, and the links of class `more`."""

    def parse(self, response: Any) -> Any:
        yield {"title": response.css("h1::text").get()}
        for link in response.css("a:not([href*=more])"):
            yield response.follow(link, callback=self.parse, cb_kwargs={})


class Texts(Follower):
    """The parser of the second run."""

    custom_settings = {"RETRY_TIMES": 3}

    def parse(self, response: Any) -> Any:
        yield {"text": response.css("p::text").get(), "url": response.url}
        yield from response.follow_all(css="a")
        yield Request(response.url, callback=self.parse, dont_filter=True)


def script(lab: Lab) -> None:
    origin = lab.main
    origin.on("/", page("Start", ["/a", "/moved", "/flaky", "/gone", "/more"], "start"))
    origin.on("/a", Answer(page("A", ["/", "/more?2"], "text of a").body, is_gzipped=True))
    origin.on("/b", page("B", text="text of b"))
    origin.on("/moved", redirect("/b"))
    origin.on("/flaky", [Answer(status=503), page("Flaky", text="at last")])
    origin.on("/gone", Answer(status=410))


SETTINGS = {"FRONTIER_EVIDENCE": "body", "RETRY_TIMES": 1, "FRONTIER_RETRY_DELAY": 0.01}


async def first(lab: Lab, **settings: Any) -> Crawl:
    script(lab)
    result = await lab.crawl(Titles, {**SETTINGS, **settings}, seeds=[lab.main / ""])
    return result.assert_exhausted()


async def again(lab: Lab, spider: Any = Texts, **settings: Any) -> Crawl:
    return await lab.crawl(
        spider,
        {"FRONTIER_REPARSE": "test", "FRONTIER_RUN": None, **settings},
        seeds=[lab.main / "never"],
    )


async def test_the_new_parser_gets_every_page_and_the_server_no_request(lab: Lab) -> None:
    earlier = await first(lab)
    asked = len(lab.server.log)
    result = (await again(lab)).assert_finished()
    assert len(lab.server.log) == asked
    texts = {item["url"]: item["text"] for item in result.items}
    assert texts == {
        lab.main / "": "start",
        lab.main / "a": "text of a",
        lab.main / "b": "text of b",
        lab.main / "flaky": "at last",
    }
    assert result.run_id > earlier.run_id
    ends = {url: fate.end for url, fate in result.fates.items() if fate.end != "deferred"}
    assert ends == {url: fate.end for url, fate in earlier.fates.items()}


async def test_new_links_are_recorded_and_wait(lab: Lab) -> None:
    await first(lab)
    result = (await again(lab)).assert_finished()
    deferred = {url for url, fate in result.fates.items() if fate.end == "deferred"}
    assert deferred == {lab.main / "more", lab.main / "more?2"}
    assert {result.fate(url).reason for url in deferred} == {"reparse.offline"}
    assert dict(result.coverage.identities.deferred) == {"reparse.offline": 2}


async def test_each_page_has_one_attempt_that_says_where_its_answer_came_from(lab: Lab) -> None:
    await first(lab)
    result = await again(lab)
    assert set(result.coverage.attempts.by_outcome) == {"evidence.replayed"}
    assert result.coverage.attempts.total == 6
    assert result.history(lab.main / "a")[-3:] == ["dispatch", "respond", "process"]


async def test_start_is_not_run(lab: Lab) -> None:
    await first(lab)
    result = await again(lab)
    assert lab.main / "never" not in result.fates


async def test_without_bodies_there_is_nothing_to_parse(lab: Lab) -> None:
    await first(lab, FRONTIER_EVIDENCE="headers")
    asked = len(lab.server.log)
    result = (await again(lab)).assert_finished()
    assert result.items == []
    assert len(lab.server.log) == asked


async def test_one_that_was_stopped_is_not_resumed_as_a_crawl(lab: Lab) -> None:
    """It has nothing to fetch; a crawl of the same name or job begins a run of its own."""
    await first(lab)
    stopped = await again(
        lab, FRONTIER_RUN="second", CLOSESPIDER_ITEMCOUNT=1, CONCURRENT_REQUESTS=1
    )
    assert stopped.coverage.run.state == "stopped"
    stopped.assert_reconciled()
    crawled = await lab.crawl(Titles, {**SETTINGS, "FRONTIER_RUN": "second"}, seeds=[lab.main / ""])
    assert crawled.run_id > stopped.run_id
    crawled.assert_finished()
    assert crawled.fate(lab.main / "a").end == "succeeded"


async def test_a_run_of_another_spider_is_refused(lab: Lab) -> None:
    class Other(Follower):
        name = "other"

    await first(lab)
    with pytest.raises(Exception, match="FRONTIER_REPARSE"):
        await again(lab, Other)


class Fetches(Follower):
    """Asks past the scheduler, as a media pipeline does."""

    async def parse(self, response: Any) -> Any:
        assert self.crawler.engine is not None
        got = await self.crawler.engine.download_async(Request(response.urljoin("/file")))
        yield {"/file": got.body}
        try:
            await self.crawler.engine.download_async(Request(response.urljoin("/unknown")))
        except IgnoreRequest as error:
            yield {"/unknown": str(error)}


async def test_what_components_ask_for_is_answered_from_evidence_or_refused(lab: Lab) -> None:
    class FetchesOne(Fetches):
        async def parse(self, response: Any) -> Any:
            assert self.crawler.engine is not None
            got = await self.crawler.engine.download_async(Request(response.urljoin("/file")))
            yield {"/file": got.body}

    lab.main.on("/", page("Start"))
    lab.main.on("/file", Answer(b"\0file", content_type="application/octet-stream"))
    await lab.crawl(FetchesOne, SETTINGS, seeds=[lab.main / ""])
    asked = len(lab.server.log)
    result = (await again(lab, Fetches)).assert_finished()
    assert len(lab.server.log) == asked
    assert result.items[0] == {"/file": b"\0file"}
    assert "sends no request" in result.items[1]["/unknown"]
    assert result.fate(lab.main / "unknown").reason == "reparse.offline"


PROJECT = """
import scrapy


class Follower(scrapy.Spider):
    name = "follower"
    custom_settings = {"FEEDS": {"items.jsonl": {"format": "jsonlines"}}}

    def parse(self, response):
        yield {"url": response.url, "parser": self.parser}
"""


@pytest.mark.slow
async def test_the_command_runs_the_projects_spider_and_its_feeds(lab: Lab) -> None:
    await first(lab)
    asked = len(lab.server.log)
    project = lab.folder / "project"
    package = project / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "spider.py").write_text(PROJECT)
    (package / "settings.py").write_text(
        'SPIDER_MODULES = ["shop.spider"]\nADDONS = {"scrapy_frontier.Addon": 500}\n'
        f"FRONTIER_STORE = {lab.store_url!r}\n"
    )
    (project / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    done = run_command(project, "test", "-a", "parser=2")
    assert done.returncode == 0, done.stderr
    assert len((project / "items.jsonl").read_text().splitlines()) == 4
    assert len(lab.server.log) == asked
    assert run_command(project, "nothing").returncode == 2


def run_command(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", "frontier", "reparse", *arguments]
    return subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=False, timeout=60
    )
