"""Cold origins: those that have work in the store and are not in memory. Their number is bounded here too."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

LIMIT: Final = 50_000
"""Cold origins remembered; beyond that they are found again in the store."""


class ColdOrigins:
    """A queue of origin ids with work, in the order in which they came."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._waiting: OrderedDict[int, str | None] = OrderedDict()
        self.overflows = False
        """Whether the store may hold cold origins that are not remembered here."""
        self.is_loading = False

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, origin_id: int) -> bool:
        return origin_id in self._waiting

    @property
    def wants_load(self) -> bool:
        """Whether the store should be asked for those that were not remembered."""
        return self.overflows and not self._waiting and not self.is_loading

    def put(self, origin_id: int, origin: str | None) -> None:
        """Remember an origin; it keeps its turn if it waits already."""
        if origin_id in self._waiting:
            return
        if len(self._waiting) < self._limit:
            self._waiting[origin_id] = origin
        else:
            self.overflows = True

    def pop(self) -> tuple[int, str | None] | None:
        """The origin that has waited longest."""
        return self._waiting.popitem(last=False) if self._waiting else None

    def load(self, found: Iterable[tuple[int, str]], is_hot: Callable[[int], bool]) -> None:
        """Take in what the store has, as far as there is room."""
        self.is_loading = self.overflows = False
        for origin_id, origin in found:
            if not is_hot(origin_id):
                self.put(origin_id, origin)
