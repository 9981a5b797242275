"""The window: all lanes together, and the bound on the heads they hold.

How many heads a lane may hold follows from the number of lanes: `size` divided by it (counted up
to the next power of two, so that the lanes are trimmed only when their number has doubled), and
never more than `lane_heads`. So one giant origin cannot push the others out, and the sum stays
below `size` whatever is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from scrapy_frontier.scheduling.lanes import Head, Key, Lane, Refill

if TYPE_CHECKING:
    from scrapy_frontier.scheduling.flows import Origin
    from scrapy_frontier.scheduling.selector import BandTable


class Window:
    """The heads in memory. Tells the flows in which bands they have some."""

    __slots__ = (
        "_bound",
        "_lane_heads",
        "_lanes",
        "_origins",
        "_table",
        "_wanting",
        "_where",
        "capacity",
        "size",
    )

    def __init__(
        self, table: BandTable, origins: Mapping[int, Origin], size: int, lane_heads: int
    ) -> None:
        self._table = table
        self._origins = origins
        self.size = size
        self._lane_heads = lane_heads
        self._where: dict[int, Lane] = {}
        self._wanting: dict[Lane, None] = {}
        self._lanes = 0
        self._bound = 1
        self.capacity = min(lane_heads, size)

    def __len__(self) -> int:
        """Heads in memory."""
        return len(self._where)

    def __contains__(self, identity_id: int) -> bool:
        return identity_id in self._where

    @property
    def lanes(self) -> int:
        """Lanes in memory."""
        return self._lanes

    def add(self, origin: Origin, head: Head) -> None:
        """Take in a head of a hot origin, or leave it to the store; one that is here already
        changes nothing.
        """
        where = self._where
        identity_id = head.identity_id
        if identity_id in where:
            return
        band = self._table.band_of(head.rank)
        lane = origin.lanes[band]
        if lane is None:
            lane = self._open(origin, band)
        left = lane.add(head, self.capacity if len(where) < self.size else len(lane.heads))
        if left is not head:
            where[identity_id] = lane
            if left is not None:
                del where[left.identity_id]
            elif len(lane.heads) == 1:
                origin.flow.stock(origin, band)
        if left is not None:
            self._want(lane)

    def pop(self, origin: Origin, band: int) -> Head:
        """Take out the best head of an origin in a band in which it has some."""
        lane = origin.lanes[band]
        assert lane is not None
        head = lane.pop()
        del self._where[head.identity_id]
        if lane.horizon is not None:
            self._want(lane)
        if not lane.heads:
            origin.flow.exhaust(origin, band)
            self._close_if_done(lane)
        return head

    def discard(self, origin: Origin, identity_id: int) -> bool:
        """Forget an identity of this origin that is scheduled no more; whether it was in memory."""
        for lane in origin.lanes:
            if lane is not None and lane.discard(identity_id):
                del self._where[identity_id]
                self._want(lane)
                if not lane.heads:
                    origin.flow.exhaust(origin, lane.band)
                    self._close_if_done(lane)
                return True
        return False

    def drop(self, origin: Origin) -> None:
        """Leave all heads of an origin to the store."""
        for lane in origin.lanes:
            if lane is not None:
                for head in lane.heads:
                    del self._where[head.identity_id]
                self._close(lane)

    def load(
        self,
        origin: Origin,
        band: int,
        heads: Iterable[Head],
        more_in_store: bool,
        left: Key | None,
        discarded: Iterable[int],
    ) -> None:
        """Make the lane of an origin that has just become hot, from the first heads the store has
        in that band.

        `left` is the least key, `discarded` are the ids, that came or went while the store was
        asked.
        """
        least, greatest = self._table.ranks(band)
        lane = self._open(origin, band)
        lane.horizon = (least, 0)
        refill = lane.ask(greatest, self.capacity)
        if left is not None:
            lane.leave(left)
        for identity_id in discarded:
            lane.discard(identity_id)
        self.refilled(refill, heads, more_in_store)

    def refills(self) -> list[Refill]:
        """The questions for the store that are due now. Each is asked once, until `refilled`
        answers it.
        """
        if not self._wanting:
            return []
        room = self.size - len(self._where)
        refills = []
        for lane in list(self._wanting):
            if room <= 0:
                break
            del self._wanting[lane]
            if lane.wants_refill(self.capacity // 4):
                limit = min(room, self.capacity - len(lane.heads))
                room -= limit
                refills.append(lane.ask(self._table.ranks(lane.band)[1], limit))
        return refills

    def refilled(self, refill: Refill, heads: Iterable[Head], more_in_store: bool) -> bool:
        """Take in the answer; False where nobody waits for it any more."""
        origin = self._origins.get(refill.origin_id)
        lane = origin.lanes[refill.band] if origin is not None else None
        if origin is None or lane is None or lane.refill is not refill:
            return False
        was_empty = not lane.heads
        room = min(self.size - len(self._where), self.capacity - len(lane.heads))
        for head in lane.answer(refill, heads, more_in_store, max(0, room), self._where):
            self._where[head.identity_id] = lane
        if was_empty and lane.heads:
            origin.flow.stock(origin, lane.band)
        self._want(lane)
        self._close_if_done(lane)
        return True

    def _want(self, lane: Lane) -> None:
        if lane.wants_refill(self.capacity // 4):
            self._wanting[lane] = None

    def _open(self, origin: Origin, band: int) -> Lane:
        lane = Lane(origin, band)
        origin.lanes[band] = lane
        origin.stocked |= 1 << band
        self._lanes += 1
        if self._lanes > self._bound:
            self._bound *= 2
            self._set_capacity()
            self._trim()
        return lane

    def _close_if_done(self, lane: Lane) -> None:
        if not lane.heads and lane.horizon is None:
            self._close(lane)

    def _close(self, lane: Lane) -> None:
        lane.origin.lanes[lane.band] = None
        lane.origin.stocked &= ~(1 << lane.band)
        self._wanting.pop(lane, None)
        self._lanes -= 1
        if self._lanes < self._bound // 4:
            self._bound //= 2
            self._set_capacity()

    def _set_capacity(self) -> None:
        self.capacity = max(1, min(self._lane_heads, self.size // self._bound))

    def _trim(self) -> None:
        for origin in self._origins.values():
            for lane in origin.lanes:
                if lane is not None and len(lane.heads) > self.capacity:
                    for head in lane.trim(self.capacity):
                        del self._where[head.identity_id]
