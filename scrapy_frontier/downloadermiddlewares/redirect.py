"""Redirects, in place of Scrapy's: the target is resolved as browsers do, and one that cannot be requested is named.

What a redirect does to method, body, headers and meta is Scrapy's; the next hop comes back to the frontier, which takes
it in as a reference of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from parsel import Selector
from scrapy.downloadermiddlewares import redirect
from scrapy.http import HtmlResponse

from scrapy_frontier.documents import document_base_url, document_encoding
from scrapy_frontier.frontier import Frontier, hops
from scrapy_frontier.identity import Rejection, host_of, origin_of, resolve
from scrapy_frontier.identity.attributes import refresh_delay_s, refresh_target

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

STATUSES: Final = frozenset({301, 302, 303, 307, 308})

_PRAGMA: Final = re.compile(r"http-equiv\s*=\s*[\"']?\s*refresh", re.IGNORECASE)

_TEXT_ONLY: Final = frozenset(
    {"iframe", "noembed", "noframes", "script", "style", "template", "textarea", "title", "xmp"}
)
"""Elements whose content is text to a browser (HTML Standard, section 13.2.6), whatever tags it shows."""

META_REFRESH_LIMIT: Final = 4096
"""How many characters of a page are searched for a meta refresh, as Scrapy does."""


class NextHops(redirect.BaseRedirectMiddleware):
    """What both kinds of redirects have in common: the next hop is judged for itself."""

    def admitted(
        self, request: Request, response: Response, hop: Request, reason: int | str
    ) -> Request:
        """The next hop, counted and judged; raises `HopRefused`, which the errback of the request gets."""
        if request.meta.get("redirect_times", 0) >= self.max_redirect_times:
            raise hops.HopRefused(hops.LIMIT, hop.url, hops.chain_of(request))
        counted = self._redirect(hop, request, reason)
        hops.judge(Frontier.of(self.crawler), request, response, counted)
        return counted

    def _build_redirect_request(
        self, source_request: Request, response: Response, *, url: str, **kwargs: Any
    ) -> Request:
        hop = super()._build_redirect_request(source_request, response, url=url, **kwargs)
        if origin_of(hop.url) != origin_of(source_request.url):
            # Scrapy compares hosts for the first; what is meant for one origin is shown to no other.
            for header in ("Cookie", "Authorization", "Referer"):
                hop.headers.pop(header, None)
        cookies = _cookies_for_others(source_request)
        return hop.replace(cookies=cookies) if cookies else hop


def _cookies_for_others(request: Request) -> list[Any]:
    """Cookies that the spider gave for a domain which is not that of this request: they may be for a later hop."""
    if not isinstance(request.cookies, list):
        return []
    host = f".{host_of(request.url)}"
    return [
        cookie
        for cookie in request.cookies
        if cookie.get("domain") and not host.endswith(f".{str(cookie['domain']).lstrip('.')}")
    ]


class RedirectMiddleware(NextHops, redirect.RedirectMiddleware):
    """HTTP redirects. `Location` is resolved by the URL Standard (Fetch Standard, section 4.4, "location URL")."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """The next hop, or the response where it is to be taken as it is."""
        if response.status not in STATUSES or self._is_handled(request, response):
            return response
        locations = set(response.headers.getlist("Location"))
        if not locations:
            return response
        if len(locations) > 1:
            # Different ones are the mark of an injected header: browsers refuse them too.
            listed = ", ".join(sorted(value.decode("latin-1") for value in locations))
            raise hops.HopRefused(hops.AMBIGUOUS, listed, hops.chain_of(request))
        (location,) = locations
        target = resolve(location, request.url)
        if isinstance(target, Rejection):
            hops.refuse(Frontier.of(self.crawler), request, target)
        url = target.href
        _, _, fragment = request.url.partition("#")
        if fragment and not target.fragment:
            url = f"{target.url}#{fragment}"
        if _becomes_get(request, response):
            hop = self._redirect_request_using_get(request, response, url)
        else:
            hop = self._build_redirect_request(request, response, url=url)
        return self.admitted(request, response, hop, response.status)

    def _is_handled(self, request: Request, response: Response) -> bool:
        """Whether the spider wants this response for itself."""
        meta = request.meta
        return bool(
            meta.get("dont_redirect")
            or meta.get("handle_httpstatus_all")
            or response.status in meta.get("handle_httpstatus_list", ())
            or response.status in getattr(self.crawler.spider, "handle_httpstatus_list", ())
        )


class MetaRefreshMiddleware(NextHops, redirect.MetaRefreshMiddleware):
    """Redirects that an HTML page asks for by `<meta http-equiv=refresh>`."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """The next hop, or the response where it asks for none."""
        if (
            request.meta.get("dont_redirect")
            or request.method == "HEAD"
            or not isinstance(response, HtmlResponse)
        ):
            return response
        content = self._refresh_of(response)
        reference = None if content is None else refresh_target(content)
        if content is None or reference is None or refresh_delay_s(content) >= self._maxdelay:
            return response
        encoding = document_encoding(response)
        target = resolve(reference, document_base_url(response), encoding)
        if isinstance(target, Rejection):
            hops.refuse(Frontier.of(self.crawler), request, target)
        if target.url == request.url.partition("#")[0]:
            # A page that reloads itself is no redirect to a crawler.
            return response
        hop = self._redirect_request_using_get(request, response, target.href)
        return self.admitted(request, response, hop, "meta refresh")

    def _refresh_of(self, response: HtmlResponse) -> str | None:
        """The `content` of the page's refresh pragma, where it has one that is an element of the document."""
        text = response.text
        head = text[:META_REFRESH_LIMIT]
        if head.rfind("<") > head.rfind(">"):
            head += text[META_REFRESH_LIMIT : text.find(">", META_REFRESH_LIMIT) + 1]
        if _PRAGMA.search(head) is None:
            return None
        ignored = {*_TEXT_ONLY, *self._ignore_tags}
        for meta in Selector(text=head, type="html").xpath("//meta[@http-equiv and @content]"):
            ancestors = {element.tag for element in meta.root.iterancestors()}
            if meta.attrib["http-equiv"].strip().lower() == "refresh" and not ancestors & ignored:
                return meta.attrib["content"]
        return None


def _becomes_get(request: Request, response: Response) -> bool:
    """RFC 9110, section 15.4: POST becomes GET after 301 and 302 by custom, all but HEAD after 303 by rule."""
    if response.status in (301, 302):
        return request.method == "POST"
    return response.status == 303 and request.method not in {"GET", "HEAD"}
