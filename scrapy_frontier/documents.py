"""The document of a response: its base URL, its encoding and its parsed form, by the HTML Standard.

Scrapy looks for `<base>` by a pattern in the first 4096 characters, where a long head hides it, and
its selectors raise ValueError for a page whose `<base>` is no URL.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import parsel
from scrapy.http import Response, TextResponse, XmlResponse
from scrapy.selector import Selector

from scrapy_frontier.identity.query_encoding import keeps_ascii
from scrapy_frontier.identity.resolve import document_base

_bases: WeakKeyDictionary[Response, str] = WeakKeyDictionary()
_selectors: WeakKeyDictionary[Response, Selector] = WeakKeyDictionary()


def document_base_url(response: Response) -> str:
    """Return the URL that the references of a response are resolved against.

    It is the response's own URL, or for an HTML document what its first `<base href>` makes of it,
    wherever that stands.
    """
    base = _bases.get(response)
    if base is None:
        base = _bases[response] = _find_base(response)
    return base


def document_encoding(response: Response) -> str:
    """Return the encoding of a response's document; UTF-8 for one that is no text."""
    return response.encoding if isinstance(response, TextResponse) else "utf-8"


def document_selector(response: TextResponse) -> Selector:
    """Return the selector of a response, also where a broken `<base>` keeps Scrapy from making it."""
    try:
        return response.selector
    except ValueError:
        return selector_despite_base(response)


def selector_despite_base(response: TextResponse) -> Selector:
    """Return a selector that is made without a look at the document's base.

    Its `response` is None: a way back to the response would keep both for ever.
    """
    selector = _selectors.get(response)
    if selector is None:
        root = parsel.Selector(text=response.text, type="html").root
        selector = _selectors[response] = Selector(root=root, type="html")
    return selector


def _find_base(response: Response) -> str:
    if not isinstance(response, TextResponse) or not _may_have_base(response):
        return response.url
    selector = document_selector(response)
    if selector.type != "html":
        return response.url
    return document_base(response.url, selector.xpath("//base/@href").get(), response.encoding)


def _may_have_base(response: TextResponse) -> bool:
    """Whether it is worth parsing the document: most have no `<base>`, and a search is cheap."""
    if isinstance(response, XmlResponse):
        return False
    if keeps_ascii(response.encoding):
        return b"<base" in response.body.lower()
    return "<base" in response.text.lower()
