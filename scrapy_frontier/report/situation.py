"""How a running crawl stands at one instant, in numbers that its process keeps in memory; and in words."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from scrapy_frontier.report.layout import counted, duration, number, share, size

BEHIND_S: Final = 1.0
"""A writer that is further behind is worth a word."""

PACE_S: Final = 10.0
"""The time over which the rate is taken."""

GATE_WORDS: Final[Mapping[str, str]] = {
    "open": "open",
    "busy": "busy",
    "interval": "pausing",
    "backoff": "backing off",
    "robots_pending": "fetching robots.txt",
    "robots_unavailable": "without robots.txt",
    "owned_elsewhere": "owned elsewhere",
    "closed": "closed",
}
"""The states of gates, as they are called of their origins."""

BUDGET_WORDS: Final[Mapping[str, str]] = {"budget.urls": "URLs", "budget.bytes": "bytes"}


@dataclass(frozen=True, slots=True)
class Spent:
    """What is used of a budget of the whole run."""

    rule: str
    used: int
    limit: int

    def words(self) -> str:
        """As a share: `40.0 % of the URLs`."""
        return f"{share(self.used, self.limit)} of the {BUDGET_WORDS.get(self.rule, self.rule)}"

    def amounts(self) -> str:
        """In full."""
        show = size if self.rule == "budget.bytes" else number
        name = BUDGET_WORDS.get(self.rule, self.rule)
        return f"{name} {show(self.used)} of {show(self.limit)} ({share(self.used, self.limit)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A crawl at one instant. Counts of what has happened are those of the session, all others of the run.

    `gates`: how many origins with work are in which state, as far as they are in memory; `cold`: origins with work
    that are not. `closed`: URLs of closed origins among those scheduled or timed.
    """

    at_ms: int
    answered: int
    failed: int
    rate: float
    in_flight: int
    scheduled: int
    timed: int
    held_back: int
    await_robots: int
    closed: int
    gates: Mapping[str, int]
    cold: int
    budgets: tuple[Spent, ...]
    ends_ms: int | None
    lag_s: float

    def left_s(self, now_ms: int) -> float | None:
        """Seconds until the deadline of the run; None without one."""
        return None if self.ends_ms is None else max(0.0, (self.ends_ms - now_ms) / 1000)

    def to_text(self) -> str:
        """As JSON, for the store."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, record: str) -> Situation:
        """Out of the store. Raises `ValueError` for what another version has written otherwise."""
        try:
            values: dict[str, Any] = json.loads(record)
            values["budgets"] = tuple(Spent(**spent) for spent in values["budgets"])
            return cls(**values)
        except (TypeError, KeyError) as exc:
            raise ValueError(f"not a situation: {exc}") from exc

    def is_like(self, other: Situation | None) -> bool:
        """Whether nothing but time has passed since."""
        return other is not None and _still(self) == _still(other)


def _still(situation: Situation) -> dict[str, Any]:
    values = asdict(situation)
    del values["at_ms"], values["lag_s"]
    return values


class Pace:
    """The rate of something that is counted, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, now: float, count: int) -> float:
        """Take in a count, and give the rate per second; 0 where there is only one."""
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - PACE_S:
            self._seen.popleft()
        since, before = self._seen[0]
        return (count - before) / (now - since) if now > since else 0.0


def parts(situation: Situation, now_ms: int) -> list[str]:
    """The situation in short phrases, the most important first."""
    return [
        f"{situation.rate:.1f} responses/s",
        f"{number(situation.in_flight)} in flight",
        *waiting(situation),
        *trouble(situation),
        *_limits(situation, now_ms),
        *origins(situation),
        f"{counted(situation.answered, 'response')}",
    ]


def waiting(situation: Situation) -> list[str]:
    """What waits, by what it waits for."""
    counts = {
        "queued": situation.scheduled,
        "timed": situation.timed,
        "beside the full queue": situation.held_back,
        "for robots.txt": situation.await_robots,
    }
    return [f"{number(count)} {words}" for words, count in counts.items() if count] or [
        "none queued"
    ]


def trouble(situation: Situation) -> list[str]:
    """Origins that are asked for less, or for nothing; and a writer that is behind."""
    troubled = ("backoff", "robots_unavailable", "closed")
    found = [
        f"{counted(situation.gates[state], 'origin')} {GATE_WORDS[state]}"
        for state in troubled
        if situation.gates.get(state)
    ]
    if situation.lag_s >= BEHIND_S:
        found.append(f"store {situation.lag_s:.1f} s behind")
    return found


def origins(situation: Situation) -> list[str]:
    """All origins with work."""
    total = sum(situation.gates.values()) + situation.cold
    return [f"{counted(total, 'origin')} with work"] if total else []


def gates(situation: Situation) -> list[str]:
    """Origins with work, by what their gates say."""
    found = [
        f"{number(situation.gates[state])} {words}"
        for state, words in GATE_WORDS.items()
        if situation.gates.get(state)
    ]
    return [*found, f"{number(situation.cold)} not in memory"] if situation.cold else found


def _limits(situation: Situation, now_ms: int) -> Iterator[str]:
    left_s = situation.left_s(now_ms)
    if left_s is not None:
        yield f"{duration(left_s)} left"
    yield from (spent.words() for spent in situation.budgets)
