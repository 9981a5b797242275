"""Depth, in place of Scrapy's: it is tracked as there, but nothing is dropped where no account could see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.spidermiddlewares import depth

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    # typing.Self requires Python 3.11
    from typing_extensions import Self


class DepthMiddleware(depth.DepthMiddleware):
    """Sets `meta["depth"]`, priorities and statistics; `DEPTH_LIMIT` is kept by the frontier (rule `depth.limit`)."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware without a limit of its own."""
        middleware = super().from_crawler(crawler)
        middleware.maxdepth = 0
        return middleware
