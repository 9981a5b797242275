"""The global limit: how many requests may be on the wire at once, whoever issued them (invariant 7)."""

from __future__ import annotations

import asyncio
from collections import deque


class Wire:
    """Places on the wire, first come, first served. A limit of 0 is none, as in `CONCURRENT_REQUESTS`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_flight: int = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __repr__(self) -> str:
        return f"<Wire {self.in_flight}/{self.limit or 'any'}, {len(self._waiting)} waiting>"

    async def enter(self) -> None:
        """Take a place; wait for one if all are taken."""
        if not self.limit or self.in_flight < self.limit:
            self.in_flight += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place back, to whoever has waited longest."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.in_flight -= 1

    def abandon(self, error: Exception) -> None:
        """The crawl is being stopped: those who wait get `error` in place of a place."""
        for place in self._waiting:
            if not place.done():
                place.set_exception(error)
        self._waiting.clear()
