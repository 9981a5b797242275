"""The handler: scrapy-playwright's own, given documents in place of a network.

What it takes from scrapy-playwright: the settings, starting and finding browsers and contexts, page methods, event
handlers, page callbacks, statistics. The names that are not part of its documented interface, held to what is relied on
here by `tests/crawl/test_render_seams.py`: `_create_page`, `_download_request_with_page`, `_apply_page_methods`,
`_maybe_launch_in_thread`, `_launch`, `_browser_disconnected_callback`, `context_wrappers`, `config`, `browser`,
`browser_provider`, and `_utils._maybe_execute_page_init_callback`, `_utils._attach_page_event_handlers`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from playwright.async_api import Error as PlaywrightError
from scrapy import signals
from scrapy_playwright._utils import (
    _attach_page_event_handlers,
    _maybe_execute_page_init_callback,
)
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

from scrapy_frontier.handlers import cookies, launch
from scrapy_frontier.handlers.content import check_size, salvage, within
from scrapy_frontier.handlers.failures import RenderError, failure_of
from scrapy_frontier.handlers.rendered import Rendered
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.rendering import TIME

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from http.cookiejar import Cookie

    from playwright.async_api import BrowserContext, CDPSession, Page
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_frontier.handlers.guard import Guard
    from scrapy_frontier.settings import FrontierSettings

logger = get_logger(__name__)

CLOSE_S: Final = 5.0
"""Seconds that a page may take to close before its browser is ended."""

OPEN_S: Final = 20.0
"""Seconds that a browser may take to open an empty page."""


_OPEN: Final = (
    "the browser reaches the network in spite of its flags,"
    " by a policy of this machine perhaps: it is shown no page"
)


class FrontierPlaywrightHandler(ScrapyPlaywrightDownloadHandler):  # type: ignore[misc]
    """Renders documents. It is no handler of a scheme: what goes over the wire is Scrapy's affair."""

    def __init__(self, crawler: Crawler, settings: FrontierSettings) -> None:
        launch.check(crawler.settings)
        super().__init__(crawler)
        # The browser is started by the first page that needs one.
        crawler.signals.disconnect(self._maybe_launch_in_thread, signals.engine_started)
        self._settings = settings
        self._no_network = launch.NoNetwork()
        path = launch.executable(settings.render_executable, self.config.launch_options)
        self.config.launch_options = launch.options(
            self.config.launch_options, path, self._no_network.address
        )
        self._named_contexts = self.config.startup_context_kwargs
        self.config.startup_context_kwargs = {}
        self.config.use_threaded_loop = False
        # Each page has a context of its own; how many there are at once is FRONTIER_RENDER_CONCURRENCY's affair.
        self.__dict__.pop("context_semaphore", None)
        self._starting = asyncio.Lock()
        self._names = itertools.count()
        self._guards: dict[str, Guard] = {}
        self._sessions: WeakKeyDictionary[Page, CDPSession] = WeakKeyDictionary()
        self.kept: set[Page] = set()
        """Pages that the spider has asked to keep, and not closed yet."""

    @property
    def open_contexts(self) -> int:
        """Contexts that are open now, one for each page."""
        return len(self.context_wrappers)

    async def render(
        self, request: Request, guard: Guard, jar: Iterable[Cookie], *, screenshot: bool = False
    ) -> Rendered:
        """Render the guard's document. Raises `RenderError`; nothing of the page is left then."""
        name = f"frontier-{next(self._names)}"
        view = self._view(request, guard.document.url, name)
        began_s, started_at = time.time(), time.monotonic()
        self._guards[name] = guard
        page: Page | None = None
        keeps = False
        try:
            page, before = await self._opened(view, guard, jar)
            html = await self._show(view, page, guard)
            keeps = bool(request.meta.get("playwright_include_page")) and not guard.ended.done()
            after = await within(CLOSE_S, page.context.cookies())
            picture = await within(CLOSE_S, page.screenshot(full_page=True)) if screenshot else None
            return Rendered(
                html,
                guard.seen,
                guard.spending.reached,
                round(time.monotonic() - started_at, 3),
                after,
                before,
                picture,
                began_s,
                page if keeps else None,
            )
        except PlaywrightError as error:
            raise guard.failure or failure_of(error) from error
        except TimeoutError as error:
            raise RenderError(
                "hung", f"{guard.document.url}: the browser does not answer"
            ) from error
        finally:
            self._guards.pop(name, None)
            if keeps and page is not None:
                self._keep(page)
            else:
                guard.over()
                await self._discard(name)

    async def close(self) -> None:
        """End the browser, and with it every page."""
        with suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(super().close(), 2 * CLOSE_S)
        self._no_network.close()

    def _view(self, request: Request, url: str, name: str) -> Request:
        """The request as the browser is to see it; its page is closed by this handler alone."""
        view: Request = request.copy()
        fragment = request.url.partition("#")[2]
        if fragment:
            url = f"{url.partition('#')[0]}#{fragment}"
        view = view.replace(url=url)
        user_agent = request.headers.get("User-Agent")
        named = self._named_contexts.get(request.meta.get("playwright_context"), {})
        given = request.meta.get("playwright_context_kwargs") or {}
        view.meta.update(
            playwright_context=name,
            playwright_include_page=True,
            playwright_context_kwargs=launch.context_options(
                {**named, **given}, user_agent.decode("latin-1") if user_agent else None
            ),
        )
        view.meta.pop("playwright_page", None)
        return view

    async def _opened(
        self, view: Request, guard: Guard, jar: Iterable[Cookie]
    ) -> tuple[Page, list[dict[str, Any]]]:
        """A page, nothing of which was shown yet; what drives the browser may have gone, which nobody tells."""
        await self._start()
        browser = self.browser
        try:
            return await within(OPEN_S, self._open(view, guard, jar))  # type: ignore[no-any-return]
        except PlaywrightError as error:
            if failure_of(error).kind != "closed":
                raise
        if getattr(self, "browser", None) is browser:
            self._forget_browser()
            await self._give_up_playwright()
        await self._start()
        return await within(OPEN_S, self._open(view, guard, jar))  # type: ignore[no-any-return]

    async def _open(
        self, view: Request, guard: Guard, jar: Iterable[Cookie]
    ) -> tuple[Page, list[dict[str, Any]]]:
        """A page behind its guard, and the cookies it begins with. Fails closed where the guard cannot be put up."""
        spider = self._crawler.spider
        page: Page = await self._create_page(view, spider)
        guard.is_unwanted = self.abort_request
        try:
            await guard.install(page)
            # Where scripts let nobody in, there is no session to be had any more.
            self._sessions[page] = await page.context.new_cdp_session(page)
        except PlaywrightError as error:
            raise RenderError("guard", f"{view.url}: {error}") from error
        _attach_page_event_handlers(
            page=page, request=view, spider=spider, context_name=view.meta["playwright_context"]
        )
        for cookie in cookies.to_browser(jar):
            # One that Chromium does not take costs itself alone.
            with suppress(PlaywrightError):
                await page.context.add_cookies([cookie])  # type: ignore[list-item]
        before: list[dict[str, Any]] = [dict(one) for one in await page.context.cookies()]
        await _maybe_execute_page_init_callback(
            page=page,
            request=view,
            context_name=view.meta["playwright_context"],
            spider=spider,
        )
        return page, before

    async def _start(self) -> None:
        """Have a Playwright to start browsers with, and no browser that has gone."""
        async with self._starting:
            browser = getattr(self, "browser", None)
            if browser is not None and not browser.is_connected():
                self._forget_browser()
            if getattr(self, "browser_provider", None) is None:
                try:
                    await self._launch()
                except Exception as error:
                    self.browser_provider = None
                    raise RenderError("launch", f"Playwright does not start: {error}") from error
            is_new = not hasattr(self, "browser")
            try:
                await self._maybe_launch_browser()
                is_open = is_new and await launch.reaches_out(
                    self.browser, self.config.launch_options
                )
            except PlaywrightError as error:
                await self._give_up_playwright()
                raise RenderError("launch", _advice(error)) from error
            if is_open:
                await self.browser.close()
                self._forget_browser()
                raise RenderError("guard", _OPEN)

    async def _give_up_playwright(self) -> None:
        """Playwright's own process may be what has gone: the next page starts another one."""
        provider: Any = self.browser_provider
        self.browser_provider = None
        with suppress(Exception):
            await asyncio.wait_for(provider.close(), CLOSE_S)

    async def _show(self, view: Request, page: Page, guard: Guard) -> str:
        """The page's content when it is there, when its time is over, or when it would leave."""
        showing = asyncio.ensure_future(
            self._download_request_with_page(view, page, self._crawler.spider)
        )
        try:
            await asyncio.wait(
                {showing, guard.ended},
                timeout=guard.spending.limits.time_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if guard.failure is not None:
                raise guard.failure
            if showing.done() and guard.seen.navigation is None:
                response: Response = showing.result()
                return str(getattr(response, "text", ""))
            if guard.seen.navigation is None:
                guard.spending.reach(TIME)
        finally:
            await _let_go(showing)
        guard.over()
        return await salvage(page, self._sessions[page], self._most(view), guard.document.url)

    async def _apply_page_methods(self, page: Page, request: Request, spider: Any) -> None:
        await super()._apply_page_methods(page, request, spider)
        guard = self._guards.get(request.meta["playwright_context"])
        if guard is not None:
            await guard.quiet(self._settings.render_quiet_s)
            await check_size(self._sessions[page], self._most(request), guard.document.url)

    def _most(self, request: Request) -> int:
        """How large a page may become: as large as what is downloaded may be."""
        largest = self._crawler.settings.getint("DOWNLOAD_MAXSIZE")
        return int(request.meta.get("download_maxsize", largest))

    def close_kept(self, page: Page) -> None:
        """Close a page that was kept, unless that is done: its callback has ended."""
        if page in self.kept:
            _go(_close(page.context))

    def _keep(self, page: Page) -> None:
        self.kept.add(page)

        def closed(_: Page) -> None:
            self.kept.discard(page)
            _go(_close(page.context))

        page.on("close", closed)

    async def _discard(self, name: str) -> None:
        """Close the context of a page; a browser that does not close it in time is ended."""
        wrapper = self.context_wrappers.get(name)
        if wrapper is None:
            return
        try:
            await asyncio.wait_for(_close(wrapper.context), CLOSE_S)
            self.stats.inc_value("playwright/page_count/closed")
        except (TimeoutError, asyncio.TimeoutError):
            logger.warning(
                "A page does not close within %g s: its browser is ended",
                CLOSE_S,
                extra={"action": "browser_ended"},
            )
            with suppress(PlaywrightError, TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self.browser.close(), CLOSE_S)
            self._forget_browser()
        finally:
            self.context_wrappers.pop(name, None)

    async def _browser_disconnected_callback(self) -> None:
        """A browser has gone. Its pages have learned of it; the next page starts another one."""
        browser = getattr(self, "browser", None)
        if browser is not None and not browser.is_connected():
            self._forget_browser()

    def _forget_browser(self) -> None:
        self.context_wrappers.clear()
        if hasattr(self, "browser"):
            del self.browser


async def _close(context: BrowserContext) -> None:
    with suppress(PlaywrightError):
        await context.close()


def _go(work: Coroutine[Any, Any, None]) -> None:
    """Have it done, whatever comes of it."""
    doing = asyncio.ensure_future(work)
    _under_way.add(doing)
    doing.add_done_callback(_under_way.discard)


_under_way: Final[set[asyncio.Future[None]]] = set()
"""What nobody waits for; an event loop keeps no hold of its tasks."""


async def _let_go(task: asyncio.Future[Any]) -> None:
    """End a task whose outcome does not matter any more."""
    if not task.done():
        task.cancel()
    with suppress(Exception, asyncio.CancelledError):
        await task


def _advice(error: PlaywrightError) -> str:
    first = str(error).splitlines()[0]
    return (
        f"the browser does not start: {first} (install Chromium, Debian's package `chromium` for one, or name it in"
        " FRONTIER_RENDER_EXECUTABLE)"
    )
