"""Bad input ends in one clear error that names the thing and the remedy, before any request where that can be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawls import BASE_SETTINGS, Crawl, Follower, Lab, needs_two_writers
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.utils.defer import deferred_from_coro

from scrapy_frontier.errors import ConfigError, FrontierError, RunLocked, SchemaMismatch, StoreError
from scrapy_frontier.frontier import Frontier
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Answer, page


async def refused(
    lab: Lab, settings: dict[str, Any] | None = None, spider: type[Spider] = Follower
) -> FrontierError:
    """The error that a crawl ends with; no request may have gone out."""
    lab.main.otherwise = page("any")
    crawler = lab.crawler(spider, settings)
    with pytest.raises(FrontierError) as caught:
        await deferred_from_coro(crawler.crawl_async(seeds=[lab.main / ""]))
    assert len(lab.server.log) == 0
    return caught.value


# Settings


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"FRONTIER_STOER": "x"}, ["FRONTIER_STOER", "FRONTIER_STORE"]),
        ({"FRONTIER_WINDOW": 0}, ["FRONTIER_WINDOW", "0", "at least 1"]),
        ({"FRONTIER_MAX_LAG": "soon"}, ["FRONTIER_MAX_LAG", "soon"]),
        ({"FRONTIER_SYNCHRONOUS": "OFF"}, ["FRONTIER_SYNCHRONOUS", "OFF", "FULL or NORMAL"]),
        ({"FRONTIER_BAND_SHARES": [1, 2]}, ["FRONTIER_BAND_SHARES", "7 numbers"]),
        ({"FRONTIER_SCOPE": {"inclued": []}}, ["FRONTIER_SCOPE", "inclued", "include"]),
        ({"FRONTIER_SCOPE": {"include": ["http://["]}}, ["FRONTIER_SCOPE", "http://["]),
        ({"FRONTIER_PARAMETER_RULES": [{"nom": 1}]}, ["FRONTIER_PARAMETER_RULES", "nom"]),
        ({"FRONTIER_LINK_INVENTORY": "maybe"}, ["FRONTIER_LINK_INVENTORY", "maybe"]),
        ({"CONCURRENT_REQUESTS_PER_DOMAIN": 0}, ["CONCURRENT_REQUESTS_PER_DOMAIN", "at least 1"]),
    ],
)
async def test_wrong_setting(lab: Lab, settings: dict[str, Any], parts: list[str]) -> None:
    """The message names the setting, its value and what it must be."""
    error = await refused(lab, settings)
    assert isinstance(error, ConfigError)
    for part in parts:
        assert part in str(error)


@pytest.mark.parametrize(
    "text", ["not a url", "mysql://x/y", "postgresql+asyncpg://x/y", "sqlite:///a?b=1"]
)
async def test_wrong_store_url(lab: Lab, text: str) -> None:
    """A store that cannot be is refused with an example of one that can."""
    error = await refused(lab, {"FRONTIER_STORE": text})
    assert "write " in str(error)


async def test_project_with_its_own_scheduler(lab: Lab) -> None:
    """Two schedulers cannot both decide: the project is told to choose."""
    error = await refused(lab, {"SCHEDULER": "scrapy.core.scheduler.Scheduler"})
    assert "SCHEDULER" in str(error)
    assert "ADDONS" in str(error)


async def test_frontier_switched_off(lab: Lab) -> None:
    """FRONTIER_ENABLED = False leaves a plain Scrapy: no store, and the crawl works."""
    lab.main.otherwise = page("any")
    crawler = lab.crawler(Follower, {"FRONTIER_ENABLED": False})
    await deferred_from_coro(crawler.crawl_async(seeds=[lab.main / ""]))
    assert len(lab.server.log) == 1
    assert not (lab.folder / "store.db").exists()


# Stores


def not_a_database(path: Path) -> None:
    path.write_bytes(b"This is a text about crawling. " * 100)


def somebody_elses(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()


def newer(path: Path) -> None:
    open_store(f"sqlite:///{path}", create=True).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '9999' WHERE key = 'schema'")
    connection.close()


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (not_a_database, "not an SQLite database"),
        (somebody_elses, "name another file"),
        (newer, "upgrade"),
    ],
)
async def test_store_that_is_not_ours(lab: Lab, make: Callable[[Path], None], part: str) -> None:
    """A file that is something else is refused and left as it is."""
    path = lab.folder / "store.db"
    make(path)
    before = path.read_bytes()
    error = await refused(lab)
    assert isinstance(error, SchemaMismatch)
    assert str(path) in str(error)
    assert part in str(error)
    assert path.read_bytes() == before


async def test_store_in_a_folder_that_is_missing(lab: Lab) -> None:
    """A mistyped path is an error, not a new tree of folders."""
    path = lab.folder / "no" / "such" / "store.db"
    error = await refused(lab, {"FRONTIER_STORE": f"sqlite:///{path}"})
    assert str(path.parent) in str(error)


async def test_store_that_is_a_folder(lab: Lab) -> None:
    """A folder cannot be a store; the message proposes a name in it."""
    error = await refused(lab, {"FRONTIER_STORE": f"sqlite:///{lab.folder}"})
    assert "is a directory" in str(error)


# Runs


async def test_run_of_another_spider(lab: Lab) -> None:
    """An unfinished run belongs to its spider; another one under its name is refused."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            raise CloseSpider("for_now")

    class Other(Follower):
        name = "other"

    lab.main.otherwise = page("any")
    await lab.crawl(Stops, seeds=[lab.main / "1", lab.main / "2"])
    before = len(lab.server.log)
    crawler = lab.crawler(Other)
    with pytest.raises(ConfigError, match=r"FRONTIER_RUN = 'test'.*'follower'.*'other'"):
        await deferred_from_coro(crawler.crawl_async(seeds=[lab.main / ""]))
    assert len(lab.server.log) == before

    finished = await lab.crawl(Follower, seeds=[lab.main / "1", lab.main / "2"])
    finished.assert_exhausted()
    mine = await lab.crawl(Other, seeds=[lab.main / "1"])
    mine.assert_sound()
    assert mine.coverage.run.spider == "other"


@needs_two_writers
async def test_run_that_is_being_crawled(lab: Lab) -> None:
    """A second opening of a run is refused, and the first goes on."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            raise CloseSpider("for_now")

    lab.main.otherwise = page("any")
    stopped = await lab.crawl(Stops, seeds=[lab.main / "1", lab.main / "2"])
    before = len(lab.server.log)
    with open_store(lab.store_url) as store, RunLock(store, stopped.run_id):
        crawler = lab.crawler(Follower)
        with pytest.raises(RunLocked, match="another FRONTIER_RUN"):
            await deferred_from_coro(crawler.crawl_async(seeds=[lab.main / "1"]))
    assert len(lab.server.log) == before


async def test_refusal_leaves_the_store_free(lab: Lab) -> None:
    """A crawl that was refused holds no lock: the next one starts at once."""
    lab.main.otherwise = page("any")
    with pytest.raises(ConfigError):
        await deferred_from_coro(
            lab.crawler(Follower, {"CONCURRENT_REQUESTS_PER_DOMAIN": 0}).crawl_async(seeds=[])
        )
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()


# Failures under way


def frontier_of(crawler: Crawler) -> Any:
    return Frontier.of(crawler).opened


async def crawl_with_fault(lab: Lab, fault: Callable[[Crawler], Any], **settings: Any) -> Crawl:
    """A crawl of many pages whose store begins to fail after some of them."""
    lab.main.on("/", page("", [f"/{number}" for number in range(60)]))
    lab.main.otherwise = Answer(page("", ["/x", "/y"]).body, delay_s=0.01)

    is_sound = True

    def on_response(response: Any, request: Any, spider: Spider) -> None:
        nonlocal is_sound
        if is_sound and len(lab.server.log) >= 12:
            is_sound = False
            fault(spider.crawler)

    def before(crawler: Crawler) -> None:
        crawler.signals.connect(on_response, signals.response_received, weak=False)

    return await lab.crawl(
        settings={"CONCURRENT_REQUESTS": 4, **settings}, before=before, seeds=[lab.main / ""]
    )


def fill_the_disk(crawler: Crawler) -> None:
    connection = frontier_of(crawler).store.writer_connection()
    pages = connection.connection.execute("PRAGMA page_count").fetchone()[0]
    connection.connection.execute(f"PRAGMA max_page_count = {pages + 1}")


def take_the_write_permission(crawler: Crawler) -> None:
    frontier_of(crawler).store.writer_connection().connection.execute("PRAGMA query_only = ON")


def drop_a_table(crawler: Crawler) -> None:
    connection = sqlite3.connect(frontier_of(crawler).store.path)
    connection.execute("ALTER TABLE attempt RENAME TO attempt_gone")
    connection.commit()
    connection.close()


def put_it_back(lab: Lab) -> None:
    connection = sqlite3.connect(lab.folder / "store.db")
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'attempt_gone'").fetchone():
        connection.execute("ALTER TABLE attempt_gone RENAME TO attempt")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (fill_the_disk, "disk is full"),
        (take_the_write_permission, "cannot be written"),
        (drop_a_table, "attempt"),
    ],
)
async def test_store_that_fails_stops_the_crawl(
    lab: Lab, caplog: Any, fault: Callable[[Crawler], None], part: str
) -> None:
    """The crawl stops with the reason `error`, keeps what was committed, and can be resumed."""
    stopped = await crawl_with_fault(lab, fault)
    assert stopped.reason == "frontier_error"
    assert isinstance(Frontier.of(stopped.crawler).error, StoreError)
    assert part in caplog.text
    assert len(stopped.log) < 63
    put_it_back(lab)
    assert stopped.findings == []
    assert stopped.coverage.identities.discovered >= 12
    assert stopped.coverage.run.state != "finished"
    at_most_repeated = 3 * 4

    resumed = await lab.crawl(seeds=[lab.main / ""])
    resumed.assert_sound()
    assert resumed.coverage.stop.reason == "exhausted"
    assert set(resumed.log.hits_by_path()) == {
        "/",
        "/x",
        "/y",
        *(f"/{number}" for number in range(60)),
    }
    assert len(resumed.log) <= 63 + at_most_repeated


async def test_stop_reason_of_a_failed_store_is_written_where_it_can_be(lab: Lab) -> None:
    """A fault that has gone by the time of closing leaves `error` as the reason of the run."""

    def fail(crawler: Crawler) -> None:
        Frontier.of(crawler).fail(StoreError("a fault of the moment"))

    stopped = await crawl_with_fault(lab, fail)
    assert stopped.reason == "frontier_error"
    assert stopped.coverage.stop.reason == "error"
    assert "a fault of the moment" in str(stopped.coverage.stop.detail)
    assert stopped.coverage.run.state == "stopped"


async def test_error_inside_the_frontier_stops_the_crawl(lab: Lab) -> None:
    """An error in the program is latched, too: the crawl does not run on without its account."""

    def break_intake(crawler: Crawler) -> None:
        def broken(*_: Any) -> bool:
            raise ZeroDivisionError("a mistake in the program")

        frontier_of(crawler).intake.enqueue = broken

    stopped = await crawl_with_fault(lab, break_intake)
    assert stopped.reason == "frontier_error"
    assert isinstance(Frontier.of(stopped.crawler).error, ZeroDivisionError)
    stopped.assert_reconciled()
    resumed = await lab.crawl(seeds=[lab.main / ""])
    resumed.assert_sound()
    assert resumed.coverage.stop.reason == "exhausted"
    assert len(resumed.log.hits_by_path()) == 63


async def test_unknown_callback_is_cancelled_by_name(lab: Lab) -> None:
    """A stored request whose method the spider has no more ends as cancelled; the rest goes on."""

    class Before(Follower):
        def parse(self, response: Any) -> Any:
            yield response.follow("/old", self.parse_old)
            yield response.follow("/new", self.parse)
            raise CloseSpider("for_now")

        def parse_old(self, response: Any) -> None:
            """Gone in the next version."""

    lab.main.otherwise = page("any")
    await lab.crawl(Before, seeds=[lab.main / ""])
    resumed = await lab.crawl(Follower, seeds=[lab.main / ""])
    resumed.assert_exhausted()
    assert resumed.fate(lab.main / "old").end == "cancelled"
    assert resumed.fate(lab.main / "old").reason == "request.unrestorable"
    assert resumed.fate(lab.main / "new").end == "succeeded"


def test_base_settings_are_the_ones_of_a_project() -> None:
    """The tests turn the frontier on as a project does: with one line."""
    assert BASE_SETTINGS["ADDONS"] == {"scrapy_frontier.Addon": 500}
