"""The last middleware before the wire and the first after it.

A request goes on only once its dispatch is on disk; a response goes on only once it is captured (design, section 5).
Requests that did not come from the scheduler (robots.txt, media pipelines, `engine.download_async`) are admitted here:
they get their own identity, and wait for a place at their origin's gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import ResponseDataLossError

from scrapy_frontier.downloadermiddlewares.retry import RetryMiddleware
from scrapy_frontier.frontier import Frontier

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    # typing.Self requires Python 3.11
    from typing_extensions import Self


class AdmissionMiddleware:
    """Belongs nearest to the downloader: everything that answers without the wire (a cache, say) comes before it."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware and follow the requests of the crawl on and off the wire."""
        middleware = cls(Frontier.of(crawler))
        crawler.signals.connect(
            middleware.request_reached_downloader, signals.request_reached_downloader
        )
        crawler.signals.connect(middleware.request_left_downloader, signals.request_left_downloader)
        crawler.signals.connect(middleware.headers_received, signals.headers_received)
        crawler.signals.connect(middleware.bytes_received, signals.bytes_received)
        return middleware

    async def process_request(self, request: Request) -> Response | None:
        """Wait until the dispatch is on disk and the origin's gate has a place; or answer from evidence."""
        return await self.frontier.admit(request)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Capture the response; it goes on when it is on disk, and whole.

        Raises `ResponseDataLossError` for one that is not whole, and is not asked for again.
        """
        await self.frontier.capture(request, response)
        attempt = self.frontier.attempts.get(request)
        if attempt is None or attempt.is_whole:
            return response
        error = ResponseDataLossError(f"{attempt.cause}: {response} is not whole")
        retries = self.frontier.crawler.get_downloader_middleware(RetryMiddleware)
        if isinstance(retries, RetryMiddleware) and attempt.judgement is not None:
            following = retries.follow(request, attempt.judgement, error)
            if following is not None:
                return following
        raise error

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Note what went wrong; whether it is the end of the attempt is for others to decide."""
        self.frontier.note_exception(request, exception)

    def request_reached_downloader(self, request: Request) -> None:
        """The request goes on the wire: its origin's interval runs from now."""
        self.frontier.charge(request)

    def request_left_downloader(self, request: Request) -> None:
        """The request has left the wire, with or without a response."""
        self.frontier.release(request)

    def headers_received(self, request: Request) -> None:
        """The response has begun: a sign of work."""
        self.frontier.opened.leases.received(request)

    def bytes_received(self, request: Request) -> None:
        """The response gets on: a sign of work."""
        self.frontier.opened.leases.received(request)
