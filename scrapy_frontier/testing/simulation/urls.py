"""The URLs of a simulated crawl and where each stands: what a store holds, in memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from scrapy_frontier.policy.retry import Counts
from scrapy_frontier.scheduling import Head, Refill


class Url:
    """One URL: its origin, what it has used up, and how it ended ("" while it has not)."""

    __slots__ = ("attempts", "end", "faults", "holds", "number", "origin_id")

    def __init__(self, number: int, origin_id: int) -> None:
        self.number = number
        self.origin_id = origin_id
        self.attempts = 0
        self.faults = 0
        self.holds = 0
        self.end = ""

    def __repr__(self) -> str:
        return f"<Url {self.number} of origin {self.origin_id}: {self.end or 'open'}>"

    def count(self, counts: Counts) -> None:
        """An attempt came to nothing and another follows."""
        if counts is Counts.HOLD:
            self.holds += 1
        else:
            self.faults += 1


class Urls:
    """All URLs, and those that are scheduled, by origin and in order: the answers to the schedule's
    questions come from here. It outlives the simulated process.
    """

    def __init__(self) -> None:
        self.all: list[Url] = []
        self.due: dict[int, float] = {}
        self._scheduled: dict[int, list[tuple[int, int]]] = {}

    def __repr__(self) -> str:
        return f"<Urls {len(self.all)}, {self.scheduled} scheduled, {len(self.due)} due later>"

    @property
    def scheduled(self) -> int:
        """URLs that wait for their turn."""
        return sum(map(len, self._scheduled.values()))

    def waiting(self, origin_id: int) -> int:
        """URLs of an origin that wait for their turn."""
        return len(self._scheduled.get(origin_id, ()))

    def new(self, origin_id: int) -> Url:
        """A further URL of an origin."""
        url = Url(len(self.all) + 1, origin_id)
        self.all.append(url)
        return url

    def of(self, number: int) -> Url:
        """The URL of this number."""
        return self.all[number - 1]

    def schedule(self, url: Url) -> Head:
        """A URL waits for its turn."""
        self.due.pop(url.number, None)
        insort(self._scheduled.setdefault(url.origin_id, []), (0, url.number))
        return Head(0, url.number, url.number)

    def take(self, url: Url) -> None:
        """A URL is handed out."""
        waiting = self._scheduled[url.origin_id]
        del waiting[bisect_left(waiting, (0, url.number))]

    def origins(self) -> Iterable[int]:
        """Origins with URLs that wait for their turn."""
        return [origin_id for origin_id, waiting in self._scheduled.items() if waiting]

    def heads(self, refill: Refill) -> tuple[list[Head], bool]:
        """The answer to a question of the schedule, and whether there is more."""
        waiting = self._scheduled.get(refill.origin_id, [])
        start = bisect_left(waiting, refill.first)
        found = waiting[start : start + refill.limit]
        kept = [Head(rank, number, number) for rank, number in found if rank <= refill.rank_max]
        return kept, len(kept) == len(found) and start + len(found) < len(waiting)

    def first(self, origin_id: int, limit: int) -> tuple[list[Head], bool]:
        """The first heads of an origin that comes into memory, and whether there is more."""
        waiting = self._scheduled.get(origin_id, [])
        heads = [Head(rank, number, number) for rank, number in waiting[:limit]]
        return heads, len(waiting) > limit
