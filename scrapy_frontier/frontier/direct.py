"""Requests issued past the scheduler: robots.txt, media pipelines, `engine.download_async`.

They are fetched by whoever issued them, at once. They get an identity of their own and an attempt in the ledger, and
they wait for a place at their origin's gate like any other request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier import hops
from scrapy_frontier.frontier.attempts import Attempt, Ending, end_of_failure, end_of_page
from scrapy_frontier.frontier.dispatch import gate_key_of
from scrapy_frontier.identity import Rejection
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Dispatch, Known, Lease, Reason

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_frontier.frontier.core import Frontier

BY_ENGINE = Reason("engine.direct")


async def admit(frontier: Frontier, request: Request, holder: Attempt | None) -> Attempt:
    """Take in a request that is about to go on the wire, and wait for its place.

    `holder` is the attempt in whose download it was issued (a middleware that needs robots.txt, say): if that one holds
    a place at a gate, it lends it, for both could wait for each other otherwise.
    """
    opened = frontier.opened
    if frontier.error is not None:
        raise IgnoreRequest("frontier: the crawl is being stopped")
    resolved = opened.intake.resolve(request)
    if isinstance(resolved, Rejection):
        frontier.reject(resolved)
        raise IgnoreRequest(f"frontier: {resolved.rule}")
    # What an admitted page needs to be fetched at all, its robots.txt above all, is admitted with it.
    verdict = None if holder is not None else opened.admission.verdict(request, resolved)[0]
    if verdict is not None and verdict.event is Event.EXCLUDE:
        opened.intake.refer_direct(request, resolved, None, None, verdict)
        raise IgnoreRequest(f"frontier: {verdict.reason.code}")
    if holder is not None and not holder.is_charged:
        frontier.give_place_back(holder)
    await opened.turns.enter(resolved.url)
    try:
        known: asyncio.Future[Known] = opened.loop.create_future()
        opened.intake.refer_direct(request, resolved, holder, known.set_result)
        answer = await known
        gate_key = gate_key_of(opened.intake.queue_of(request, resolved))
        attempt = Attempt(
            request, Lease(answer.identity_id), answer.origin_id, gate_key, resolved.url, 0
        )
        attempt.is_direct = True
        attempt.has_place = False
        await opened.dispatch.take_place(gate_key)
        attempt.has_place = True
    except BaseException:
        opened.turns.leave(resolved.url)
        raise
    attempt.granted = opened.loop.create_future()
    frontier.attempts[request] = attempt
    opened.writer.send(
        Dispatch(attempt.lease, milliseconds(frontier.clock.now()), BY_ENGINE, attempt.grant)
    )
    return attempt


def finish(frontier: Frontier, attempt: Attempt, result: object) -> None:
    """The download is over; what its issuer makes of it is his own affair."""
    frontier.opened.turns.leave(attempt.url)
    if isinstance(result, Failure):
        ending = end_of_failure(result.value, is_captured=attempt.is_captured)
    elif isinstance(result, Response) and attempt.is_captured:
        ending = end_of_page(attempt.status or 0, None)
    elif attempt.is_captured:
        reason = Reason(f"redirect.{attempt.status}")
        ending = Ending(Event.REDIRECT, Disposition.REDIRECTED, reason)
    else:
        ending = hops.given_up(attempt)
    frontier.end(attempt, ending)


class Turns:
    """One at a time for each URL: an identity has one live lease at most (invariant 3)."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def enter(self, url: str) -> None:
        """Wait until nobody else fetches this URL past the scheduler."""
        lock, users = self._locks.get(url, (asyncio.Lock(), 0))
        self._locks[url] = lock, users + 1
        await lock.acquire()

    def leave(self, url: str) -> None:
        """Let the next one in."""
        lock, users = self._locks.pop(url)
        lock.release()
        if users > 1:
            self._locks[url] = lock, users - 1
