"""Watches one page: answers its requests, and stops it from going anywhere.

The main frame is given its document once. Every other request of the page, its frames and its pop-ups comes here; those
that are allowed are fetched by whoever renders, outside the browser.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error as PlaywrightError

from scrapy_frontier.handlers.failures import RenderError, failure_of
from scrapy_frontier.handlers.rendered import Document, Header, Navigation, Seen, SubRequest
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.rendering import BYTES

if TYPE_CHECKING:
    from playwright.async_api import (
        BrowserContext,
        Download,
        Frame,
        Page,
        Request,
        Route,
        WebSocket,
    )

    from scrapy_frontier.policy.rendering import PageSpending

logger = get_logger(__name__)

EVERYTHING: Final = re.compile("")

_NOT_PASSED_ON: Final = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"}
)

NOBODY: Final = "https://nobody.invalid"

PLACES_KEPT: Final = 1000
"""Pop-ups, downloads and addresses put into the bar that are kept of one page, of each kind."""

WINDOW_S: Final = 0.3
"""Seconds after which a window that the page has opened is closed: what it would show is known by then."""

BY_PROJECT: Final = "render.abort"
"""A sub-request that the project's `PLAYWRIGHT_ABORT_REQUEST` has refused."""


class Refused(Exception):
    """A sub-request is not sent, or brings nothing; `outcome` says why."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Fetched:
    """The answer to a sub-request."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: list[Header], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


Fetch = Callable[[str, str, Mapping[str, str], bytes, int], Awaitable[Fetched]]
"""Fetches (URL, method, headers, body, most bytes). Raises `Refused`."""


class Guard:
    """One page's guard. `show_work` is called whenever the page gets on."""

    def __init__(
        self,
        document: Document,
        spending: PageSpending,
        fetch: Fetch,
        show_work: Callable[[], None],
    ) -> None:
        self.document = document
        self.spending = spending
        self.seen = Seen()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the page would leave, or cannot go on; with `failure` in the latter case."""
        self.failure: RenderError | None = None
        self._fetch = fetch
        self._show_work = show_work
        self.page: Page | None = None
        self.is_unwanted: Callable[[Request], Awaitable[bool] | bool] | None = None
        """The project's own word on a sub-request: `PLAYWRIGHT_ABORT_REQUEST`."""
        self._windows: set[asyncio.Task[None]] = set()
        self._is_given = False
        self._is_over = False
        self._under_way = 0
        self._last_at = 0.0

    async def install(self, page: Page) -> None:
        """Stand before every request of the page's context. Raises Playwright's error where that cannot be."""
        self.page = page
        context: BrowserContext = page.context
        await context.route(EVERYTHING, self._route)
        page.on("crash", lambda _: self.fail("crashed", "the renderer has crashed"))
        page.on("close", lambda _: self.fail("closed", "the page was closed"))
        context.on("close", lambda _: self.fail("closed", "the context was closed"))
        page.on("framenavigated", self._moved)
        page.on("download", self._download)
        page.on("websocket", self._socket)
        context.on("page", self._window)

    def over(self) -> None:
        """The page is rendered: what it still asks for is refused, what becomes of it is no matter."""
        self._is_over = True

    def fail(self, kind: str, message: str) -> None:
        """The page cannot go on."""
        if not self._is_over and self.failure is None:
            self.failure = RenderError(kind, f"{self.document.url}: {message}")
            self._end()

    async def quiet(self, for_s: float) -> None:
        """Wait until nothing has been under way for so long."""
        loop = asyncio.get_running_loop()
        self._last_at = self._last_at or loop.time()
        while True:
            left_s = self._last_at + for_s - loop.time()
            if not self._under_way and left_s <= 0:
                return
            await asyncio.sleep(max(0.01, left_s))

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    async def _route(self, route: Route, request: Request) -> None:
        try:
            await self._answer(route, request)
        except PlaywrightError as error:
            # The page is gone, or this request is: there is nobody to answer.
            logger.debug(
                "%s of %s has gone: %s",
                request.url,
                self.document.url,
                failure_of(error),
                extra={"action": "render_request_gone"},
            )
        except Exception as error:
            logger.exception(
                "The guard of %s has failed at %s and closes the page",
                self.document.url,
                request.url,
                extra={"action": "render_guard_failed"},
            )
            self.fail("guard", repr(error))
            await _abort(route)

    async def _answer(self, route: Route, request: Request) -> None:
        frame = _frame_of(request)
        if request.is_navigation_request() and (frame is None or frame.parent_frame is None):
            if frame is None or self.page is None or frame != self.page.main_frame:
                _keep(self.seen.popups, request.url)
                await _abort(route)
            elif self._is_given:
                self._leave(request)
                await _abort(route)
            else:
                self._is_given = True
                await self._give(route)
        else:
            await self._sub_request(route, request)

    async def _give(self, route: Route) -> None:
        """The first navigation is the renderer's own: it is given the document."""
        document = self.document
        headers = _headers(document.headers, without={"set-cookie"})
        await route.fulfill(status=document.status, headers=headers, body=document.body)
        self._show_work()

    def _leave(self, request: Request) -> None:
        """The page would go elsewhere: that ends it, and is for the frontier to decide."""
        if self.seen.navigation is not None or self._is_over:
            return
        body = request.post_data_buffer or b""
        headers = request.headers
        self.seen.navigation = Navigation(
            request.url,
            request.method,
            body,
            headers.get("content-type", ""),
            headers.get("referer", ""),
        )
        self._end()

    async def _sub_request(self, route: Route, request: Request) -> None:
        line = SubRequest(
            request.url,
            request.method,
            request.resource_type,
            at_s=time.time(),
            sent=list(request.headers.items()),
        )
        begun_at = time.monotonic()
        line.outcome = "render.over" if self._is_over else await self._judge(request, line.kind)
        if line.outcome:
            self.seen.note(line)
            # Any other code has Chromium put a page of its own into a frame.
            await _abort(route, "aborted" if line.kind == "document" else "blockedbyclient")
            return
        self._under_way += 1
        try:
            await self._fulfil(route, request, line)
        finally:
            self._under_way -= 1
            line.took_s = round(time.monotonic() - begun_at, 4)
            self._last_at = asyncio.get_running_loop().time()
            self.seen.note(line)
            self._show_work()

    async def _judge(self, request: Request, kind: str) -> str:
        """The rule that forbids a sub-request, or an empty text."""
        if self.is_unwanted is not None:
            answer = self.is_unwanted(request)
            if await answer if inspect.isawaitable(answer) else answer:
                return BY_PROJECT
        return self.spending.ask(kind)

    async def _fulfil(self, route: Route, request: Request, line: SubRequest) -> None:
        try:
            fetched = await self._fetch(
                request.url,
                request.method,
                request.headers,
                request.post_data_buffer or b"",
                self.spending.bytes_left,
            )
        except Refused as refused:
            line.outcome = refused.outcome
            if line.outcome == BYTES:
                self.spending.reach(BYTES)
            await _abort(route, "aborted" if line.kind == "document" else "failed")
            return
        line.size = len(fetched.body)
        line.status, line.received = fetched.status, fetched.headers
        line.outcome = self.spending.take(line.size) or f"http.{fetched.status}"
        if line.outcome == BYTES:
            await _abort(route, "aborted" if line.kind == "document" else "blockedbyclient")
            return
        headers = _headers(fetched.headers)
        if "origin" in request.headers:
            # Where its server lets nobody of another origin read this, Playwright would add that everybody may.
            headers.setdefault("access-control-allow-origin", NOBODY)
        await route.fulfill(status=fetched.status, headers=headers, body=fetched.body)

    def _moved(self, frame: Frame) -> None:
        if self.page is None or frame != self.page.main_frame:
            return
        here = frame.url.partition("#")[0]
        if here != self.document.url.partition("#")[0] and here.startswith("http"):
            _keep(self.seen.history, frame.url)

    def _download(self, download: Download) -> None:
        _keep(self.seen.downloads, download.url)

    def _socket(self, socket: WebSocket) -> None:
        """It finds no network; that it was asked for is on record."""
        self.seen.note(SubRequest(socket.url, "GET", "websocket", self.spending.ask("websocket")))

    def _window(self, page: Page) -> None:
        """A window that is opened is closed. Windows count as sub-requests; one too many ends the page."""
        if self.spending.open_window():
            self._end()
        closing = asyncio.ensure_future(_close_later(page))
        self._windows.add(closing)
        closing.add_done_callback(self._windows.discard)


def _frame_of(request: Request) -> Frame | None:
    """The frame of a request; None for the first one of a page that is only just coming to be, a pop-up."""
    try:
        return request.frame
    except PlaywrightError:
        return None


def _keep(places: list[str], url: str) -> None:
    if len(places) < PLACES_KEPT:
        places.append(url)


async def _close_later(page: Page) -> None:
    await asyncio.sleep(WINDOW_S)
    with suppress(PlaywrightError):
        await page.close()


async def _abort(route: Route, code: str = "aborted") -> None:
    await route.abort(code)


def _headers(found: Any, without: frozenset[str] | set[str] = frozenset()) -> dict[str, str]:
    """Headers as Playwright takes them: several of a name on lines of their own."""
    headers: dict[str, str] = {}
    for name, value in found:
        lower = name.lower()
        if lower not in _NOT_PASSED_ON and lower not in without:
            joint = "\n" if lower == "set-cookie" else ", "
            headers[lower] = f"{headers[lower]}{joint}{value}" if lower in headers else value
    return headers
