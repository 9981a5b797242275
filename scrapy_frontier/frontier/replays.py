"""Requests that are answered from evidence: their leases are granted, and nothing of them goes on the wire.

They pass the engine and all middlewares as others do, without a place at a gate: no origin notices them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.errors import IdentityError
from scrapy_frontier.frontier.attempts import Attempt, detail
from scrapy_frontier.frontier.slots import META_KEY, SLOT
from scrapy_frontier.logs import get_logger
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Finding, Head, Lease, Move, Reason

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_frontier.frontier.core import Frontier

logger = get_logger(__name__)

UNRESTORABLE: Final = "request.unrestorable"


class Replay(NamedTuple):
    """A dispatched identity and the digest of the response that answers it."""

    head: Head
    lease: Lease
    evidence: bytes


class Replays:
    """Those that wait to be handed out, first come, first served. They come before the schedule."""

    def __init__(self, waiting: Iterable[Replay] = ()) -> None:
        self._waiting = deque(waiting)
        self._asked = 0

    def __len__(self) -> int:
        return len(self._waiting) + self._asked

    @property
    def is_pending(self) -> bool:
        """Whether one waits, or waits for its lease."""
        return len(self) > 0

    def add_when(
        self, granted: asyncio.Future[bool], replay: Replay, wake: Callable[[], None]
    ) -> None:
        """Add one as soon as its lease is granted, and wake the engine."""
        self._asked += 1

        def settle(done: asyncio.Future[bool]) -> None:
            self._asked -= 1
            if not done.cancelled() and done.result():
                self._waiting.append(replay)
            wake()

        granted.add_done_callback(settle)

    @property
    def leases(self) -> list[Lease]:
        """The leases of those that wait."""
        return [replay.lease for replay in self._waiting]

    def next_request(self, frontier: Frontier) -> Request | None:
        """The next request that is answered from evidence, its attempt under way; None where there is none."""
        while self._waiting:
            replay = self._waiting.popleft()
            try:
                request = frontier.opened.restore(replay.head)
            except IdentityError as error:
                _give_up(frontier, replay, error)
                continue
            return _hand_out(frontier, replay, request)
        return None


def _hand_out(frontier: Frontier, replay: Replay, request: Request) -> Request:
    head = replay.head
    attempt = Attempt(request, replay.lease, head.origin_id, "", head.url, head.depth)
    attempt.has_place = False
    attempt.replay = replay.evidence
    frontier.attempts[request] = attempt
    request.meta[META_KEY] = SLOT
    return request


def _give_up(frontier: Frontier, replay: Replay, error: IdentityError) -> None:
    logger.error("Gave up %s: %s", replay.head.url, error, extra={"action": "request_unrestorable"})
    frontier.opened.writer.send(
        Move(
            replay.lease,
            Event.GIVE_UP,
            Reason(UNRESTORABLE, detail(error=str(error))),
            milliseconds(frontier.clock.now()),
            Disposition.FAILED,
            Finding(UNRESTORABLE),
        )
    )
