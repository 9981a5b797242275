"""The web server of the live report. It answers GET and HEAD, and changes nothing.

Requests are Twisted's, which have no types of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.threads import deferToThread
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from scrapy_frontier.commands.serving.access import COOKIE, Access, Refused
from scrapy_frontier.errors import FrontierError
from scrapy_frontier.logs import get_logger
from scrapy_frontier.report.html import content_policy
from scrapy_frontier.report.runs import RunNotFound

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from scrapy_frontier.commands.serving.pages import Pages

logger = get_logger(__name__)

HEADERS: Final[Mapping[str, str]] = {
    "Server": "scrapy-frontier",
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{content_policy()}; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every answer."""

HTML: Final = "text/html; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


class ReportPages(Resource):
    """All addresses of the server."""

    isLeaf = True  # noqa: N815

    def __init__(self, pages: Pages, access: Access) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._access = access
        self._routes: Mapping[str, tuple[str, Callable[[], str]]] = {
            "/": (HTML, pages.page),
            "/report.json": (JSON, pages.data),
            "/live": (TEXT, pages.frame_text),
            "/live.json": (JSON, pages.frame_data),
        }

    def render(self, request: Any) -> Any:
        """Answer a request, or refuse it."""
        for name, value in HEADERS.items():
            request.setHeader(name, value)
        try:
            return self._answer(request)
        except Refused as refused:
            return _say(request, refused.status, str(refused))

    def _answer(self, request: Any) -> Any:
        self._access.check_host(request.getHeader("host"))
        if request.method not in {b"GET", b"HEAD"}:
            request.setHeader("Allow", "GET, HEAD")
            raise Refused(405, "This server only answers GET and HEAD.")
        token = _token_of(request)
        self._access.check_token(token, _bearer(request), _cookie(request))
        path = request.path.decode("ascii", "replace")
        if path not in self._routes:
            raise Refused(404, "There is nothing here; / has the report.")
        if token is not None and self._access.token is not None:
            return _remember(request, self._access.token, path)
        kind, make = self._routes[path]
        is_gone: list[Failure] = []
        request.notifyFinish().addErrback(is_gone.append)
        made = deferToThread(make)
        made.addErrback(_explain, request)
        made.addCallback(_finish, request, kind, is_gone)
        return NOT_DONE_YET


def _say(request: Any, status: int, text: str) -> bytes:
    request.setResponseCode(status)
    request.setHeader("Content-Type", TEXT)
    if status == 401:
        request.setHeader("WWW-Authenticate", "Bearer")
    return f"{text}\n".encode()


def _remember(request: Any, token: str, path: str) -> bytes:
    """Take the token out of the address, where histories and logs keep it."""
    request.setHeader("Set-Cookie", f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict")
    request.setHeader("Location", path)
    return _say(request, 303, "See /")


def _explain(failure: Failure, request: Any) -> str:
    """Why there is no page, in words; an error of the program goes to the log."""
    error = failure.value
    request.setResponseCode(404 if isinstance(error, RunNotFound) else 503)
    request.setHeader("Content-Type", TEXT)
    if isinstance(error, FrontierError):
        return f"{error}\n"
    logger.error(
        "A page could not be made: %s", error, exc_info=error, extra={"action": "page_failed"}
    )
    return "The page could not be made; the log of the server has the reason.\n"


def _finish(text: str, request: Any, kind: str, is_gone: list[Failure]) -> None:
    if is_gone:
        return
    if not request.responseHeaders.hasHeader("Content-Type"):
        request.setHeader("Content-Type", kind)
    body = text.encode("utf-8", "backslashreplace")
    request.setHeader("Content-Length", str(len(body)))
    request.write(body)
    request.finish()


def _token_of(request: Any) -> str | None:
    values = (request.args or {}).get(b"token")
    return values[-1].decode("utf-8", "replace") if values else None


def _bearer(request: Any) -> str | None:
    scheme, _, token = (request.getHeader("authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _cookie(request: Any) -> str | None:
    try:
        found = SimpleCookie(request.getHeader("cookie") or "").get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def site(pages: Pages, access: Access) -> Site:
    """The factory that a port is opened with."""
    return Site(ReportPages(pages, access))  # type: ignore[no-untyped-call]
