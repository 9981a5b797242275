"""Responses whose links are resolved by the URL Standard, and whose `follow` never raises for one.

Scrapy resolves by `urllib.parse.urljoin`: it takes `\\\\host` and `///host` for paths, drops empty
path segments, and raises for a reference that cannot be requested, which ends the callback and
loses the links after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import parsel
from scrapy import Request
from scrapy.http import Response, TextResponse
from scrapy.link import Link
from scrapy.selector import Selector

from scrapy_frontier.documents import (
    document_base_url,
    document_encoding,
    selector_despite_base,
)
from scrapy_frontier.identity.query_encoding import keeps_ascii
from scrapy_frontier.identity.references import Reference
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import join, resolve
from scrapy_frontier.links import ObservedLink, refer
from scrapy_frontier.observations import remember_reference

REJECTED_URL: Final = "about:invalid"
"""The URL of a `RejectedRequest`: Scrapy accepts it, and nothing can fetch it."""

_FOLLOWED_TAGS: Final = ("a", "link")

# For the type checker the methods below stand in a TextResponse; at run time they are mixed into
# whatever class a response has.
if TYPE_CHECKING:
    _Base = TextResponse
else:
    _Base = object


class RejectedRequest(Request):
    """What `follow` returns for a reference that cannot be requested; `rejection` says why.

    It is there to be accounted for: the frontier records it and sends nothing.
    """

    __slots__ = ("rejection",)

    attributes: tuple[str, ...] = (*Request.attributes, "rejection")

    def __init__(self, *args: Any, rejection: Rejection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rejection = rejection

    def __repr__(self) -> str:
        return f"<rejected ({self.rejection.rule}) {self.rejection.observed!r}>"


class _Absolute(str):
    """A URL that `follow` has resolved already, on its way through Scrapy's own `follow`."""

    __slots__ = ()


class WhatwgLinks(_Base):
    """The methods of a response that resolve references, before those of the response's class."""

    __slots__ = ()

    @property
    def selector(self) -> Selector:
        """The selector of the document; a `<base>` that is no URL does not keep it from being."""
        try:
            return super().selector
        except ValueError:
            return selector_despite_base(self)

    def urljoin(self, url: str) -> str:
        """Return the absolute URL of a reference, with its fragment.

        One that cannot be requested comes back as the URL Standard resolves it, or unchanged where
        it has no URL at all.
        """
        if type(url) is _Absolute:
            return str(url)
        base, encoding = document_base_url(self), document_encoding(self)
        outcome = resolve(url, base, encoding)
        if isinstance(outcome, Rejection):
            return join(url, base, encoding) or url
        return outcome.href

    def follow(
        self,
        url: str | Link | parsel.Selector,
        callback: Callable[..., Any] | None = None,
        method: str = "GET",
        headers: Any = None,
        body: bytes | str | None = None,
        cookies: Any = None,
        meta: dict[str, Any] | None = None,
        encoding: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Request:
        """Return the request to follow a reference; a `RejectedRequest` if it cannot be requested.

        It takes what Scrapy's own `follow` takes. `observed_reference` tells the spelling found.
        """
        encoding = document_encoding(self) if encoding is None else encoding
        reference, href = _refer(url, document_base_url(self), encoding)
        # The URL is ASCII now; an encoding such as UTF-16 would spoil it.
        encoding = encoding if keeps_ascii(encoding) else "utf-8"
        values = (callback, method, headers, body, cookies, meta, encoding, *args)
        request: Request = super().follow(_Absolute(href), *values, **kwargs)
        if reference.rejection is not None:
            request = request.replace(cls=RejectedRequest, rejection=reference.rejection)
        remember_reference(request, reference)
        return request

    def follow_all(
        self,
        urls: Iterable[str | Link] | parsel.SelectorList[Any] | None = None,
        *args: Any,
        css: str | None = None,
        xpath: str | None = None,
        **kwargs: Any,
    ) -> Iterable[Request]:
        """Return the requests to follow many references, as Scrapy's own `follow_all` does.

        Selectors without a reference in them are left out, selectors with one keep their tag, text
        and `rel` for the observation.
        """
        if len([given for given in (urls, css, xpath) if given is not None]) != 1:
            raise ValueError(
                "Please supply exactly one of the following arguments: urls, css, xpath"
            )
        if css is not None:
            urls = self.css(css)
        elif xpath is not None:
            urls = self.xpath(xpath)
        if isinstance(urls, parsel.SelectorList):
            urls = [selector for selector in urls if _has_reference(selector)]
        elif not hasattr(urls, "__iter__"):
            raise TypeError("'urls' argument must be an iterable")
        return (self.follow(url, *args, **kwargs) for url in urls or ())


_R = TypeVar("_R", bound=Response)


def with_whatwg_links(response: _R) -> _R:
    """Make a response resolve its links by the URL Standard, and return it.

    Its class becomes a subclass of its own class; a response whose class takes no such subclass
    stays as it is.
    """
    if not isinstance(response, WhatwgLinks):
        response_class = type(response)
        if response_class not in _subclasses:
            _subclasses[response_class] = _subclass(response_class)
        response.__class__ = _subclasses[response_class]
    return response


_subclasses: dict[type, type] = {}


def _subclass(response_class: type) -> type:
    # The names are those of the response's class, so that Response.to_dict() names that one.
    names = {
        "__slots__": (),
        "__module__": response_class.__module__,
        "__qualname__": response_class.__qualname__,
        "__doc__": response_class.__doc__,
    }
    try:
        return type(response_class.__name__, (WhatwgLinks, response_class), names)
    except TypeError:
        return response_class


def _refer(url: Any, base: str, encoding: str) -> tuple[Reference, str]:
    """Return the reference in an argument of `follow`, and the URL to make the request of."""
    if url is None:
        raise ValueError("url can't be None")
    if isinstance(url, parsel.SelectorList):
        raise ValueError("SelectorList is not supported")  # noqa: TRY004 as Scrapy does
    if isinstance(url, parsel.Selector):
        if not _has_reference(url):
            raise ValueError(
                f"{url} is no reference: pass an attribute, or <a> or <link> with href"
            )
        observed, element = _reference_in(url)
    else:
        observed, element = url.url if isinstance(url, Link) else url, None
    outcome = resolve(observed, base, encoding)
    href = REJECTED_URL if isinstance(outcome, Rejection) else outcome.href
    if isinstance(url, ObservedLink) and url.is_as_observed:
        return url.reference, href
    if element is not None:
        return refer(element, "href", observed, outcome), href
    text = url.text if isinstance(url, Link) else ""
    return Reference.of(observed, outcome, text=text), href


def _has_reference(selector: parsel.Selector) -> bool:
    root = selector.root
    if isinstance(root, str):
        return True
    return getattr(root, "tag", None) in _FOLLOWED_TAGS and root.get("href") is not None


def _reference_in(selector: parsel.Selector) -> tuple[str, Any]:
    """Return the reference in a selector, and its element unless it selects the value."""
    root = selector.root
    return (root, None) if isinstance(root, str) else (root.get("href"), root)
