"""What one page emits while its callback runs, and the page that is being processed at the moment."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.store.edges import REJECTED
from scrapy_frontier.store.messages import Emission, Rejected, Source

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.policy.likeness import Likeness, Match
    from scrapy_frontier.policy.traps import Content

FLUSH_AT: Final = 1000
"""References of one page after which a part of them is sent, so that a huge page needs no more memory."""


class KnownUrl:
    """A URL whose identity this process knows; `identity_id` is 0 until its first reference is on disk."""

    __slots__ = ("identity_id", "is_held", "is_suppressed", "key", "references")

    def __init__(self, key: bytes, *, is_suppressed: bool) -> None:
        self.key = key
        self.identity_id = 0
        self.is_suppressed = is_suppressed
        self.references = 1
        """References to it that this process has seen, as long as it is remembered."""
        self.is_held = False
        """Whether a further reference may release it, so that it must not pass as a mere duplicate."""

    @property
    def target(self) -> int | bytes:
        """How a message names this identity."""
        return self.identity_id or self.key


@dataclass(slots=True)
class Page:
    """A source of references: a response in its callback, a failure in its errback, or (source 0) seeds and engine."""

    source: Source
    kind: ReferenceKind
    depth: int
    url: str = ""
    response: Response | None = None
    asked: Request | None = None
    """The request whose answer is processed."""
    error: BaseException | None = None
    """What its callback or errback raised."""
    wish: Request | None = None
    """The request by which it asks for another attempt of its own."""
    is_closed: bool = False
    signs: int = 0
    """Signs of work: what the callback has yielded and the pipelines have taken."""
    content: Content | None = None
    """What its text says, where that was looked at; it is known before the callback runs."""
    likeness: tuple[Likeness, Match | None, str | None] | None = None
    """Digests, the page that it is like, and the `rel=canonical` that it names."""
    outside: int = 0
    """New URLs on it that are not more of the same."""
    _known: list[KnownUrl] = field(default_factory=list)
    _rejected: list[Rejected] = field(default_factory=list)
    _observations: list[tuple[KnownUrl | None, str]] = field(default_factory=list)

    def refer(self, known: KnownUrl) -> None:
        """A further reference to an identity known to this process."""
        self._known.append(known)

    def reject(self, rule: str, observed: str) -> None:
        """A reference that cannot have a fetch key."""
        self._rejected.append(Rejected(rule, observed))

    def observe(self, known: KnownUrl | None, line: str) -> None:
        """How a reference was spelled on the page, as `edges.Observation.line` writes it."""
        self._observations.append((known, line))

    @property
    def is_full(self) -> bool:
        """Whether a part should be sent before the page ends."""
        return len(self._known) + len(self._rejected) + len(self._observations) >= FLUSH_AT

    def take_emission(self) -> Emission | None:
        """The references gathered since the last call, as a message; None where there are none."""
        if not (self._known or self._rejected or self._observations):
            return None
        emission = Emission(
            source=self.source,
            kind=int(self.kind),
            targets=[known.target for known in self._known],
            excluded=sum(known.is_suppressed for known in self._known),
            rejected=self._rejected,
            observations=[
                (known.target if known is not None else REJECTED, line)
                for known, line in self._observations
            ],
        )
        self._known, self._rejected, self._observations = [], [], []
        return emission


CURRENT_PAGE: ContextVar[Page | None] = ContextVar("frontier_page", default=None)
"""The page whose callback runs in this context. Scrapy runs each page's output in tasks that inherit it; so may others
that outlive the page, which is why a page is closed when it ends."""


def current_page() -> Page | None:
    """The page whose callback runs in this context and has not ended."""
    page = CURRENT_PAGE.get()
    return None if page is None or page.is_closed else page


class RecentUrls:
    """URL to `KnownUrl` for the most recently used; two generations, so that the bound costs nothing per look-up."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: dict[str, KnownUrl] = {}
        self._old: dict[str, KnownUrl] = {}

    def get(self, url: str) -> KnownUrl | None:
        """The identity of this URL, if it was seen lately."""
        found = self._young.get(url)
        if found is None:
            found = self._old.get(url)
            if found is not None:
                self.put(url, found)
        return found

    def put(self, url: str, known: KnownUrl) -> None:
        """Remember a URL; the least recently used half is forgotten when the limit is reached."""
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[url] = known

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
