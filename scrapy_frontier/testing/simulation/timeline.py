"""Virtual time: what happens next, in order; nothing ever waits."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

EPOCH: Final = 1_700_000_000.0
"""The instant at which simulations begin, in seconds since the epoch."""


class Timeline:
    """A clock that jumps from event to event. Events of one instant happen in the order they were
    planned in.
    """

    def __init__(self, start: float = EPOCH) -> None:
        self._now = start
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self.happened = 0

    def __repr__(self) -> str:
        return f"<Timeline at {self._now - EPOCH:.3f} s, {len(self._events)} events ahead>"

    def now(self) -> float:
        """Seconds since the epoch, as `scrapy_frontier.clock.Clock` has it."""
        return self._now

    def at(self, when: float, event: Callable[[], None]) -> None:
        """Plan an event; one that is planned for the past happens next."""
        self._serial += 1
        heappush(self._events, (max(when, self._now), self._serial, event))

    def step(self) -> bool:
        """Let the next event happen; whether there was one."""
        if not self._events:
            return False
        self._now, _, event = heappop(self._events)
        self.happened += 1
        event()
        return True

    def clear(self) -> None:
        """Forget all events: the process they belonged to is gone."""
        self._events.clear()
