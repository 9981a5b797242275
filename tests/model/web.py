"""What the model's world is made of: a few pages on three origins, and servers that see who comes when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from scrapy_frontier.identity.keys import fetch_key
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.politeness import OriginPolicy, PolitenessRules, Ranked
from scrapy_frontier.states import Event
from scrapy_frontier.store.messages import Reason, Reference, Source, Verdict

ORIGINS: Final = ("http://a.example", "http://b.example", "http://c.example")
PAGES: Final = 12
LIMITS: Final = {
    "http://a.example": {"concurrency": 1, "delay": 1.0},
    "http://b.example": {"concurrency": 2, "delay": 0},
    "http://c.example": {"concurrency": 2, "delay": 0.5},
}
RULES: Final = PolitenessRules.from_values(
    randomize_download_delay=Ranked(False), download_slots=LIMITS
)
NOBODY: Final = Source()
OUT_OF_SCOPE: Final = Reason("scope.path")


def url_of(page: int) -> str:
    """The pages are spread over the origins."""
    return f"{ORIGINS[page % len(ORIGINS)]}/{page}"


def is_excluded(url: str, policy: int) -> bool:
    """The second policy excludes a part of the pages."""
    return policy == 1 and int(url.rpartition("/")[2]) % 5 == 0


def reference(
    page: int,
    policy: int,
    now_ms: int,
    *,
    source: Source = NOBODY,
    kind: ReferenceKind = ReferenceKind.LINK,
    due_ms: int = 0,
    is_visit: bool = False,
    on_commit: Any = None,
) -> Reference:
    """A reference to a page, judged by the policy in force."""
    url = url_of(page)
    verdict = Verdict(Event.ENQUEUE, Reason("admission.scope"))
    if is_excluded(url, policy):
        verdict = Verdict(Event.EXCLUDE, OUT_OF_SCOPE)
    return Reference(
        key=fetch_key("GET", url),
        method="GET",
        url=url,
        origin=ORIGINS[page % len(ORIGINS)],
        partition=0,
        source=source,
        kind=int(kind),
        depth=0,
        record="{}",
        rank=page % 3,
        due_ms=due_ms,
        verdict=verdict,
        at_ms=now_ms,
        is_visit=is_visit,
        on_commit=on_commit,
    )


@dataclass
class Server:
    """One origin as it is: no clock but the true one, and no mercy (invariant 7)."""

    policy: OriginPolicy
    in_flight: int = 0
    earliest: float = 0.0

    def start(self, at: float) -> None:
        """A request arrives."""
        assert at >= self.earliest - 1e-6, f"invariant 7: {self.earliest - at:.3f} s too early"
        self.in_flight += 1
        assert self.in_flight <= self.policy.limit, "invariant 7: more in flight than the limit"
        self.earliest = at + self.policy.interval_s

    def end(self, at: float) -> None:
        """The answer is sent, or the client is gone."""
        self.in_flight -= 1
        if self.policy.limit == 1:
            self.earliest = at + self.policy.interval_s


def servers() -> dict[str, Server]:
    """All origins, quiet."""
    return {origin: Server(RULES.for_origin(origin)) for origin in ORIGINS}
