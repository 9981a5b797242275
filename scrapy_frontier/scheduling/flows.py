"""Flows: what takes turns. A flow is one gate with the origins, and the permit waiters, that go
through it.

Nearly every flow has one origin. Where a user's `download_slot` sends several origins through one
gate, they share its turns, and take turns among themselves in the same way as flows do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from scrapy_frontier.scheduling.gates import Gate
    from scrapy_frontier.scheduling.lanes import Lane

COMPACT_AT: Final = 64
"""A heap shorter than this is never searched for entries out of date."""


class Member:
    """Something that takes turns in several bands.

    `ticket` is drawn anew each time it is served, in whichever band: the lowest ticket is the one
    not served for longest. `ready` is the set of bands, as bits, in which it can be served now;
    `queued` those in whose rota it stands.
    """

    __slots__ = ("queued", "ready", "ticket")

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.ready = 0
        self.queued = 0


M = TypeVar("M", bound=Member)


class Rota(Generic[M]):
    """Whose turn it is in one band: the ready member with the lowest ticket.

    A member that was served elsewhere, or is not ready any more, is put right when it comes to the
    top.
    """

    __slots__ = ("_bit", "_compact_at", "_heap")

    def __init__(self, band: int) -> None:
        self._bit = 1 << band
        self._heap: list[tuple[int, M]] = []
        self._compact_at = COMPACT_AT

    def __len__(self) -> int:
        """Entries, those out of date included."""
        return len(self._heap)

    def push(self, member: M) -> None:
        """Let a ready member stand in the rota; it must not stand there already."""
        if len(self._heap) >= self._compact_at:
            self._compact()
        member.queued |= self._bit
        heappush(self._heap, (member.ticket, member))

    def first(self) -> M | None:
        """The member whose turn it is; it stays there until its ticket or readiness changes."""
        heap, bit = self._heap, self._bit
        while heap:
            ticket, member = heap[0]
            if not member.ready & bit:
                heappop(heap)
                member.queued &= ~bit
            elif ticket != member.ticket:
                heapreplace(heap, (member.ticket, member))
            else:
                return member
        return None

    def _compact(self) -> None:
        """Drop the entries of members that are not ready, so that they cannot pile up below the
        top.
        """
        bit = self._bit
        kept = [entry for entry in self._heap if entry[1].ready & bit]
        for _, member in self._heap:
            if not member.ready & bit:
                member.queued &= ~bit
        heapify(kept)
        self._heap = kept
        self._compact_at = max(COMPACT_AT, 2 * len(kept))


class Origin(Member):
    """An origin in memory. As a member it is ready in the bands in which it has heads."""

    __slots__ = ("flow", "handed", "lanes", "origin_id", "stocked")

    def __init__(self, origin_id: int, flow: Flow, bands: int, ticket: int) -> None:
        super().__init__(ticket)
        self.origin_id = origin_id
        self.flow = flow
        self.lanes: list[Lane | None] = [None] * bands
        self.stocked = 0
        self.handed = 0

    def __repr__(self) -> str:
        heads = sum(len(lane.heads) for lane in self.lanes if lane is not None)
        return f"<Origin {self.origin_id} via {self.flow.key!r} heads={heads} handed={self.handed}>"


class Waiter(NamedTuple):
    """Somebody who wants a permit."""

    token: Hashable
    past_robots: bool


class Flow(Member):
    """A gate and what is behind it. As a member it is ready in the bands of `bands` while its gate
    is open.

    `bands` are those in which any of its origins has heads; `wake` numbers the entry that will open
    it by time, 0 where there is none; `was_permit` tells whether the last hand-out went to a
    waiter; `leaving` are origins that have left memory and wait here until the gate opens.
    """

    __slots__ = (
        "bands",
        "gate",
        "key",
        "leaving",
        "origins",
        "rotas",
        "sole",
        "waiters",
        "wake",
        "was_permit",
    )

    def __init__(self, key: str, gate: Gate, ticket: int) -> None:
        super().__init__(ticket)
        self.key = key
        self.gate = gate
        self.bands = 0
        self.origins = 0
        self.sole: Origin | None = None
        self.rotas: list[Rota[Origin]] | None = None
        self.waiters: deque[Waiter] | None = None
        self.leaving: list[int] | None = None
        self.wake = 0
        self.was_permit = False

    def __repr__(self) -> str:
        waiters = len(self.waiters or ())
        return f"<Flow {self.key!r} origins={self.origins} waiters={waiters} {self.gate!r}>"

    @property
    def has_work(self) -> bool:
        """Whether an opening of the gate would let something out."""
        return bool(self.bands or self.waiters)

    def attach(self, origin: Origin) -> None:
        """Let an origin without heads go through this gate."""
        self.origins += 1
        if self.origins == 1 and self.rotas is None:
            self.sole = origin
        elif self.rotas is None:
            self.rotas = [Rota(band) for band in range(len(origin.lanes))]
            if self.sole is not None:
                for band in range(len(origin.lanes)):
                    if self.sole.ready >> band & 1:
                        self.rotas[band].push(self.sole)
                self.sole = None

    def detach(self, origin: Origin) -> None:
        """Take an origin out, with whatever heads it has."""
        self.origins -= 1
        if self.sole is origin:
            self.sole = None
            self.bands = self.ready = 0
        elif self.rotas is not None:
            for band in range(len(origin.lanes)):
                if origin.ready >> band & 1:
                    self.exhaust(origin, band)

    def stock(self, origin: Origin, band: int) -> None:
        """An origin has got its first head in a band."""
        origin.ready |= 1 << band
        self.bands |= 1 << band
        if self.rotas is not None and not origin.queued >> band & 1:
            self.rotas[band].push(origin)

    def exhaust(self, origin: Origin, band: int) -> None:
        """An origin has no head left in a band."""
        origin.ready &= ~(1 << band)
        if self.rotas is None or self.rotas[band].first() is None:
            self.bands &= ~(1 << band)
            self.ready &= self.bands

    def turn(self, band: int) -> Origin | None:
        """The origin whose head of this band goes next."""
        return self.sole if self.rotas is None else self.rotas[band].first()
