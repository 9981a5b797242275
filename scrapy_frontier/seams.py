"""The names of Scrapy that are not part of its documented interface, all of them, in one place.

`tests/crawl/test_seams.py` holds each of them to what is relied on here, so that a new Scrapy fails loudly there:

- `engine._slot.nextcall.schedule()`: wakes the engine at once; Scrapy has no public way to do so.
- `engine.downloader.fetch(request)`: every request, also those issued past the scheduler, passes it once, and its
  result tells whether a response, a failure, or another request came of it.
- `engine.downloader.handlers.download_request_async(request)`: runs in a task of its own, whose cancellation ends the
  transfer. Nothing public ends one download.
- `engine.scraper.enqueue_scrape(result, request)`: its Deferred fires when the page is processed, that is after all
  that its callback yielded has been enqueued. No signal says so.
- `crawler.spider` is looked at when the engine has stopped: without a spider, the process ends with status 1.
- `handler._pool` of the handlers for http and https, where they have one: Twisted's pool would repeat a failed GET by
  itself, at once, with nobody told.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import succeed

from scrapy_frontier.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from scrapy_frontier.frontier import Frontier


def running_loop(crawler: Crawler) -> asyncio.AbstractEventLoop:
    """The event loop of the crawl. Raises `ConfigError` on a reactor without one."""
    if not is_asyncio_available():
        raise ConfigError(
            "scrapy_frontier needs the asyncio reactor, Scrapy's default: remove TWISTED_REACTOR from the settings, it"
            f" is {crawler.settings.get('TWISTED_REACTOR')!r}"
        )
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.get_event_loop()


def engine_of(crawler: Crawler) -> ExecutionEngine:
    """The engine of a crawler whose spider is being opened."""
    engine = crawler.engine
    if engine is None:
        raise ConfigError("the frontier can only be opened by a running crawl")
    return engine


def end_with_status(crawler: Crawler, frontier: Frontier) -> None:
    """Have `scrapy crawl` end with status 1 where the frontier has failed.

    Scrapy gives that status to a crawl without a spider, and to no other one that has begun.
    """

    def take_spider() -> None:
        if frontier.error is not None:
            crawler.spider = None

    crawler.signals.connect(take_spider, signals.engine_stopped, weak=False)


class Waker:
    """Makes the engine ask the scheduler, now or at a later time. One timer, moved to the earliest time asked for."""

    def __init__(self, engine: ExecutionEngine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self.after_ring: Callable[[], None] | None = None
        """Called after each ring, also where the engine does not ask because all its places are taken."""

    def wake(self) -> None:
        """Ask at the next turn of the event loop."""
        slot = self._engine._slot
        if slot is not None:
            # Never with a delay: a delayed call would swallow every earlier wake-up.
            slot.nextcall.schedule()

    def wake_in(self, delay_s: float) -> None:
        """Ask in `delay_s` seconds at the latest."""
        at = self._loop.time() + max(0.0, delay_s)
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._ring)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function after the engine has asked, if it was woken before."""
        self._loop.call_later(0, self._loop.call_soon, function)

    def cancel(self) -> None:
        """Never ask again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        self.wake()
        if self.after_ring is not None:
            self.call_soon(self.after_ring)


def forbid_hidden_repeats(engine: ExecutionEngine) -> None:
    """Keep Twisted from sending a request a second time: whether and when it is sent again is decided in the open."""
    for scheme in ("http", "https"):
        handler = engine.downloader.handlers._get_handler(scheme)
        pool = getattr(handler, "_pool", None)
        if pool is not None and hasattr(pool, "retryAutomatically"):
            pool.retryAutomatically = False


def watch_downloads(engine: ExecutionEngine, frontier: Frontier) -> None:
    """Let the frontier see the result of every download."""
    downloader = engine.downloader
    fetch: Callable[..., Deferred[Any]] = downloader.fetch

    @functools.wraps(fetch)
    def watched(request: Request, *args: Any, **kwargs: Any) -> Deferred[Any]:
        with frontier.downloading(request):
            download = fetch(request, *args, **kwargs)

        def tell(result: Any) -> Any:
            frontier.downloaded(request, result)
            return result

        return download.addBoth(tell)

    downloader.fetch = watched  # type: ignore[method-assign]


def watch_transfers(engine: ExecutionEngine, frontier: Frontier) -> None:
    """Let the frontier end a transfer whose lease it has lost: cancelled on its wish, it fails as a lost lease does."""
    handlers = engine.downloader.handlers
    transfer: Callable[[Request], Awaitable[Any]] = handlers.download_request_async

    @functools.wraps(transfer)
    async def watched(request: Request) -> Any:
        leases = frontier.opened.leases
        leases.transfers(request, asyncio.current_task())
        try:
            with frontier.transferring(request):
                response = await transfer(request)
        except asyncio.CancelledError as error:
            lost = leases.transfers(request, None)
            if lost is None:
                raise
            raise lost from error
        finally:
            leases.transfers(request, None)
        return response

    handlers.download_request_async = watched  # type: ignore[method-assign]


def watch_pages(engine: ExecutionEngine, frontier: Frontier) -> None:
    """Let the frontier know when a page begins to be processed, and when all that it yielded has been enqueued."""
    scraper = engine.scraper
    enqueue_scrape: Callable[..., Deferred[None]] = scraper.enqueue_scrape

    @functools.wraps(enqueue_scrape)
    def watched(result: Any, request: Request) -> Deferred[None]:
        if frontier.opened.leases.swallows(request, result):
            return succeed(None)
        with frontier.processing(request, result) as page:
            processed = enqueue_scrape(result, request)

        def tell(outcome: Failure | None) -> Failure | None:
            frontier.processed(request, result, page)
            return outcome

        return processed.addBoth(tell)

    scraper.enqueue_scrape = watched  # type: ignore[method-assign]
