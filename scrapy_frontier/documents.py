"""The base URL of a response's document, by the HTML Standard.

Scrapy looks for `<base>` by a pattern in the first 4096 characters; a long head hides it there.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from scrapy.http import Response, TextResponse, XmlResponse

from scrapy_frontier.identity.query_encoding import keeps_ascii
from scrapy_frontier.identity.resolve import document_base

_bases: WeakKeyDictionary[Response, str] = WeakKeyDictionary()


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


def _find_base(response: Response) -> str:
    if not isinstance(response, TextResponse) or not _may_have_base(response):
        return response.url
    if response.selector.type != "html":
        return response.url
    href = response.xpath("//base/@href").get()
    return document_base(response.url, href, response.encoding)


def _may_have_base(response: TextResponse) -> bool:
    """Whether it is worth parsing the document: most have no `<base>`, and a search is cheap."""
    if isinstance(response, XmlResponse):
        return False
    if keeps_ascii(response.encoding):
        return b"<base" in response.body.lower()
    return "<base" in response.text.lower()
