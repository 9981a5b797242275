"""Origins that are closed for this run: why, and how many of their URLs stay where they are.

What stays does not keep the run from its end; a resumed run tries again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import Read

if TYPE_CHECKING:
    from scrapy_frontier.store.writer import Writer

RECOUNT_S: Final = 1.0


class ClosedOrigins:
    """Counts the work of closed origins. An origin may be closed for several reasons at once."""

    def __init__(self, writer: Writer, run_id: int) -> None:
        self._writer = writer
        self._run_id = run_id
        self._reasons: dict[int, set[str]] = {}
        self._scheduled: dict[int, int] = {}
        self._counted_at = 0.0
        self.timed: int = 0
        """URLs of closed origins that wait for a time."""

    def __contains__(self, origin_id: int) -> bool:
        return origin_id in self._reasons

    def __len__(self) -> int:
        return len(self._reasons)

    def __repr__(self) -> str:
        return f"<ClosedOrigins {self._reasons}, {self.scheduled} scheduled, {self.timed} timed>"

    @property
    def scheduled(self) -> int:
        """URLs of closed origins that stay scheduled."""
        return sum(self._scheduled.values())

    def close(self, origin_id: int, reason: str) -> None:
        """Close an origin; its URLs are counted."""
        reasons = self._reasons.setdefault(origin_id, set())
        reasons.add(reason)
        if origin_id not in self._scheduled:
            self._scheduled[origin_id] = 0
            question = partial(rows.count_scheduled, origin_id=origin_id)
            self._writer.send(Read(question, partial(self._counted, origin_id)))
            self._count_timed()

    def reopen(self, origin_id: int, reason: str) -> None:
        """End one reason for which an origin is closed."""
        reasons = self._reasons.get(origin_id, set())
        reasons.discard(reason)
        if not reasons:
            self._reasons.pop(origin_id, None)
            self._scheduled.pop(origin_id, None)

    def arrived(self, origin_id: int) -> bool:
        """A URL has become scheduled; whether its origin is closed."""
        if origin_id not in self._reasons:
            return False
        self._scheduled[origin_id] += 1
        # It may be one that has waited for its time; the next count tells.
        self.timed = max(0, self.timed - 1)
        return True

    def recount(self, timed: int, now: float) -> None:
        """Count again, once in a while, where URLs wait for a time that may be of closed origins."""
        if self._reasons and timed > self.timed and now - self._counted_at >= RECOUNT_S:
            self._counted_at = now
            self._count_timed()

    def _count_timed(self) -> None:
        question = partial(rows.count_timed, run_id=self._run_id, origin_ids=list(self._reasons))
        self._writer.send(Read(question, self._counted_timed))

    def _counted(self, origin_id: int, count: int) -> None:
        if origin_id in self._reasons:
            self._scheduled[origin_id] = count

    def _counted_timed(self, count: int) -> None:
        self.timed = count
