"""Asking an origin for its robots.txt: every hop an attempt of its own, in the ledger and at its origin's gate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload

from scrapy_frontier.identity import Rejection, resolve
from scrapy_frontier.policy.retry import fault_kind, read_retry_after
from scrapy_frontier.policy.robots import (
    LIMIT,
    REDIRECT_REFUSED,
    REDIRECT_UNUSABLE,
    Hop,
    RobotsFetch,
    RobotsRecord,
    hop_refusal,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

META: Final = {
    "dont_redirect": True,
    "dont_retry": True,
    "dont_cache": True,
    "dont_obey_robotstxt": True,
    "handle_httpstatus_all": True,
}
"""What keeps the other middlewares from deciding what is decided here."""


class RobotsFetcher:
    """Fetches robots.txt through the engine, as any request is."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._sizes: dict[Request, int] = {}

    def is_own(self, request: Request) -> bool:
        """Whether a request was issued here."""
        return request in self._sizes

    async def fetch(self, record: RobotsRecord) -> RobotsFetch:
        """Ask for the robots.txt of the record's origin, over up to five redirects (RFC 9309, section 2.3.1.2)."""
        first = url = f"{record.origin}/robots.txt"
        hops: list[Hop] = []
        while True:
            request = Request(url, headers={} if hops else record.conditions(), meta=dict(META))
            try:
                response = await self._download(request)
            except IgnoreRequest:
                return RobotsFetch(hops=tuple(hops), stop=REDIRECT_REFUSED)
            except Exception as error:
                return RobotsFetch(hops=tuple(hops), failure=fault_kind(error))
            if response.status not in REDIRECTS:
                return _read(response, hops)
            target = resolve(response.headers.get("Location") or b"", url)
            stop: str | None = REDIRECT_UNUSABLE
            if not isinstance(target, Rejection) and "Location" in response.headers:
                stop = hop_refusal(first, hops, target.url)
                if stop is None:
                    hops.append(Hop(response.status, target.url))
                    url = target.url
                    continue
            return RobotsFetch(status=response.status, hops=tuple(hops), stop=stop or "")

    async def _download(self, request: Request) -> Response:
        engine = self._crawler.engine
        assert engine is not None
        if not self._sizes:
            self._crawler.signals.connect(self._received, signals.bytes_received)
        self._sizes[request] = 0
        try:
            return await engine.download_async(request)
        finally:
            del self._sizes[request]
            if not self._sizes:
                self._crawler.signals.disconnect(self._received, signals.bytes_received)

    def _received(self, data: bytes, request: Request) -> None:
        """What stands beyond the limit is not read (RFC 9309, section 2.5), so it need not be downloaded."""
        if request in self._sizes:
            self._sizes[request] += len(data)
            if self._sizes[request] > 2 * LIMIT:
                raise StopDownload(fail=False)


def _read(response: Response, hops: list[Hop]) -> RobotsFetch:
    def header(name: str) -> str:
        return (response.headers.get(name) or b"").decode("latin-1")

    return RobotsFetch(
        status=response.status,
        body=response.body,
        hops=tuple(hops),
        retry_after_s=_retry_after_s(header("Retry-After"), header("Date")),
        cache_control=header("Cache-Control"),
        age=header("Age"),
        etag=header("ETag"),
        last_modified=header("Last-Modified"),
        content_type=header("Content-Type"),
    )


LONGEST_WAIT_S: Final = 30 * 86400.0


def _retry_after_s(value: str, date: str) -> float | None:
    """Retry-After in seconds; how much of it is obeyed is for the policy of robots.txt to say."""
    found = read_retry_after(value, date, time.time(), LONGEST_WAIT_S)
    return None if found is None else found.wait_s
