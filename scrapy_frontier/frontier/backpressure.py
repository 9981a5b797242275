"""A bounded queue: what `FRONTIER_MAX_PENDING` holds back is let in as room comes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import LetIn, Read

if TYPE_CHECKING:
    from scrapy_frontier.clock import Clock
    from scrapy_frontier.store.writer import Writer

CHUNK: Final = 2000
"""Identities let in by one message at the most."""

LOW_WATER: Final = 0.75
"""Share of the bound to which the queue sinks before others are let in, so that few messages let in many."""


class Backpressure:
    """Knows how many wait beside the queue, and asks for them."""

    def __init__(self, writer: Writer, clock: Clock, run_id: int, max_pending: int | None) -> None:
        self._run_id = run_id
        self._writer = writer
        self._clock = clock
        self._max_pending = max_pending
        self._is_asking = False
        self.held_back: int = 0
        """Identities that wait beside the full queue."""

    def relieve(self, pending: int) -> None:
        """Let in as many as there is room for, where the queue has become short."""
        if not self.held_back or self._is_asking:
            return
        room = CHUNK
        if self._max_pending is not None:
            if pending > self._max_pending * LOW_WATER:
                return
            room = min(CHUNK, max(1, self._max_pending - pending))
        self._is_asking = True
        self._writer.send(LetIn(room, milliseconds(self._clock.now()), self._let_in))

    def _let_in(self, count: int) -> None:
        if count:
            self._is_asking = False
            self.held_back -= count
        else:
            # Those of the same transaction were not visible yet, or something else has taken them: count again.
            query = partial(rows.count_held_back, run_id=self._run_id)
            self._writer.send(Read(query, self._counted))

    def _counted(self, count: int) -> None:
        self._is_asking = False
        self.held_back = count
