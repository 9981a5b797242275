"""Links and references as they stand in the elements of a parsed page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lxml import etree  # type: ignore[import-untyped]
from scrapy.link import Link

from scrapy_frontier.identity.references import Reference
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import Resolved

_XHTML: Final = "{http://www.w3.org/1999/xhtml}"

text_of = etree.XPath("string()", smart_strings=False)
"""Return the text inside an element, markup left out."""


class ObservedLink(Link):
    """A link with the reference that it was made of."""

    __slots__ = ("_observed_url", "reference")

    def __init__(
        self, url: str, text: str, fragment: str, nofollow: bool, *, reference: Reference
    ) -> None:
        super().__init__(url, text, fragment, nofollow)
        self.reference = reference
        self._observed_url = url

    @property
    def is_as_observed(self) -> bool:
        """Whether the link still is what was found, and no `process_links` gave it another URL."""
        return self.url == self._observed_url


def elements_of(root: Any) -> Iterable[Any]:
    """Return the elements of a parsed page or region in the order of the document."""
    elements: Iterable[Any] = root.iter(etree.Element)
    return elements


def tag_of(element: Any) -> str:
    """Return the tag of an element, without the namespace that XHTML gives it."""
    tag: str = element.tag
    return tag.removeprefix(_XHTML)


def refer(
    element: Any,
    attribute: str,
    observed: str,
    outcome: Resolved | Rejection,
    *,
    text: str | None = None,
) -> Reference:
    """Make the reference of an attribute of an element; the text is by default the element's."""
    return Reference.of(
        observed,
        outcome,
        tag=tag_of(element),
        attribute=attribute,
        rel=element.get("rel") or "",
        text=text_of(element) if text is None else text,
    )
