"""The Scrapy scheduler: the engine's way into the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.defer import deferred_from_coro

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.frontier import Frontier
from scrapy_frontier.logs import get_logger

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    # typing.Self requires Python 3.11
    from typing_extensions import Self

logger = get_logger(__name__)


class Scheduler:
    """`SCHEDULER = "scrapy_frontier.scheduler.Scheduler"`.

    `enqueue_request` and `next_request` never raise and never block: an internal error is latched by the frontier,
    which then closes the spider cleanly. Scrapy would lose requests, or hang, if they raised.
    """

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the scheduler of a crawl; the frontier of the crawler is made with it."""
        return cls(Frontier.of(crawler))

    def open(self, spider: Spider) -> Deferred[None]:
        """Open the store and the run. Bad settings and unusable stores end the crawl here, before any request."""
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        try:
            await self.frontier.open(spider)
        except FrontierError as error:
            # Scrapy buries it under the errors of what it had opened before.
            logger.critical("%s", error, extra={"action": "open_failed"})
            raise

    def close(self, reason: str) -> Deferred[None]:
        """Write what is left, and the account."""
        return deferred_from_coro(self.frontier.close(reason))

    def has_pending_requests(self) -> bool:
        """Whether a URL waits: for its turn, for its origin, for a time, or for the store."""
        return self.frontier.is_pending

    def enqueue_request(self, request: Request) -> bool:
        """Take in a request. False, which makes Scrapy send `request_dropped`: it is a duplicate or was refused."""
        try:
            return self.frontier.enqueue(request)
        except Exception as error:
            self.frontier.fail(error)
            return False

    def next_request(self) -> Request | None:
        """The next request to fetch, its origin's place taken; None while nothing may be fetched."""
        try:
            return self.frontier.next_request()
        except Exception as error:
            self.frontier.fail(error)
            return None

    def get_next_request_delay(self) -> float | None:
        """Seconds until `next_request` may give something without any other event; None if that cannot be known."""
        return self.frontier.next_delay_s

    def __repr__(self) -> str:
        return f"<Scheduler {self.frontier!r}>"
