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
_on_responses: WeakKeyDictionary[Response, Counter[Reference]] = WeakKeyDictionary()


def remember_reference(request: Request, reference: Reference) -> None:
    """Keep the reference that a request was made of."""
    _of_requests[request] = reference


def observed_reference(request: Request) -> Reference | None:
    """Return the reference that a request was made of, None where that was not observed."""
    return _of_requests.get(request)


def remember_references(response: Response, references: Iterable[Reference]) -> None:
    """Keep what an extractor found on a page.

    Two extractors that go over the same page see the same references: a reference counts as often
    as the extractor that saw it most.
    """
    found = Counter(references)
    seen = _on_responses.get(response)
    _on_responses[response] = found if seen is None else seen | found


def observed_references(response: Response) -> list[Reference]:
    """Return what the extractors found on a page, accepted and rejected, repeated as found."""
    seen = _on_responses.get(response)
    return [] if seen is None else list(seen.elements())
