"""The link inventory of a page (`FRONTIER_LINK_INVENTORY`): every URL that its HTML speaks of.

It lists what the spider never followed too, and makes no request. Source of the attributes: the
index of attributes in the HTML Standard, with the obsolete ones that pages still carry. A `<base>`
is no reference. Style sheets and scripts are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from scrapy.http import TextResponse

from scrapy_frontier.documents import document_base_url, document_selector
from scrapy_frontier.identity.attributes import refresh_target, split_srcset, split_tokens
from scrapy_frontier.identity.references import Reference
from scrapy_frontier.identity.resolve import resolve
from scrapy_frontier.links import elements_of, refer, tag_of

_ANYWHERE: Final = ("background", "cite", "longdesc")

_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "a": ("href", "ping", "xlink:href"),
    "applet": ("archive", "codebase"),
    "area": ("href", "ping"),
    "audio": ("src",),
    "button": ("formaction",),
    "embed": ("src",),
    "form": ("action",),
    "frame": ("src",),
    "head": ("profile",),
    "html": ("manifest",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset", "lowsrc", "dynsrc"),
    "input": ("src", "formaction"),
    "link": ("href", "imagesrcset"),
    "object": ("data", "codebase", "archive"),
    "script": ("src", "href", "xlink:href"),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}

_SPLITTERS: Final[dict[str, Callable[[str], list[str]]]] = {
    "archive": split_tokens,
    "imagesrcset": split_srcset,
    "ping": split_tokens,
    "profile": split_tokens,
    "srcset": split_srcset,
}

# An empty value of these is the page itself; elsewhere the HTML Standard lets it load nothing.
_MAY_BE_EMPTY: Final = frozenset({"href", "action", "formaction", "cite"})
# Only these have a text that speaks of the URL; that of a form or a table would be half the page.
_WITH_TEXT: Final = frozenset({"a", "button"})


def inventory(response: TextResponse) -> list[Reference]:
    """Return every reference in the attributes of an HTML page, in the order of the document."""
    selector = document_selector(response)
    if selector.type != "html":
        return []
    base, encoding = document_base_url(response), response.encoding
    references = []
    for element in elements_of(selector.root):
        tag = tag_of(element)
        for attribute, value in _values(element, tag):
            outcome = resolve(value, base, encoding)
            text = None if tag in _WITH_TEXT else ""
            references.append(refer(element, attribute, value, outcome, text=text))
    return references


def _values(element: Any, tag: str) -> Iterator[tuple[str, str]]:
    """Yield the references in the attributes of an element, with the name of the attribute."""
    attributes = element.attrib
    if not attributes:
        return
    if tag == "meta":
        yield from _refresh(attributes)
    for attribute in (*_ATTRIBUTES.get(tag, ()), *_ANYWHERE):
        value = attributes.get(attribute)
        if value is None or (not value.strip() and attribute not in _MAY_BE_EMPTY):
            continue
        splitter = _SPLITTERS.get(attribute)
        for url in splitter(value) if splitter is not None else (value,):
            yield attribute, url


def _refresh(attributes: Any) -> Iterator[tuple[str, str]]:
    if attributes.get("http-equiv", "").strip().lower() == "refresh":
        url = refresh_target(attributes.get("content", ""))
        if url is not None:
            yield "content", url
