"""What goes into the browser and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scrapy_frontier.handlers.cookies import differ
from scrapy_frontier.identity import Resolved, resolve

Header = tuple[str, str]

LINES_KEPT: Final = 10_000
"""Sub-requests of one page that are listed; a page that asks on and on is counted, not listed."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is to be rendered: what came over the wire, its content coding undone."""

    url: str
    status: int
    headers: Sequence[Header]
    body: bytes


@dataclass(slots=True)
class SubRequest:
    """A request of a page for something else than its document.

    `outcome` is `http.{status}`, or the rule that forbade it, or the name of the fault it ended with. `at_s`: seconds
    since the epoch; `took_s`: seconds, the wait at its origin's gate included.
    """

    url: str
    method: str
    kind: str
    outcome: str = ""
    size: int = 0
    at_s: float = 0.0
    took_s: float = 0.0
    sent: Sequence[Header] = ()
    """Headers, as the page has asked."""
    status: int = 0
    received: Sequence[Header] = ()

    @property
    def origin(self) -> str:
        """Where it would go, whatever its scheme; "" for what goes nowhere."""
        resolved = resolve(self.url)
        if isinstance(resolved, Resolved):
            return resolved.origin
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}" if rest else ""


@dataclass(frozen=True, slots=True)
class Navigation:
    """Where a script, a form or the page itself would have sent its visitor."""

    url: str
    method: str = "GET"
    body: bytes = b""
    content_type: str = ""
    referer: str = ""


@dataclass(slots=True)
class Seen:
    """What the guard has seen of one page."""

    requests: list[SubRequest] = field(default_factory=list)
    """The sub-requests, as far as they are listed."""
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """All of them, by origin, type and outcome."""
    sizes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Bytes that they have brought."""
    navigation: Navigation | None = None
    popups: list[str] = field(default_factory=list)
    downloads: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    """URLs that the page has put into the address bar without going there."""

    def note(self, line: SubRequest) -> None:
        """Count a sub-request that has its outcome; list it where there is room."""
        place = (line.origin, line.kind, line.outcome)
        self.counts[place] += 1
        self.sizes[place] += line.size
        if len(self.requests) < LINES_KEPT:
            self.requests.append(line)

    def rows(self) -> tuple[tuple[str, str, str, int, int], ...]:
        """Origin, type, outcome, count and bytes."""
        return tuple((*place, count, self.sizes[place]) for place, count in self.counts.items())

    def summary(self) -> dict[str, Any]:
        """As plain data: counts by outcome and by origin, and what was not followed."""
        return {
            "requests": self.counts.total(),
            "by_outcome": self._by(2),
            "by_origin": self._by(0),
            "by_type": self._by(1),
            "bytes": self.sizes.total(),
            "navigation": None if self.navigation is None else self.navigation.url,
            "popups": list(self.popups),
            "downloads": list(self.downloads),
            "history": list(self.history),
        }

    def _by(self, part: int) -> dict[str, int]:
        found: Counter[str] = Counter()
        for place, count in self.counts.items():
            found[place[part]] += count
        return dict(found)

    def lines(self) -> list[dict[str, Any]]:
        """The list of sub-requests as plain data."""
        names = ("url", "method", "kind", "outcome", "size", "at_s", "took_s")
        return [{name: getattr(one, name) for name in names} for one in self.requests]


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered page. `reached` names the limit that cut it short, if one did."""

    html: str
    seen: Seen
    reached: str
    wall_s: float
    cookies: Sequence[dict[str, Any]] = ()
    cookies_before: Sequence[dict[str, Any]] = ()
    screenshot: bytes | None = None
    began_s: float = 0.0
    """Seconds since the epoch."""
    page: Any = None
    """Playwright's page, where the request asks to keep it (`playwright_include_page`)."""

    @property
    def has_new_cookies(self) -> bool:
        """Whether the page has set, changed or removed cookies."""
        return differ(self.cookies_before, self.cookies)
