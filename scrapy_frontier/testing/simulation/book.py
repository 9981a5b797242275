"""The book: what servers saw, and what they must never see (design, invariant 7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy_frontier.errors import FrontierError

if TYPE_CHECKING:
    from scrapy_frontier.policy.politeness import OriginPolicy

EPSILON_S: Final = 1e-6


class InvariantBroken(FrontierError):
    """The simulated crawl did what it must never do; the message says to whom and when."""


@dataclass(slots=True)
class Page:
    """What one server saw."""

    in_flight: int = 0
    most_in_flight: int = 0
    earliest_at: float = 0.0
    interval_s: float = 0.0
    could_at: float | None = None
    longest_wait_s: float = 0.0
    asked_at: list[float] = field(default_factory=list)
    answered_at: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


class Book:
    """Checks every dispatch at the instant it happens, and keeps what the figures are made from."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_flight = 0
        self.most_in_flight = 0
        self.pages: dict[str, Page] = {}

    def page(self, origin: str) -> Page:
        """The page of one origin."""
        return self.pages.setdefault(origin, Page())

    def ask(
        self,
        origin: str,
        now: float,
        *,
        base: OriginPolicy,
        policy: OriginPolicy,
        interval_s: float,
    ) -> None:
        """A request arrives at its server. `base` is the configured policy, `policy` the one that
        health has made of it, `interval_s` what was drawn from that. Raises `InvariantBroken`.
        """
        page = self.page(origin)
        if now < page.earliest_at - EPSILON_S:
            raise InvariantBroken(f"{origin} was asked {page.earliest_at - now} s early at {now}")
        page.in_flight += 1
        self.in_flight += 1
        if page.in_flight > min(base.limit, policy.limit):
            raise InvariantBroken(
                f"{origin} has {page.in_flight} in flight at {now}, {policy.limit} are allowed"
            )
        if self.in_flight > self.limit:
            raise InvariantBroken(f"{self.in_flight} in flight at {now}, {self.limit} are allowed")
        page.most_in_flight = max(page.most_in_flight, page.in_flight)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        page.interval_s = interval_s
        page.earliest_at = now + interval_s
        page.asked_at.append(now)
        if page.could_at is not None:
            page.longest_wait_s = max(page.longest_wait_s, now - page.could_at)

    def end(self, origin: str, now: float, outcome: str, policy: OriginPolicy) -> None:
        """The request has left the wire; `outcome` is its status or the kind of its failure."""
        page = self.page(origin)
        page.in_flight -= 1
        self.in_flight -= 1
        page.outcomes[outcome] += 1
        if outcome == "200":
            page.answered_at.append(now)
        if policy.limit == 1:
            page.earliest_at = max(page.earliest_at, now + page.interval_s)

    def lose(self) -> None:
        """The process died: nothing is in flight any more."""
        self.in_flight = 0
        for page in self.pages.values():
            page.in_flight = 0
            page.could_at = None

    def could(self, origin: str, at: float | None) -> None:
        """From when on the origin's next URL could go; None where it cannot, or has none."""
        self.page(origin).could_at = at
