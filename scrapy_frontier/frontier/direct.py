"""Requests issued past the scheduler: robots.txt, media pipelines, `engine.download_async`.

They are fetched by whoever issued them, at once. They get an identity of their own and an attempt in the ledger, and
they wait for a place at their origin's gate like any other request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier import further
from scrapy_frontier.frontier.attempts import (
    ROBOTS_MESSAGE,
    Attempt,
    Ending,
    end_of_failure,
    end_of_page,
    end_of_robots,
)
from scrapy_frontier.frontier.dispatch import gate_key_of
from scrapy_frontier.frontier.leases import LeaseLost
from scrapy_frontier.frontier.page import current_page
from scrapy_frontier.frontier.robots import WAIVER, reason_data
from scrapy_frontier.frontier.slots import META_KEY, SLOT
from scrapy_frontier.identity import Rejection, Resolved
from scrapy_frontier.policy.robots import ROBOTS_DISALLOW, Ruling
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.leases import ABANDONED
from scrapy_frontier.store.messages import Dispatch, Known, Lease, Reason, Transit, Verdict

if TYPE_CHECKING:
    from scrapy_frontier.frontier.core import Frontier

BY_ENGINE = Reason("engine.direct")

SUB_REQUEST: Final = "frontier_sub_request"
"""Key of meta: what a page asks for while it is rendered. Unlike what a page cannot be fetched without, it is held to
the scope, and so is each hop of it."""

_REFUSED: Final = "frontier: "


async def admit(frontier: Frontier, request: Request, holder: Attempt | None) -> Attempt:
    """Take in a request that is about to go on the wire, and wait for its place.

    `holder` is the attempt in whose download it was issued (a middleware that needs robots.txt, say): if that one holds
    a place at a gate, it lends it, for both could wait for each other otherwise.
    """
    opened = frontier.opened
    if frontier.error is not None:
        raise IgnoreRequest("frontier: the crawl is being stopped")
    judgement = frontier.next_attempts.pop(request, None)
    if judgement is not None:
        # Whoever issued it waits for its answer: the time of the next attempt is waited for here.
        await asyncio.sleep(max(0.0, judgement.decision.due_ms / 1000 - frontier.clock.now()))
    resolved = opened.intake.resolve(request)
    if isinstance(resolved, Rejection):
        frontier.reject(resolved)
        raise IgnoreRequest(f"{_REFUSED}{resolved.rule}")
    is_robots = opened.fetches_robots(request)
    if holder is not None and not holder.is_charged:
        frontier.give_place_back(holder)
    await _check(frontier, request, resolved, holder)
    await opened.turns.enter(resolved.url)
    known: asyncio.Future[Known] = opened.loop.create_future()
    try:
        opened.intake.refer_direct(request, resolved, holder, known.set_result, is_robots=is_robots)
        answer = await known
        gate_key = gate_key_of(opened.intake.queue_of(request, resolved))
        attempt = Attempt(
            request, Lease(answer.identity_id), answer.origin_id, gate_key, resolved.url, 0
        )
        attempt.is_direct = True
        attempt.is_robots = is_robots
        attempt.issuer = holder or current_page()
        attempt.has_place = False
        await opened.dispatch.take_place(gate_key, past_robots=is_robots)
        attempt.has_place = True
    except BaseException:
        opened.turns.leave(resolved.url)
        if known.done() and not known.cancelled():
            opened.writer.send(_abandonment(known.result(), frontier))
        raise
    request.meta[META_KEY] = SLOT
    attempt.granted = opened.loop.create_future()
    frontier.attempts[request] = attempt
    opened.writer.send(
        Dispatch(
            attempt.lease,
            milliseconds(frontier.clock.now()),
            BY_ENGINE,
            is_direct=True,
            on_commit=attempt.grant,
        )
    )
    return attempt


def _abandonment(known: Known, frontier: Frontier) -> Transit:
    return Transit(
        [known.identity_id],
        Event.CANCEL,
        ABANDONED,
        milliseconds(frontier.clock.now()),
        Disposition.CANCELLED,
    )


async def _check(
    frontier: Frontier, request: Request, resolved: Resolved, holder: Attempt | None
) -> None:
    """Raise `IgnoreRequest`, with the refusal on record, where scope or robots.txt forbid the request."""
    opened = frontier.opened
    is_robots = opened.fetches_robots(request)
    # What an admitted page needs to be fetched at all is admitted with it, and so is the robots.txt of its origin.
    # A robots.txt that lies elsewhere is followed there (RFC 9309, section 2.3.1.2).
    is_asked_by_page = bool(request.meta.get(SUB_REQUEST))
    is_included = is_asked_by_page and frontier.settings.render_allow.covers(resolved)
    if (holder is None or is_asked_by_page) and not is_robots and not is_included:
        verdict = opened.admission.verdict(request, resolved)[0]
        if verdict.event is Event.EXCLUDE:
            opened.intake.refer_direct(request, resolved, holder, None, verdict)
            raise IgnoreRequest(f"{_REFUSED}{verdict.reason.code}")
    robots = opened.robots
    if robots is None or is_robots:
        return
    is_waived = bool(request.meta.get(WAIVER))
    decision = robots.decide(resolved.origin, resolved.url, is_waived=is_waived)
    if decision.ruling is Ruling.WAITING:
        await robots.settle(resolved.origin)
        decision = robots.decide(resolved.origin, resolved.url, is_waived=is_waived)
    if decision.ruling is not Ruling.ALLOWED:
        verdict = Verdict(Event.EXCLUDE, Reason(decision.rule, reason_data(decision)))
        opened.intake.refer_direct(request, resolved, holder, None, verdict)
        raise IgnoreRequest(ROBOTS_MESSAGE)


def rule_of(error: IgnoreRequest) -> str:
    """The rule by which a request issued past the scheduler was refused."""
    text = str(error)
    if text == ROBOTS_MESSAGE:
        return ROBOTS_DISALLOW
    return text.removeprefix(_REFUSED) if text.startswith(_REFUSED) else "request.ignored"


def finish(frontier: Frontier, attempt: Attempt, result: object) -> None:
    """The download is over; what its issuer makes of it is his own affair."""
    frontier.opened.turns.leave(attempt.url)
    if isinstance(result, Failure) and isinstance(result.value, LeaseLost):
        frontier.forget(attempt)
        return
    if isinstance(result, Failure):
        ending = end_of_failure(result.value, attempt)
    elif isinstance(result, Response) and attempt.is_captured:
        status = attempt.status or 0
        is_robots = attempt.is_robots
        ending = end_of_robots(status) if is_robots else end_of_page(status, attempt.judgement)
    elif isinstance(result, Request) and result in frontier.next_attempts:
        ending = further.given_up(attempt, frontier.next_attempts[result].detail())
    elif attempt.is_captured:
        reason = Reason(f"redirect.{attempt.status}")
        ending = Ending(Event.REDIRECT, Disposition.REDIRECTED, reason)
    else:
        ending = further.given_up(attempt)
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
