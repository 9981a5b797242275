"""Renders the pages of one crawl: how many at once, what their sub-requests are, what becomes of their cookies."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest
from scrapy.http import Response

from scrapy_frontier import seams
from scrapy_frontier.frontier.core import CURRENT_ATTEMPT
from scrapy_frontier.frontier.direct import SUB_REQUEST, rule_of
from scrapy_frontier.frontier.hops import HopRefused
from scrapy_frontier.frontier.page import CURRENT_PAGE
from scrapy_frontier.handlers import cookies
from scrapy_frontier.handlers.browser import FrontierPlaywrightHandler
from scrapy_frontier.handlers.failures import RenderError
from scrapy_frontier.handlers.guard import Fetched, Guard, Refused
from scrapy_frontier.handlers.rendered import Document, Rendered
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.rendering import BYTES, PageSpending, RenderLimits
from scrapy_frontier.policy.retry import fault_kind
from scrapy_frontier.store.messages import PageRendered, Read
from scrapy_frontier.store.rows import rendered_count

if TYPE_CHECKING:
    from playwright.async_api import Page

    from scrapy_frontier.frontier import Frontier
    from scrapy_frontier.frontier.attempts import Attempt

logger = get_logger(__name__)

_OF_THE_BROWSER: Final = (
    "user-agent",
    "accept-encoding",
    "connection",
    "host",
    "content-length",
    "cookie",
    "sec-ch-",
)
"""Headers of a sub-request that are Scrapy's to set, or tell of a browser that is not there."""


class Renderer:
    """One per crawl; the browser is started by the first page."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._settings = frontier.settings
        self._handler: FrontierPlaywrightHandler | None = None
        self._places = asyncio.Semaphore(self._settings.render_concurrency)
        self._waiting: set[Attempt] = set()
        self._kept: set[Page] = set()
        self._before: asyncio.Future[int] | None = None
        self._figures = frontier.rendering

    @property
    def handler(self) -> FrontierPlaywrightHandler:
        """The browser's. Raises `ConfigError` under settings that no guard could hold under."""
        if self._handler is None:
            self._handler = FrontierPlaywrightHandler(self._frontier.crawler, self._settings)
        return self._handler

    async def render(self, attempt: Attempt, request: Request, document: Document) -> Rendered:
        """Render a document for an attempt. Raises `RenderError`."""
        limit = self._settings.render_pages
        if limit is not None and await self._rendered_before() + self._figures.pages >= limit:
            raise RenderError("pages", f"{limit} pages of this run were rendered already")
        self._figures.pages += 1
        self._waiting.add(attempt)
        try:
            await self._places.acquire()
        finally:
            self._waiting.discard(attempt)
        page = None
        try:
            attempt.show_work()
            rendered = await self._render(attempt, request, document)
            page = rendered.page
        except RenderError as error:
            self._figures.failed[error.kind] += 1
            raise
        finally:
            if page is None:
                self._leave()
        if page is not None:
            self._lend(page, attempt)
        return rendered

    async def _rendered_before(self) -> int:
        """How many pages of the run were rendered before this process took it up."""
        if self._before is None:
            opened = self._frontier.opened
            self._before = found = opened.loop.create_future()
            count = partial(rendered_count, run_id=opened.run.run_id)
            opened.writer.send(Read(count, found.set_result))
        return await asyncio.shield(self._before)

    def _lend(self, page: Page, attempt: Attempt) -> None:
        """A page that the callback is given keeps its place until it is closed: by the callback, or at its end."""
        self._kept.add(page)

        def end() -> None:
            self._give_back(page)
            self.handler.close_kept(page)

        page.on("close", self._give_back)
        attempt.on_end = end

    def _give_back(self, page: Page) -> None:
        # A page whose browser has died may not say that it is closed.
        if page in self._kept:
            self._kept.discard(page)
            self._leave()

    def _leave(self) -> None:
        self._places.release()
        # Who waits for a place in the browser waits with good reason as long as others get on.
        for other in self._waiting:
            other.show_work()

    async def close(self) -> None:
        """End the browser."""
        if self._handler is not None:
            await self._handler.close()

    async def _render(self, attempt: Attempt, request: Request, document: Document) -> Rendered:
        settings = self._settings
        limits = RenderLimits(
            settings.render_time_s, settings.render_requests, settings.render_bytes
        )
        spending = PageSpending(settings.render_allow, limits)
        visit = _Visit(self._frontier, attempt, request)
        guard = Guard(document, spending, visit.fetch, attempt.show_work)
        visit.guard = guard
        jar = self._jar(request)
        begun_at, failure = time.monotonic(), ""
        try:
            rendered = await self.handler.render(
                request, guard, list(jar or ()), screenshot=settings.render_screenshot
            )
            if rendered.reached and not settings.render_partial:
                raise RenderError("limit", f"{document.url}: {rendered.reached}")
        except RenderError as error:
            failure = error.cause
            raise
        finally:
            self._note(attempt, guard, failure, time.monotonic() - begun_at)
        if jar is not None and rendered.has_new_cookies:
            cookies.take_back(jar, rendered.cookies_before, rendered.cookies)
        return rendered

    def _note(self, attempt: Attempt, guard: Guard, failure: str, wall_s: float) -> None:
        """What came of a page, for the statistics and for the store."""
        reached, asked = guard.spending.reached, guard.seen.rows()
        for _, _, outcome, count, size in asked:
            self._figures.sub_requests[outcome] += count
            self._figures.sub_bytes += size
        if reached:
            self._figures.cut[reached] += 1
        lease = attempt.lease
        self._frontier.opened.writer.send(
            PageRendered(
                lease.attempt_id,
                lease.identity_id,
                round(1000 * wall_s),
                failure or reached,
                asked,
            )
        )

    def _jar(self, request: Request) -> Any:
        """Scrapy's jar for this request, where the crawl has one."""
        middleware = self._frontier.crawler.get_downloader_middleware(CookiesMiddleware)
        if middleware is None or request.meta.get("dont_merge_cookies"):
            return None
        return middleware.jars[request.meta.get("cookiejar")]


class _Visit:
    """Fetches what one page asks for, as a request of its attempt: past the scheduler, through the gates."""

    def __init__(self, frontier: Frontier, attempt: Attempt, request: Request) -> None:
        self._frontier = frontier
        self._request = request
        self._engine = seams.engine_of(frontier.crawler)
        # The browser calls from a context of its own.
        self._context = contextvars.copy_context()
        self._context.run(CURRENT_ATTEMPT.set, attempt)
        self._context.run(CURRENT_PAGE.set, None)
        self.guard: Guard | None = None

    async def fetch(
        self, url: str, method: str, headers: Mapping[str, str], body: bytes, most_bytes: int
    ) -> Fetched:
        """The answer to a sub-request. Raises `Refused`."""
        try:
            request = await self._make(url, method, headers, body, most_bytes)
        except ValueError as error:
            raise Refused("url.malformed") from error
        download = partial(asyncio.ensure_future, self._engine.download_async(request))
        try:
            response: Response = await self._context.run(download)
        except HopRefused as error:
            raise Refused(error.rule) from error
        except IgnoreRequest as error:
            raise Refused(rule_of(error)) from error
        except DownloadCancelledError as error:
            raise Refused(BYTES) from error
        except Exception as error:
            raise Refused(f"download.{fault_kind(error)}") from error
        return Fetched(response.status, _pairs(response), response.body)

    async def _make(
        self, url: str, method: str, headers: Mapping[str, str], body: bytes, most_bytes: int
    ) -> Request:
        settings = self._frontier.settings
        sent = {
            name: value
            for name, value in headers.items()
            if not name.lower().startswith(_OF_THE_BROWSER)
        }
        user_agent = self._request.headers.get("User-Agent")
        if user_agent:
            sent["User-Agent"] = user_agent.decode("latin-1")
        if cookie := cookies.header(await self._cookies(url)):
            sent["Cookie"] = cookie
        meta: dict[str, Any] = {
            SUB_REQUEST: True,
            "dont_merge_cookies": True,
            # A browser does not ask again; the page is rendered again where that is wanted.
            "dont_retry": True,
            "download_timeout": settings.render_time_s,
        }
        if most_bytes:
            meta["download_maxsize"] = most_bytes
        for key in ("proxy", "dont_obey_robotstxt"):
            if key in self._request.meta:
                meta[key] = self._request.meta[key]
        if not settings.render_robots:
            meta["dont_obey_robotstxt"] = True
        return Request(url, method=method, headers=sent, body=body, meta=meta)

    async def _cookies(self, url: str) -> Iterable[Mapping[str, Any]]:
        page = self.guard.page if self.guard is not None else None
        return [] if page is None else await page.context.cookies(url)


def _pairs(response: Response) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in response.headers.items()
        for value in values or ()
        if value is not None
    ]
