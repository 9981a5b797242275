"""The window: outcomes of one origin, collected until they are worth a decision."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.health.outcomes import REPEATED, SIGNS_OF_LIFE, Kind
from scrapy_frontier.policy.health.records import Summary

if TYPE_CHECKING:
    from scrapy_frontier.policy.health.outcomes import Outcome
    from scrapy_frontier.policy.health.records import HealthState

LEAST_ANSWERS: Final = 8
"""A window without trouble ends after so many answers, or after two rounds of them where only the
number in flight holds them back."""

ANSWERS_TO_RETURN: Final = 2
"""So many answers are enough while an origin is asked for less than it took well before."""

REPEATS: Final = 3
"""So many server errors in a row are trouble."""

BREAKS: Final = 2
"""So many connections that break in one window are trouble: one may break for any reason."""


class Window:
    """Collects outcomes in the order in which they come. It holds at most two rounds of them."""

    __slots__ = (
        "_counts",
        "_ended_at",
        "_errors",
        "_failing_since",
        "_has_life",
        "_latencies",
        "_stale",
        "_started_at",
    )

    def __init__(self) -> None:
        self._errors = 0
        self._ended_at = 0.0
        self._begin()

    def _begin(self) -> None:
        self._counts: Counter[Kind] = Counter()
        self._latencies: list[float] = []
        self._stale = 0
        self._started_at: float | None = None
        self._failing_since: float | None = None
        self._has_life = False

    def __repr__(self) -> str:
        counts = {kind.label: count for kind, count in self._counts.items()}
        return f"<Window since {self._started_at}: {counts}, {self._stale} stale>"

    def add(self, outcome: Outcome, state: HealthState) -> Summary | None:
        """Take in an outcome; the summary, where that ends the window. A new window begins then.

        Trouble ends it at once. What left before the last change to less cannot ask for still less.
        """
        self._note_life(outcome)
        if outcome.started_at < state.changed_at:
            self._stale += 1
            return None
        if self._started_at is None:
            self._started_at = max(outcome.started_at, state.changed_at, self._ended_at)
        kind = outcome.kind
        self._counts[kind] += 1
        self._errors = self._errors + 1 if kind in REPEATED else 0
        if kind is Kind.ANSWERED:
            self._latencies.append(outcome.latency_s)
        is_trouble = self._is_trouble(kind)
        if is_trouble or self._counts.total() >= _wanted(state):
            return self._close(outcome, kind.label if is_trouble else "")
        return None

    def _is_trouble(self, kind: Kind) -> bool:
        if kind is Kind.ANSWERED:
            return False
        if kind is Kind.BROKEN:
            return self._counts[kind] >= BREAKS
        return kind not in REPEATED or self._errors >= REPEATS

    def _note_life(self, outcome: Outcome) -> None:
        if outcome.kind in SIGNS_OF_LIFE:
            self._has_life = True
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = outcome.started_at

    def _close(self, outcome: Outcome, trouble: str) -> Summary:
        latencies = sorted(self._latencies)
        assert self._started_at is not None
        summary = Summary(
            self._started_at,
            outcome.ended_at,
            **{kind.label: count for kind, count in self._counts.items()},
            stale=self._stale,
            latency_s=latencies[len(latencies) // 4] if latencies else None,
            mean_s=sum(latencies) / len(latencies) if latencies else None,
            trouble=trouble,
            failing_since=self._failing_since,
            has_life=self._has_life,
        )
        self._ended_at = outcome.ended_at
        self._begin()
        if trouble:
            self._errors = 0
        return summary


def _wanted(state: HealthState) -> int:
    if state.is_returning:
        return ANSWERS_TO_RETURN
    return LEAST_ANSWERS if state.interval_s else max(LEAST_ANSWERS, 2 * state.concurrency)
