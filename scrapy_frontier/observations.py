"""What was observed of a request or on a page, beside the objects that Scrapy passes around.

Scrapy's requests take no further attributes, and `meta` is copied to other requests; so the
observation is kept here for as long as its object lives. It does not pass to a copy made by
`replace()`. Use it in the reactor's thread only, as Scrapy's objects themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from scrapy_frontier.identity.references import Reference

_of_requests: WeakKeyDictionary[Request, Reference] = WeakKeyDictionary()
_on_pages: WeakKeyDictionary[Response, _Page] = WeakKeyDictionary()
_unfollowed: WeakKeyDictionary[Response, list[Reference]] = WeakKeyDictionary()


class _Page:
    """What extractors found on one page."""

    __slots__ = ("by_url", "counts")

    def __init__(self) -> None:
        self.counts: Counter[Reference] = Counter()
        self.by_url: dict[str, Reference] = {}

    def add(self, references: Iterable[Reference]) -> None:
        found = Counter(references)
        self.counts |= found
        for reference in found:
            if reference.url is not None:
                self.by_url.setdefault(reference.href, reference)
                self.by_url.setdefault(reference.url, reference)


def remember_reference(request: Request, reference: Reference) -> None:
    """Keep the reference that a request was made of."""
    _of_requests[request] = reference


def observed_reference(request: Request, page: Response | None = None) -> Reference | None:
    """Return the reference that a request was made of, None where that was not observed.

    `follow` remembers it. A request that was made of a link by hand, as CrawlSpider does it, has
    the first reference to its URL that an extractor found on `page`.
    """
    reference = _of_requests.get(request)
    if reference is None and page is not None and page in _on_pages:
        by_url = _on_pages[page].by_url
        reference = by_url.get(request.url) or by_url.get(request.url.partition("#")[0])
    return reference


def remember_references(page: Response, references: Iterable[Reference]) -> None:
    """Keep what an extractor found on a page.

    Two extractors that go over the same page see the same references: a reference counts as often
    as the extractor that saw it most.
    """
    if page not in _on_pages:
        _on_pages[page] = _Page()
    _on_pages[page].add(references)


def observed_references(page: Response) -> list[Reference]:
    """Return what the extractors found on a page, accepted and rejected, repeated as found."""
    return list(_on_pages[page].counts.elements()) if page in _on_pages else []


def remember_unfollowed(page: Response, references: Iterable[Reference]) -> None:
    """Keep where a rendered page would have led its visitor."""
    _unfollowed[page] = list(references)


def unfollowed_references(page: Response) -> list[Reference]:
    """Where a rendered page would have led its visitor, and nobody was led."""
    return _unfollowed.get(page, [])
