"""Links as votes: a URL in the queue moves forward whenever the references to it have doubled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scrapy_frontier.policy.priority import is_promotion
from scrapy_frontier.store.messages import Promote

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_frontier.frontier.page import KnownUrl
    from scrapy_frontier.store.messages import Head
    from scrapy_frontier.store.writer import Writer


class Promotion:
    """Counts references, and has the queue changed. `points`: for each doubling; 0 switches it off.

    The writer changes the place in the store, and answers with the head as it is then; `move` changes it in
    memory, given the rank before.
    What is handed out between the two has no place any more: `forget` it.
    """

    def __init__(self, writer: Writer, points: int, move: Callable[[Head, int], None]) -> None:
        self._writer = writer
        self._points = points
        self._move = move
        self._under_way: dict[int, int] = {}
        self.promoted: int = 0

    def note(self, known: KnownUrl) -> None:
        """One more reference to a URL."""
        if not self._points:
            return
        known.references += 1
        if known.identity_id and not known.is_suppressed and is_promotion(known.references):
            number = known.identity_id
            self._under_way[number] = self._under_way.get(number, 0) + 1
            self._writer.send(Promote(number, self._points, partial(self._answered, number)))

    def forget(self, identity_id: int) -> None:
        """It has left the queue."""
        self._under_way.pop(identity_id, None)

    def _answered(self, identity_id: int, head: Head | None) -> None:
        left = self._under_way.pop(identity_id, 0)
        if left > 1:
            self._under_way[identity_id] = left - 1
        if left and head is not None:
            self.promoted += 1
            self._move(head, head.rank + self._points)
