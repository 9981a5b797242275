"""Budgets that the running crawl spends: bytes, of the run and of each origin, and time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy_frontier.identity import origin_of
from scrapy_frontier.policy.budgets import BYTES, ORIGIN_BYTES, Breach
from scrapy_frontier.store import rows

if TYPE_CHECKING:
    import asyncio

    from scrapy_frontier.settings import FrontierSettings

BYTES_REASON: Final = "frontier_budget_bytes"
"""The reason that the spider is closed with when the bytes of the run are spent."""

DEADLINE_REASON: Final = "frontier_deadline"
"""The reason that the spider is closed with when the time of the run is over."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may be spent; None is no limit."""

    total_bytes: int | None = None
    origin_bytes: int | None = None
    duration_s: float | None = None

    @classmethod
    def of(cls, settings: FrontierSettings) -> Allowance:
        """The limits that the settings name."""
        return cls(settings.max_bytes, settings.max_bytes_per_origin, settings.max_duration_s)

    @property
    def counts_bytes(self) -> bool:
        """Whether the bytes of responses matter."""
        return self.total_bytes is not None or self.origin_bytes is not None


class Spending:
    """What a run has spent so far, its earlier sessions included."""

    def __init__(self, allowance: Allowance, close_spider: Callable[[str], None]) -> None:
        self.allowance = allowance
        self._close_spider = close_spider
        self.total_bytes: int = 0
        self._by_origin: Counter[str] = Counter()
        self._earlier_s = 0.0
        self._deadline: asyncio.TimerHandle | None = None
        self._now: Callable[[], float] = time.monotonic

    def resume(self, cursor: rows.Cursor, run_id: int, session_id: int) -> None:
        """Learn what earlier sessions have spent."""
        if self.allowance.counts_bytes:
            for origin, size in rows.bytes_by_origin(cursor, run_id):
                self._count(origin.partition(" (")[0], int(size))
        if self.allowance.duration_s is not None:
            self._earlier_s = rows.time_in_sessions_ms(cursor, run_id, session_id) / 1000

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """The clock of this session runs from now; what was spent before counts."""
        if self.allowance.duration_s is not None:
            left_s = max(0.0, self.allowance.duration_s - self._earlier_s)
            self._deadline = loop.call_later(left_s, self._close_spider, DEADLINE_REASON)
            self._now = loop.time
        self._stop_if_spent()

    @property
    def left_s(self) -> float | None:
        """Seconds until the time of the run is over; None without a limit, or before its clock runs."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline.when() - self._now())

    def stop(self) -> None:
        """The crawl closes."""
        if self._deadline is not None:
            self._deadline.cancel()

    def take(self, url: str, size: int) -> None:
        """A response of this many bytes has come."""
        if self.allowance.counts_bytes:
            self._count(origin_of(url), size)
            self._stop_if_spent()

    def breach(self, origin: str) -> Breach | None:
        """The budget of an origin, where it is spent."""
        limit = self.allowance.origin_bytes
        if limit is None or self._by_origin[origin] < limit:
            return None
        return Breach(ORIGIN_BYTES, origin, limit, self._by_origin[origin])

    def total_breach(self) -> Breach | None:
        """The budget of the run, where it is spent."""
        limit = self.allowance.total_bytes
        if limit is None or self.total_bytes < limit:
            return None
        return Breach(BYTES, "", limit, self.total_bytes)

    def _count(self, origin: str, size: int) -> None:
        self.total_bytes += size
        if self.allowance.origin_bytes is not None:
            self._by_origin[origin] += size

    def _stop_if_spent(self) -> None:
        if self.total_breach() is not None:
            self._close_spider(BYTES_REASON)
