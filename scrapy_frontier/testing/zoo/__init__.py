"""A zoo of traps: small sites, each with useful pages and one way to go on for ever. Nothing in it is random.

A site is a function from a target to a page, so that it can be served (`serve`) or crawled without a network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scrapy_frontier.testing.answers import Answer, Request, text
from scrapy_frontier.testing.origins import Origin
from scrapy_frontier.testing.zoo.copies import Mirrors, SessionInPath, SessionInQuery, Spiral
from scrapy_frontier.testing.zoo.endless import (
    Calendar,
    Facets,
    Pagination,
    Search,
    SoftNotFound,
    SortOrders,
    TrailingSegments,
)
from scrapy_frontier.testing.zoo.site import TrapSite

SITES: Final[tuple[Callable[[int], TrapSite], ...]] = (
    Calendar,
    Facets,
    SortOrders,
    SessionInPath,
    SessionInQuery,
    Spiral,
    SoftNotFound,
    Mirrors,
    Search,
    Pagination,
    TrailingSegments,
)

NOT_FOUND: Final = text("There is nothing here.\n", status=404)

__all__ = ["SITES", "TrapSite", "serve"]


def serve(site: TrapSite, origin: Origin) -> None:
    """Put a site on an origin of the scripted server."""

    def answer(request: Request) -> Answer:
        found = site.answer(request.target)
        return NOT_FOUND if found is None else Answer(found)

    origin.on("/*", answer)
