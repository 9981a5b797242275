"""Rendered pages: the browser is given the document that came over the wire, and the spider what it made of it.

The attempt is the fetch of the document, captured as any other. Where a script, a form or a meta refresh would lead the
visitor elsewhere, the page is a redirect: the next hop is judged, and waits its turn, as that of an HTTP redirect.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from scrapy import Request, signals
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse

from scrapy_frontier.downloadermiddlewares.redirect import NextHops
from scrapy_frontier.downloadermiddlewares.retry import RetryMiddleware
from scrapy_frontier.frontier import Frontier, hops
from scrapy_frontier.frontier.outcomes import unusable
from scrapy_frontier.frontier.rendering import RENDERED
from scrapy_frontier.handlers.failures import RenderError
from scrapy_frontier.handlers.har import archive
from scrapy_frontier.handlers.rendered import Document
from scrapy_frontier.handlers.renderer import Renderer
from scrapy_frontier.identity import Rejection, resolve
from scrapy_frontier.identity.references import Reference
from scrapy_frontier.observations import remember_unfollowed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    # typing.Self requires Python 3.11
    from typing_extensions import Self

    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.handlers.rendered import Navigation, Rendered

RESULT: Final = "frontier_rendered"
"""Key of meta: what was seen of the page, for its callback."""

SCREENSHOT: Final = "screenshot"
SUB_REQUESTS: Final = "sub_requests"
HAR: Final = "har"


class ScriptHops(NextHops):
    """Where a page that was rendered leads its visitor."""

    def next_hop(self, request: Request, response: Response, navigation: Navigation) -> Request:
        """The request that the browser would have made. Raises `HopRefused` where it is not admitted."""
        target = resolve(navigation.url, request.url)
        if isinstance(target, Rejection):
            hops.refuse(Frontier.of(self.crawler), request, target)
        if navigation.method == "GET":
            hop = self._redirect_request_using_get(request, response, target.href)
        else:
            hop = self._build_redirect_request(
                request, response, url=target.href, method=navigation.method, body=navigation.body
            )
            if navigation.content_type:
                hop.headers["Content-Type"] = navigation.content_type
        # What the page's own policy about referrers leaves of its address.
        hop.headers.pop("Referer", None)
        if navigation.referer:
            hop.headers["Referer"] = navigation.referer
        return self.admitted(request, response, hop, "script")


class RenderMiddleware:
    """Stands where bodies are decoded, and meta refreshes are not yet followed."""

    def __init__(self, frontier: Frontier, hops: ScriptHops | None) -> None:
        self.frontier = frontier
        self.renderer = Renderer(frontier)
        self._hops = hops

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawl."""
        frontier = Frontier.of(crawler)
        if frontier.settings.render == "none" or frontier.settings.reparse:
            raise NotConfigured
        try:
            script_hops = ScriptHops.from_crawler(crawler)
        except NotConfigured:
            script_hops = None
        middleware = cls(frontier, script_hops)
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        return middleware

    async def spider_closed(self) -> None:
        """No page is left: the browser is ended."""
        await self.renderer.close()

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """The rendered page, the next hop it leads to, or the response as it is where it is not to be rendered."""
        attempt = self.frontier.attempts.get(request)
        if attempt is None or not self._is_wanted(attempt, request, response):
            return response
        document = _document(response)
        try:
            rendered = await self.renderer.render(attempt, request, document)
        except RenderError as error:
            return self._failed(attempt, request, error)
        navigation = rendered.seen.navigation
        if navigation is not None and self._is_followed(request, navigation, rendered):
            assert self._hops is not None
            return self._hops.next_hop(request, _with_cookies(response, rendered), navigation)
        if self.frontier.settings.render_har:
            attempt.parts[HAR] = archive(document, rendered)
        return _response(request, response, attempt, rendered)

    def _is_wanted(self, attempt: Attempt, request: Request, response: Response) -> bool:
        """Whether a response is a page of the spider's that a browser should render."""
        if self.frontier.settings.render == "all":
            is_asked = request.meta.get("playwright", True)
        else:
            is_asked = request.meta.get("playwright")
        return (
            bool(is_asked)
            and not attempt.is_direct
            and isinstance(response, HtmlResponse)
            and 200 <= response.status < 300
            and request.method != "HEAD"
            and RENDERED not in response.flags
        )

    def _failed(self, attempt: Attempt, request: Request, error: RenderError) -> Request:
        """The request of the next attempt. Raises the error where there is to be none."""
        judgement = unusable(self.frontier, attempt, error, error.cause)
        retries = self.frontier.crawler.get_downloader_middleware(RetryMiddleware)
        if isinstance(retries, RetryMiddleware):
            following = retries.follow(request, judgement, error)
            if following is not None:
                return following
        raise error

    def _is_followed(self, request: Request, navigation: Navigation, rendered: Rendered) -> bool:
        """A page that reloads itself, and has set no cookie that could change the answer, is no redirect."""
        if self._hops is None or request.meta.get("dont_redirect"):
            return False
        goes_nowhere = navigation.method == "GET" and _bare(navigation.url) == _bare(request.url)
        return not goes_nowhere or rendered.has_new_cookies


def _bare(url: str) -> str:
    return url.partition("#")[0]


def _document(response: Response) -> Document:
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in response.headers.items()
        for value in values or ()
        if value is not None
    ]
    return Document(response.url, response.status, headers, response.body)


def _with_cookies(response: Response, rendered: Rendered) -> Response:
    """The response as one that sets a cookie, where a script of its page has."""
    if not rendered.has_new_cookies or "Set-Cookie" in response.headers:
        return response
    seen = response.copy()
    seen.headers["Set-Cookie"] = "set-by-script=1"
    return seen


def _response(
    request: Request, response: Response, attempt: Attempt, rendered: Rendered
) -> Response:
    """The page as the browser left it, for the callback; its URL is the one that was admitted."""
    headers = response.headers.copy()
    headers["Content-Type"] = "text/html; charset=utf-8"
    flags = [*response.flags, RENDERED, *([rendered.reached] if rendered.reached else [])]
    page = response.replace(
        body=rendered.html.encode("utf-8"), encoding="utf-8", headers=headers, flags=flags
    )
    request.meta[RESULT] = {**rendered.seen.summary(), "wall_s": rendered.wall_s}
    if rendered.page is not None:
        request.meta["playwright_page"] = rendered.page
    remember_unfollowed(page, _references(rendered, response.url))
    attempt.parts[SUB_REQUESTS] = json.dumps(rendered.seen.lines(), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    if rendered.screenshot is not None:
        attempt.parts[SCREENSHOT] = rendered.screenshot
    return page


def _references(rendered: Rendered, base: str) -> list[Reference]:
    """Where the page would have led its visitor, and nobody was led."""
    seen = rendered.seen
    left = [] if seen.navigation is None else [seen.navigation.url]
    found = (
        ("popup", seen.popups),
        ("download", seen.downloads),
        ("history", seen.history),
        ("navigation", left),
    )
    return [
        Reference.of(url, resolve(url, base), tag=f"render.{name}")
        for name, urls in found
        for url in urls
    ]
