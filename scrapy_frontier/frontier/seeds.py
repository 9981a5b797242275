"""Start URLs, checked before the spider makes requests of them: one bad entry costs only itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.identity import Rejection, resolve

if TYPE_CHECKING:
    from scrapy import Spider


def sift_start_urls(spider: Spider, max_length: int) -> list[Rejection]:
    """Take out of `spider.start_urls` what cannot be requested, and return it; the rest becomes request URLs.

    `Spider.start()` would end at the first entry that Scrapy's Request refuses. Only a list or tuple is looked at:
    other iterables may be endless.
    """
    urls = getattr(spider, "start_urls", None)
    if not isinstance(urls, (list, tuple)):
        return []
    outcomes = [(url, resolve(url, max_length=max_length)) for url in urls]
    rejected = [outcome for _, outcome in outcomes if isinstance(outcome, Rejection)]
    if rejected or any(not isinstance(o, Rejection) and o.url != url for url, o in outcomes):
        spider.start_urls = [
            _with_fragment(outcome.url, outcome.fragment)
            for _, outcome in outcomes
            if not isinstance(outcome, Rejection)
        ]
    return rejected


def _with_fragment(url: str, fragment: str) -> str:
    return f"{url}#{fragment}" if fragment else url
