"""A link extractor that resolves by the URL Standard and drops no link in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import TextResponse
from scrapy.link import Link
from scrapy.linkextractors.lxmlhtml import LxmlLinkExtractor
from scrapy.utils.misc import rel_has_nofollow
from scrapy.utils.python import unique
from w3lib.html import strip_html5_whitespace

from scrapy_frontier.documents import document_base_url, document_selector
from scrapy_frontier.identity.references import Reference
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve
from scrapy_frontier.links import ObservedLink, elements_of, refer, tag_of, text_of
from scrapy_frontier.observations import remember_references


class LinkExtractor(LxmlLinkExtractor):
    """Scrapy's `LinkExtractor` with the same arguments and filters, in rules of a CrawlSpider too.

    References are resolved against the document's base and in its encoding, as a browser does.
    `process_value` gets the resolved URL, or the value as it stands where that cannot be requested;
    what it returns is resolved against the document's base again. Only http and https links come
    out: others are rejected references.
    """

    def extract_links(self, response: TextResponse) -> list[Link]:
        """Return the links that can be requested and pass the filters, as `ObservedLink`.

        Their references, and those that were rejected, can then be read with
        `observed_references(response)`.
        """
        links: list[Link] = []
        references: list[Reference] = []
        for document in self._documents(response):
            found = list(self._find(document, response))
            kept = self._process_links([link for link, _ in found if link is not None])
            links += kept
            references += [reference for link, reference in found if link is None]
            references += [link.reference for link in kept if isinstance(link, ObservedLink)]
        remember_references(response, references)
        return unique(links, self.link_extractor.link_key) if self.link_extractor.unique else links

    def extract(self, response: TextResponse) -> list[Reference]:
        """Return the references that pass the filters and those that were rejected, as they stand.

        Repeated references are repeated here. A rejected one has no URL that `allow`, `deny` and
        their like could judge; it is there wherever tags, attributes, regions and `process_value`
        let it be.
        """
        return [
            reference
            for document in self._documents(response)
            for link, reference in self._find(document, response)
            if link is None or self._link_allowed(link)
        ]

    def _documents(self, response: TextResponse) -> list[Any]:
        """Return the regions of the page that are searched."""
        selector = document_selector(response)
        if not self.restrict_xpaths:
            return [selector]
        return [region for xpath in self.restrict_xpaths for region in selector.xpath(xpath)]

    def _find(
        self, document: Any, response: TextResponse
    ) -> Iterator[tuple[ObservedLink | None, Reference]]:
        """Yield each reference in scanned attributes, with its link where it can be requested."""
        base, encoding = document_base_url(response), response.encoding
        scan = self.link_extractor
        for element in elements_of(document.root):
            if not scan.scan_tag(tag_of(element)):
                continue
            for attribute, value in element.attrib.items():
                if scan.scan_attr(attribute):
                    found = self._refer(element, attribute, value, base, encoding)
                    if found is not None:
                        yield found

    def _refer(
        self, element: Any, attribute: str, value: str, base: str, encoding: str
    ) -> tuple[ObservedLink | None, Reference] | None:
        """Resolve the value of an attribute; None where `process_value` says that it is no link."""
        if self.link_extractor.strip:
            value = strip_html5_whitespace(value)
        outcome = resolve(value, base, encoding)
        url = value if isinstance(outcome, Rejection) else outcome.href
        processed = self.link_extractor.process_attr(url)
        if processed is None:
            return None
        if processed != url:
            outcome = resolve(processed, base, encoding)
        text = text_of(element)
        reference = refer(element, attribute, value, outcome, text=text)
        if isinstance(outcome, Rejection):
            return None, reference
        nofollow = rel_has_nofollow(element.get("rel"))
        return ObservedLink(outcome.href, text, "", nofollow, reference=reference), reference
