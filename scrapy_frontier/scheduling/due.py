"""Times at which identities become due: retries, and requests that asked not to go out before a
time.

The store holds all of them, memory the soonest. As with lanes, a *horizon* ties the two together:
every time that lies below it is here, or was popped; all others are in the store only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

Due = tuple[float, int]
"""(due_at, identity_id): the order, soonest first."""


class DueRefill(NamedTuple):
    """Times wanted from the store: the first `limit` with (due_at, identity_id) >= `first`, in that
    order.
    """

    first: Due
    limit: int


class DueQueue:
    """The soonest due times, at most `limit` of them."""

    __slots__ = ("_asked", "_dues", "_horizon", "_left", "_limit")

    def __init__(self, limit: int, *, more_in_store: bool = False) -> None:
        """`more_in_store`: whether the store holds times this queue was not told of, as after a
        restart.
        """
        if limit < 1:
            raise ValueError(f"limit = {limit!r}: must be at least 1")
        self._limit = limit
        self._dues: list[Due] = []
        self._horizon: Due | None = (-inf, 0) if more_in_store else None
        self._asked: DueRefill | None = None
        self._left: Due | None = None

    def __len__(self) -> int:
        return len(self._dues)

    def __repr__(self) -> str:
        more = "" if self._horizon is None else f" more from {self._horizon[0]}"
        return f"<DueQueue {len(self._dues)}/{self._limit} next_at={self.next_at()}{more}>"

    @property
    def more_in_store(self) -> bool:
        """Whether the store may hold times that are not here."""
        return self._horizon is not None

    @property
    def horizon(self) -> float:
        """All due times before this one are known here; infinite where nothing is in the store
        only.
        """
        return inf if self._horizon is None else self._horizon[0]

    @property
    def wants_refill(self) -> bool:
        """Whether the times here run low, the store has more, and nobody has asked yet."""
        is_low = len(self._dues) <= self._limit // 4
        return is_low and self._horizon is not None and self._asked is None

    def add(self, due_at: float, identity_id: int) -> bool:
        """Take in a time; whether it is held in memory. The latest is left to the store where there
        are too many.
        """
        due = (due_at, identity_id)
        if self._horizon is not None and due >= self._horizon:
            self._leave(due)
            return False
        insort(self._dues, due)
        if len(self._dues) <= self._limit:
            return True
        latest = self._dues.pop()
        self._leave(latest)
        return latest != due

    def pop_due(self, now: float) -> list[int]:
        """The identities that are due, soonest first, each once."""
        end = bisect_left(self._dues, (now, inf))
        due = [identity_id for _, identity_id in self._dues[:end]]
        del self._dues[:end]
        return due

    def next_at(self) -> float | None:
        """The soonest time in memory; None where there is none."""
        return self._dues[0][0] if self._dues else None

    def refill(self) -> DueRefill | None:
        """The question to the store, if one is due; the next only after `refilled` answered it."""
        if not self.wants_refill or self._horizon is None:
            return None
        self._asked = DueRefill(self._horizon, self._limit - len(self._dues))
        return self._asked

    def refilled(self, pairs: Iterable[Due], more_in_store: bool) -> None:
        """Take in the answer: (due_at, identity_id) pairs, and whether the store has later ones
        still.

        Raises ValueError where nothing was asked.
        """
        if self._asked is None:
            raise ValueError("refilled: nothing was asked")
        rows = sorted(pairs)
        horizon = self._asked.first if more_in_store else None
        if rows and more_in_store:
            horizon = (rows[-1][0], rows[-1][1] + 1)
        if self._left is not None:
            horizon = self._left if horizon is None else min(horizon, self._left)
        first = self._asked.first
        taken = [due for due in rows if due >= first and (horizon is None or due < horizon)]
        room = max(0, self._limit - len(self._dues))
        if len(taken) > room:
            horizon = taken[room]
            del taken[room:]
        self._horizon = horizon
        self._asked = self._left = None
        self._dues += taken

    def _leave(self, due: Due) -> None:
        if self._horizon is None or due < self._horizon:
            self._horizon = due
        if self._asked is not None and (self._left is None or due < self._left):
            self._left = due
