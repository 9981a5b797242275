"""The private names of Scrapy that `scrapy_frontier.seams` relies on do what it relies on.

A failure here means that this Scrapy changed one of them: adapt `seams.py`, nothing else uses them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from crawls import Follower, Lab
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.client import HTTPConnectionPool

from scrapy_frontier.seams import Waker
from scrapy_frontier.testing import Answer, page, redirect

PLAIN = {"FRONTIER_ENABLED": False}
"""Scrapy alone: what is looked at here is Scrapy's own."""


async def plain_crawl(lab: Lab, spider: type[Follower], on_engine: Any, **settings: Any) -> Crawler:
    """Crawl without the frontier; `on_engine` sees the engine when it has started."""
    crawler = lab.crawler(spider, {**PLAIN, **settings})

    def started() -> None:
        on_engine(crawler.engine)

    crawler.signals.connect(started, signals.engine_started, weak=False)
    await deferred_from_coro(asyncio.wait_for(crawler.crawl_async(seeds=[lab.main / ""]), 15))
    return crawler


async def test_slot_nextcall_schedule_wakes_the_engine(lab: Lab) -> None:
    """`engine._slot.nextcall.schedule()` makes the engine ask its scheduler in the next turns of the loop."""
    waited: list[float] = []

    class Watches(Follower):
        async def parse(self, response: Any) -> Any:
            engine = self.crawler.engine
            asked = asyncio.Event()
            scheduler = engine.scheduler if hasattr(engine, "scheduler") else engine._slot.scheduler
            next_request = scheduler.next_request

            def noting() -> Any:
                asked.set()
                return next_request()

            scheduler.next_request = noting
            await asyncio.sleep(0.05)
            asked.clear()
            loop = asyncio.get_running_loop()
            begun = loop.time()
            Waker(engine, loop).wake()
            await asyncio.wait_for(asked.wait(), 2)
            waited.append(loop.time() - begun)
            asked.clear()
            waker = Waker(engine, loop)
            waker.wake_in(30)
            waker.wake_in(0.1)
            begun = loop.time()
            await asyncio.wait_for(asked.wait(), 2)
            waited.append(loop.time() - begun)
            waker.cancel()

    lab.main.otherwise = page("any")
    await plain_crawl(lab, Watches, lambda _: None)
    assert waited[0] < 0.05
    assert 0.1 <= waited[1] < 0.2


async def test_slot_is_there_before_start_is_iterated(lab: Lab) -> None:
    """`engine._slot` exists from the opening of the spider to its end."""
    seen: list[Any] = []
    lab.main.otherwise = page("any")
    await plain_crawl(lab, Follower, lambda engine: seen.append(engine._slot))
    assert hasattr(seen[0].nextcall, "schedule")


async def test_downloader_fetch_sees_every_download_once(lab: Lab) -> None:
    """`downloader.fetch` is looked up on the instance at each call, and its Deferred fires with what came of it."""
    fetched: list[tuple[str, type]] = []

    class Fetches(Follower):
        async def parse(self, response: Any) -> Any:
            if response.url == lab.main / "":
                await self.crawler.engine.download_async(Request(lab.main / "direct"))
                yield Request(lab.main / "moved")
                yield Request(lab.main / "dead", errback=lambda failure: None)

    def watch(engine: Any) -> None:
        fetch = engine.downloader.fetch

        def watched(request: Request, *args: Any, **kwargs: Any) -> Any:
            download = fetch(request, *args, **kwargs)
            assert isinstance(download, Deferred)

            def tell(result: Any) -> Any:
                fetched.append((request.url.rpartition("/")[2], type(result)))
                return result

            return download.addBoth(tell)

        engine.downloader.fetch = watched

    lab.main.on("/moved", redirect("/target"))
    lab.main.on("/dead", Answer(fault="close"))
    lab.main.otherwise = page("any")
    await plain_crawl(lab, Fetches, watch, RETRY_ENABLED=False)
    kinds = dict(fetched)
    assert len(fetched) == len(kinds) == 5
    assert kinds["moved"] is Request
    assert kinds["dead"] is Failure
    assert all(issubclass(kinds[name], Response) for name in ("", "direct", "target"))


async def test_downloader_active_holds_what_is_being_fetched(lab: Lab) -> None:
    """A request is in `downloader.active`, by identity, until its download is over."""
    during: list[bool] = []

    class Looks:
        def process_request(self, request: Request) -> None:
            during.append(request in engines[0].downloader.active)

    engines: list[Any] = []
    lab.main.otherwise = page("any")
    await plain_crawl(lab, Follower, engines.append, DOWNLOADER_MIDDLEWARES={Looks: 1})
    assert during == [True]
    assert not engines[0].downloader.active


@pytest.mark.parametrize("kind", ["generator", "async", "errback", "raises"])
async def test_enqueue_scrape_fires_after_all_has_been_enqueued(lab: Lab, kind: str) -> None:
    """`scraper.enqueue_scrape(result, request)`: its Deferred fires after the engine has got every child."""
    order: list[str] = []

    class Yields(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "parent", self.parse, errback=self.failed)

        def children(self) -> Any:
            for number in range(20):
                yield Request(f"{lab.main.url}/child{number}", self.parse_child)

        async def parse_async(self) -> Any:
            for request in self.children():
                await asyncio.sleep(0.001)
                yield request

        def parse(self, response: Any) -> Any:
            return self.parse_async() if kind == "async" else self.parse_some()

        def parse_some(self) -> Any:
            yield from self.children()
            if kind == "raises":
                raise RuntimeError("at the end")

        def failed(self, failure: Any) -> Any:
            return self.children()

        def parse_child(self, response: Any) -> None:
            """Nothing to do."""

    def watch(engine: Any) -> None:
        enqueue_scrape = engine.scraper.enqueue_scrape

        def watched(result: Any, request: Request) -> Any:
            order.append(f"begin {request.url.rpartition('/')[2]}")
            processed = enqueue_scrape(result, request)
            assert isinstance(processed, Deferred)

            def tell(outcome: Any) -> Any:
                order.append(f"end {request.url.rpartition('/')[2]}")
                return outcome

            return processed.addBoth(tell)

        engine.scraper.enqueue_scrape = watched
        engine.signals.connect(
            lambda request: order.append(request.url.rpartition("/")[2]),
            signals.request_scheduled,
            weak=False,
        )

    lab.main.on("/parent", Answer(status=404) if kind == "errback" else page("parent"))
    lab.main.otherwise = page("any")
    await plain_crawl(lab, Yields, watch)
    until_end = order[: order.index("end parent")]
    assert {f"child{number}" for number in range(20)} <= set(until_end)
    assert order.count("begin parent") == order.count("end parent") == 1


async def test_enqueue_scrape_carries_its_context(lab: Lab) -> None:
    """What a callback yields is enqueued in the context in which `enqueue_scrape` was called."""
    from contextvars import ContextVar

    parent: ContextVar[str] = ContextVar("parent", default="none")
    found: list[tuple[str, str]] = []

    class Yields(Follower):
        async def parse(self, response: Any) -> Any:
            name = response.url.rpartition("/")[2]
            if "-" not in name:
                for number in range(3):
                    await asyncio.sleep(0.001)
                    yield Request(f"{lab.main.url}/x{name}-{number}")
                if not name:
                    for number in range(5):
                        yield Request(f"{lab.main.url}/{number}")

    def watch(engine: Any) -> None:
        enqueue_scrape = engine.scraper.enqueue_scrape

        def watched(result: Any, request: Request) -> Any:
            token = parent.set(request.url.rpartition("/")[2])
            try:
                return enqueue_scrape(result, request)
            finally:
                parent.reset(token)

        engine.scraper.enqueue_scrape = watched
        engine.signals.connect(
            lambda request: found.append((parent.get(), request.url.rpartition("/")[2])),
            signals.request_scheduled,
            weak=False,
        )

    lab.main.otherwise = page("any")
    await plain_crawl(lab, Yields, watch)
    links = [(source, target) for source, target in found if "-" in target]
    assert len(links) == 18
    assert all(target.startswith(f"x{source}-") for source, target in links)


async def test_handlers_have_a_pool_that_can_be_kept_from_repeating(lab: Lab) -> None:
    """`downloader.handlers._get_handler(scheme)._pool` is Twisted's connection pool, with its documented switch."""
    pools: list[Any] = []

    def look(engine: Any) -> None:
        handlers = engine.downloader.handlers
        pools.extend(handlers._get_handler(scheme)._pool for scheme in ("http", "https"))

    lab.main.otherwise = page("any")
    await plain_crawl(lab, Follower, look)
    assert all(isinstance(pool, HTTPConnectionPool) for pool in pools)
    assert pools[0].retryAutomatically is True


async def test_connections_tell_what_their_requests_and_bodies_come_to(lab: Lab) -> None:
    """The names that `scrapy_frontier.connections` relies on, of the pool and of what decodes a body."""
    seen: dict[str, Any] = {}

    def look(engine: Any) -> None:
        pool = engine.downloader.handlers._get_handler("http")._pool
        get = pool.getConnection

        def watched(key: Any, endpoint: Any) -> Any:
            return get(key, endpoint).addCallback(lambda made: seen.setdefault("made", made))

        def received(data: bytes, request: Any) -> None:
            parser = seen["made"]._parser
            seen["decoder"] = type(parser.bodyDecoder).__name__
            seen["ends"] = hasattr(parser.bodyDecoder, "noMoreData")
            assert hasattr(parser.connHeaders, "getRawHeaders")

        assert isinstance(pool._factory, type)
        assert callable(pool._putConnection)
        assert pool._connections == {}
        pool.getConnection = watched
        engine.signals.connect(received, signals.bytes_received, weak=False)
        seen["received"] = received

    lab.main.otherwise = Answer("any" * 50_000, trickle_s=0.1)
    await plain_crawl(lab, Follower, look)
    assert hasattr(seen["made"].transport, "abortConnection")
    assert seen["ends"], seen


async def test_failed_download_is_not_repeated_behind_the_account(lab: Lab) -> None:
    """With the frontier, a GET that dies on a kept connection reaches the server once."""
    lab.main.on("/", page("", ["/dead"]))
    lab.main.on("/dead", Answer(fault="reset"))
    result = await lab.crawl(settings={"RETRY_ENABLED": False}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/dead": 1}


async def test_handlers_download_request_runs_in_a_task_that_can_be_cancelled(lab: Lab) -> None:
    """Cancelled, it ends the transfer: the connection is closed, and what is raised then is the download's failure."""
    told: list[str] = []

    class Hangs(Follower):
        async def start(self) -> Any:
            yield Request(
                lab.main / "hangs", errback=lambda failure: told.append(repr(failure.value))
            )

    def watch(engine: Any) -> None:
        transfer = engine.downloader.handlers.download_request_async

        async def watched(request: Request) -> Any:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_later(0.2, task.cancel)
            try:
                return await transfer(request)
            except asyncio.CancelledError as error:
                raise ValueError("ended") from error

        engine.downloader.handlers.download_request_async = watched

    lab.main.on("/hangs", Answer(fault="stall"))
    await plain_crawl(lab, Hangs, watch)
    assert told == ["ValueError('ended')"]
    assert await lab.nobody_waits()
