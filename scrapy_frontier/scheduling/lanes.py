"""Lanes: the part of one origin's queue, inside one band, that is in memory.

A lane holds the best heads of its band, in the order (rank, identity_id); the store has them all.
What ties the two together is the *horizon*: every scheduled identity of this origin and band whose
key is below it has been in the lane, all others are in the store only. So

- a new head at or beyond the horizon stays in the store, since something there may be better;
- a refill asks for keys from the horizon on: what was handed out lay below it and cannot come back,
  however late the answer is;
- an answer is cut at the smallest key that was left to the store while the question was under way.

No horizon means that the store holds nothing more. The payload of a head lives as long as the head
is in memory: a head that is left to the store comes back with whatever the refill brings.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scrapy_frontier.scheduling.flows import Origin

Key = tuple[int, int]
"""(rank, identity_id): the order inside a band, smaller first."""


class Head(NamedTuple):
    """A scheduled identity. `payload` is the caller's and is never looked at."""

    rank: int
    identity_id: int
    payload: object = None


class Refill(NamedTuple):
    """Heads that are wanted from the store: scheduled identities of `origin_id`, in the order
    (rank, identity_id), the first `limit` with (rank, identity_id) >= `first` and rank <=
    `rank_max`.
    """

    origin_id: int
    band: int
    first: Key
    rank_max: int
    limit: int


class Lane:
    """The heads of one origin in one band."""

    __slots__ = ("_discarded", "_left", "band", "heads", "horizon", "origin", "refill")

    def __init__(self, origin: Origin, band: int, horizon: Key | None = None) -> None:
        self.origin = origin
        self.band = band
        self.heads: list[Head] = []
        self.horizon = horizon
        self.refill: Refill | None = None
        self._left: Key | None = None
        self._discarded: set[int] | None = None

    def __repr__(self) -> str:
        more = "" if self.horizon is None else f" more from {self.horizon}"
        return f"<Lane band={self.band} heads={len(self.heads)}{more}>"

    @property
    def more_in_store(self) -> bool:
        """Whether the store may hold heads that are not here."""
        return self.horizon is not None

    def add(self, head: Head, capacity: int) -> Head | None:
        """Take in a head that has just been scheduled; the one that is left to the store for it, if
        any.

        That is the worst head of a full lane, or `head` itself.
        """
        heads = self.heads
        if self.horizon is not None and head >= self.horizon:
            self.leave(head[:2])
            return head
        if not heads or head > heads[-1]:
            if len(heads) < capacity:
                heads.append(head)
                return None
            self.leave(head[:2])
            return head
        insort(heads, head)
        if len(heads) <= capacity:
            return None
        worst = heads.pop()
        self.leave(worst[:2])
        return worst

    def pop(self) -> Head:
        """Take out the best head."""
        return self.heads.pop(0)

    def trim(self, capacity: int) -> list[Head]:
        """Leave the worst heads to the store until at most `capacity` remain; the heads left."""
        left = self.heads[capacity:]
        if left:
            del self.heads[capacity:]
            self.leave(left[0][:2])
        return left

    def discard(self, identity_id: int) -> bool:
        """Forget an identity that is scheduled no more; whether it was here."""
        if self.refill is not None:
            if self._discarded is None:
                self._discarded = set()
            self._discarded.add(identity_id)
        for index, head in enumerate(self.heads):
            if head.identity_id == identity_id:
                del self.heads[index]
                return True
        return False

    def wants_refill(self, low_water: int) -> bool:
        """Whether it runs low, the store has more, and nobody has asked yet."""
        return self.horizon is not None and self.refill is None and len(self.heads) <= low_water

    def ask(self, rank_max: int, limit: int) -> Refill:
        """The question to the store; until it is answered there is no other."""
        if self.horizon is None:
            raise ValueError(f"{self!r}: the store holds nothing more, there is nothing to ask for")
        self.refill = Refill(self.origin.origin_id, self.band, self.horizon, rank_max, limit)
        return self.refill

    def answer(
        self,
        refill: Refill,
        heads: Iterable[Head],
        more_in_store: bool,
        room: int,
        known: Container[int],
    ) -> list[Head]:
        """Take in the answer to `refill`; the heads that were added, at most `room`.

        `known` are the identities in memory. Heads that were discarded meanwhile, or lie below what
        was asked for, are passed over.
        """
        rows = sorted(heads, key=lambda head: head[:2])
        if rows:
            horizon = (rows[-1].rank, rows[-1].identity_id + 1) if more_in_store else None
        else:
            horizon = refill.first if more_in_store else None
        if self._left is not None:
            horizon = self._left if horizon is None else min(horizon, self._left)
        discarded = self._discarded or ()
        added = [
            head
            for head in rows
            if head >= refill.first
            and (horizon is None or head < horizon)
            and head.identity_id not in discarded
            and head.identity_id not in known
        ]
        if len(added) > room:
            horizon = added[room][:2]
            del added[room:]
        self.horizon = horizon
        self.refill = self._left = self._discarded = None
        self.heads += added
        return added

    def leave(self, key: Key) -> None:
        """Note that the store holds a head of this key and memory does not."""
        if self.horizon is None or key < self.horizon:
            self.horizon = key
        if self.refill is not None and (self._left is None or key < self._left):
            self._left = key
