"""Start URLs, checked before the spider makes requests of them: one bad entry costs only itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from w3lib.http import basic_auth_header

from scrapy_frontier.identity import USERINFO, Rejection, resolve

if TYPE_CHECKING:
    from scrapy import Request, Spider


def sift_start_urls(spider: Spider, max_length: int) -> list[Rejection]:
    """Take out of `spider.start_urls` what cannot be requested, and return it; the rest becomes request URLs.

    `Spider.start()` would end at the first entry that Scrapy's Request refuses. Only a list or tuple is looked at:
    other iterables may be endless.
    """
    urls = getattr(spider, "start_urls", None)
    if not isinstance(urls, (list, tuple)):
        return []
    rejected, kept = [], []
    for url in urls:
        outcome = resolve(url, max_length=max_length)
        if not isinstance(outcome, Rejection):
            kept.append(outcome.href)
        elif outcome.rule == USERINFO:
            # Credentials that the project itself has put there: see `Intake`.
            kept.append(url)
        else:
            rejected.append(outcome)
    spider.start_urls = kept
    return rejected


def with_credentials(request: Request) -> Request:
    """The request without user name and password in its URL: they go into the Authorization header of this origin."""
    parts = urlsplit(request.url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = request.replace(url=url)
    request.headers.setdefault("Authorization", basic_auth_header(user, password))
    return request
