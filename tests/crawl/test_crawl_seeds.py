"""Seeds: one by one, very many at once, again after a resumption, and cut short."""

from __future__ import annotations

import asyncio
from typing import Any

from crawls import Follower, Lab
from scrapy import Request, signals
from scrapy.exceptions import CloseSpider
from scrapy.utils.defer import deferred_from_coro

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.testing import Answer, page


async def test_seeds_are_not_repeated_by_a_resumption(lab: Lab) -> None:
    """A resumed run iterates `start()` again; what is in the ledger is not asked for again."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            if is_first and len(lab.server.log) >= 3:
                raise CloseSpider("for_now")

    is_first = True
    lab.main.otherwise = page("any")
    seeds = [f"{lab.main.url}/{number}" for number in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0)]
    settings = {"CONCURRENT_REQUESTS": 1}
    stopped = await lab.crawl(Stops, settings, seeds=seeds)
    stopped.assert_sound()
    assert len(stopped.log) < 10
    is_first = False
    resumed = await lab.crawl(Stops, settings, seeds=seeds)
    resumed.assert_exhausted()
    assert resumed.log.hits_by_path() == {f"/{number}": 1 + (number == 0) for number in range(10)}
    assert resumed.coverage.references.by_kind["seed"].total == 11


async def test_new_seeds_of_a_resumption_are_fetched(lab: Lab) -> None:
    """What `start()` yields for the first time is a seed like any other, also in a resumed run."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            if len(lab.server.log) == 1:
                raise CloseSpider("for_now")

    lab.main.otherwise = page("any")
    seeds = [lab.main / "1", lab.main / "2", lab.main / "3"]
    one = {"CONCURRENT_REQUESTS": 1}
    stopped = await lab.crawl(Stops, one, seeds=seeds[:2])
    assert stopped.coverage.run.state == "stopped"
    resumed = await lab.crawl(Stops, one, seeds=seeds)
    resumed.assert_exhausted()
    assert resumed.log.hits_by_path() == {"/1": 1, "/2": 1, "/3": 1}


async def test_many_seeds_at_once(lab: Lab) -> None:
    """20,000 seeds without a pause: none is lost, and the memory holds only the window."""
    largest_window = most_pending = 0
    is_done = False

    class Seeds(Follower):
        async def start(self) -> Any:
            nonlocal is_done
            for number in range(20_000):
                yield Request(f"{lab.main.url}/{number}")
                if number % 100 == 0:
                    note(Frontier.of(self.crawler).statistics())
            is_done = True

        def parse(self, response: Any) -> Any:
            if is_done:
                raise CloseSpider("enough")

    def note(figures: dict[str, Any]) -> None:
        nonlocal largest_window, most_pending
        largest_window = max(largest_window, figures["frontier/window"])
        most_pending = max(most_pending, figures["frontier/writer/pending"])

    lab.main.otherwise = Answer("slow", delay_s=0.05)
    settings = {"FRONTIER_WINDOW": 1000, "FRONTIER_MAX_QUEUE": 2000, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Seeds, settings, patience_s=40)
    result.assert_sound()
    assert result.coverage.references.by_kind["seed"].total == 20_000
    assert result.coverage.identities.discovered == 20_000
    assert 0 < largest_window <= 1000
    assert 0 < most_pending <= 2000 + 150


async def test_closing_while_start_still_yields(lab: Lab) -> None:
    """Seeds that come after the end are not counted, nor taken; the next start yields them again."""
    yielded = 0

    class Seeds(Follower):
        async def start(self) -> Any:
            nonlocal yielded
            for number in range(3000):
                yielded += 1
                yield Request(f"{lab.main.url}/{number}")
                if number > 20:
                    await asyncio.sleep(0)

        def parse(self, response: Any) -> Any:
            raise CloseSpider("enough")

    lab.main.otherwise = page("any")
    settings = {"FRONTIER_MAX_QUEUE": 20, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Seeds, settings)
    result.assert_sound()
    assert result.coverage.run.state == "stopped"
    assert result.coverage.references.total == result.stats["frontier/references"]
    before = yielded
    await deferred_from_coro(asyncio.sleep(0.1))
    frontier = Frontier.of(result.crawler)
    assert not frontier.is_crowded
    assert yielded - before <= 1


async def test_lazy_start(lab: Lab) -> None:
    """A `start()` that waits until the scheduler is empty is fed through, one seed after the other."""

    class Lazy(Follower):
        async def start(self) -> Any:
            for number in range(5):
                if self.crawler.engine.needs_backout():
                    await self.crawler.signals.wait_for(signals.scheduler_empty)
                yield Request(f"{lab.main.url}/{number}")

    lab.main.otherwise = Answer("slow", delay_s=0.02)
    result = await lab.crawl(Lazy, {"CONCURRENT_REQUESTS": 1})
    result.assert_exhausted()
    assert len(result.log) == 5


async def test_start_that_raises(lab: Lab) -> None:
    """What was yielded before the error is crawled, and the run says that it was cut short."""

    class Breaks(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "1")
            raise RuntimeError("no more")

    lab.main.otherwise = page("any")
    result = await lab.crawl(Breaks)
    result.assert_sound()
    assert result.reason == "start_error"
    assert (result.coverage.run.state, result.coverage.stop.reason) == ("stopped", "error")
