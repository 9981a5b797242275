"""The leases of this process: renewed where work is seen to go on, let go where they were taken back.

A sign of work is bytes that arrive, an item or a request that a callback yields, an item that has passed the pipelines,
a step from one stage to the next. Time alone renews nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier import hops
from scrapy_frontier.frontier.page import CURRENT_PAGE
from scrapy_frontier.frontier.slots import META_KEY
from scrapy_frontier.logs import get_logger
from scrapy_frontier.store.messages import Expire, Reclaimed, Renew

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.core import Frontier

logger = get_logger(__name__)

LOOKS: Final = 4
"""How often the leases are looked at in the length of one."""

SHORTEST_PERIOD_S: Final = 0.05

STOPPING: Final = "frontier: the crawl is being stopped"

LOST: Final = "frontier: the lease is not in force any more"


class LeaseLost(IgnoreRequest):
    """The attempt's lease is not in force any more, so nothing that it brings reaches a callback or an errback."""


class Leases:
    """Looks at the leases of a run from time to time, while the run is open."""

    def __init__(self, frontier: Frontier, length_s: float) -> None:
        self._frontier = frontier
        self._period_s = max(SHORTEST_PERIOD_S, length_s / LOOKS)
        self._timer: asyncio.TimerHandle | None = None
        self.renewed: int = 0
        """Renewals asked for."""
        self.expired: int = 0
        """Leases that were taken back."""
        self.lost: int = 0
        """Attempts of this process that found their lease taken back, or never got it."""

    def start(self) -> None:
        """Look for the first time in a period."""
        loop = self._frontier.opened.loop
        planned_at = loop.time() + self._period_s
        self._timer = loop.call_at(planned_at, self._look, planned_at)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def received(self, request: Request) -> None:
        """Bytes of a response have arrived."""
        attempt = self._frontier.attempts.get(request)
        if attempt is not None:
            attempt.show_work()

    def transfers(
        self, request: Request, transfer: asyncio.Task[Any] | None
    ) -> IgnoreRequest | None:
        """The task that downloads a request begins, or (None) ends; how it fails where the attempt's lease is lost."""
        attempt = self._frontier.attempts.get(request)
        if attempt is None:
            return None
        attempt.transfer = transfer
        return LeaseLost(LOST) if attempt.is_lost else None

    def loss(self, attempt: Attempt) -> IgnoreRequest:
        """What to raise where an attempt has no lease (any more): nothing of it is anybody's concern then."""
        if self._frontier.error is not None:
            return IgnoreRequest(STOPPING)
        if not attempt.is_lost:
            attempt.is_lost = True
            self.lost += 1
        return LeaseLost(LOST)

    def swallows(self, request: Request, result: object) -> bool:
        """Whether a result is of a lost lease: another attempt answers for the URL, so the spider never hears of it."""
        frontier = self._frontier
        attempt = frontier.attempts.get(request)
        if attempt is None or not attempt.is_lost or frontier.error is not None:
            return False
        if isinstance(result, Failure) and not isinstance(result.value, LeaseLost):
            frontier.end(attempt, hops.ending_of(result.value, attempt))
        else:
            frontier.forget(attempt)
        return True

    def _look(self, planned_at: float) -> None:
        frontier = self._frontier
        if frontier.error is not None or frontier.is_closed:
            return
        now_ms = milliseconds(frontier.clock.now())
        self._renew(now_ms)
        # While the loop was held up (a callback that computes, a machine asleep) nobody could show a sign of work.
        if frontier.opened.loop.time() - planned_at < self._period_s:
            frontier.opened.writer.send(Expire(now_ms, self._taken_back))
        self.start()

    def _renew(self, now_ms: int) -> None:
        held = [a for a in self._frontier.attempts.values() if a.lease.generation and not a.is_lost]
        working = [attempt.lease for attempt in held if attempt.has_worked()]
        if not working:
            return
        # What waits for others to get on waits with good reason as long as they do.
        leases = [*working, *(attempt.lease for attempt in held if attempt.is_waiting)]
        leases += self._frontier.opened.replays.leases
        self.renewed += len(leases)
        self._frontier.opened.writer.send(Renew(leases, now_ms))

    def _taken_back(self, reclaimed: Sequence[Reclaimed]) -> None:
        if not reclaimed:
            return
        own = {attempt.lease.attempt_id: attempt for attempt in self._frontier.attempts.values()}
        for lease in reclaimed:
            self.expired += 1
            attempt = own.get(lease.attempt_id)
            logger.warning(
                "The lease of attempt %d of identity %d (%s) has expired: no sign of work",
                lease.attempt_id,
                lease.identity_id,
                attempt.url if attempt is not None else "of another process",
                extra={"action": "lease_expired"},
            )
            if attempt is not None:
                self._let_go(attempt, is_scheduled=lease.is_scheduled)

    def _let_go(self, attempt: Attempt, *, is_scheduled: bool) -> None:
        """Another attempt answers for the URL from now on; this one may end when it likes, unheard."""
        frontier = self._frontier
        attempt.is_lost = True
        self.lost += 1
        if is_scheduled and frontier.opened.intake.record(attempt.request) is None:
            frontier.opened.dispatch.keep_volatile(attempt.lease.identity_id, _again(attempt))
        if attempt.transfer is not None:
            attempt.transfer.cancel()
        else:
            frontier.give_place_back(attempt)
        if attempt.page is not None:
            frontier.close_page(attempt.page)


def _again(attempt: Attempt) -> Request:
    """The request of an attempt as it was before it went out."""
    request = attempt.request.copy()
    if attempt.user_slot is None:
        request.meta.pop(META_KEY, None)
    else:
        request.meta[META_KEY] = attempt.user_slot
    return request


def show_work() -> None:
    """The page whose callback runs in this context gets on."""
    page = CURRENT_PAGE.get()
    if page is not None:
        page.signs += 1


def warn_of_short_lease(length_s: float, settings: BaseSettings) -> None:
    """A lease shorter than a download may be silent is taken back from downloads that would have come."""
    timeout_s = settings.getfloat("DOWNLOAD_TIMEOUT")
    if 0 < length_s <= timeout_s or timeout_s <= 0:
        logger.warning(
            "FRONTIER_LEASE = %g is not above DOWNLOAD_TIMEOUT = %g: a server that takes its time before the first"
            " byte loses its lease and is asked again; raise FRONTIER_LEASE, or lower DOWNLOAD_TIMEOUT",
            length_s,
            timeout_s,
            extra={"action": "lease_short"},
        )
