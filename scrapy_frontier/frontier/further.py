"""Further attempts of the same identity: after a failure, at the wish of its own page, or of a component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.python.failure import Failure

from scrapy_frontier import failpoints
from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier import hops
from scrapy_frontier.frontier.admission import due_ms
from scrapy_frontier.frontier.attempts import (
    CALLBACK_EXCEPTION,
    MESSAGE_LIMIT,
    Attempt,
    Ending,
    detail,
    end_of_error,
    end_of_failure,
    end_of_page,
)
from scrapy_frontier.frontier.retries import FAULTS, count_of, count_on
from scrapy_frontier.identity import Rejection, origin_of
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Finding, Reason, Retry

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.frontier.page import Page
    from scrapy_frontier.frontier.retries import Judgement

REPLACED: Final = "request.replaced"
"""A middleware answered with another request, without a response from the wire and without a failure."""


def rises(old: Request, new: Request, counter: str) -> bool:
    """Whether a counter of meta is higher in the new request than in the old one."""
    return (count_of(new.meta.get(counter)) or 0) > (count_of(old.meta.get(counter)) or 0)


def asks_the_same(frontier: Frontier, old: Request, new: Request) -> bool:
    """Whether both would put the same on the wire; fragments are not sent."""
    if new.method != old.method or new.body != old.body:
        return False
    before, after = map(frontier.opened.intake.resolve, (old, new))
    if isinstance(before, Rejection) or isinstance(after, Rejection):
        return False
    return before.url == after.url


def is_wish_of(frontier: Frontier, page: Page, request: Request) -> bool:
    """Whether a page asks for another attempt of its own, as `get_retry_request` in its callback does."""
    asked = page.asked
    return (
        asked is not None
        and page.wish is None
        and rises(asked, request, FAULTS)
        and asks_the_same(frontier, asked, request)
    )


def end_page(frontier: Frontier, attempt: Attempt, result: object, page: Page) -> None:
    """All that the page yielded is in the ledger: write its end, or why it is asked for again."""
    if page.wish is not None:
        judgement = frontier.opened.retries.of_wish(attempt, page.wish)
        page.wish.dont_filter = attempt.request.dont_filter
        try_again(frontier, attempt, page.wish, "retry", judgement)
    elif isinstance(result, Failure):
        frontier.end(attempt, hops.ending_of(result.value, attempt))
    elif page.error is not None:
        _end_raised(frontier, attempt, page.error)
    else:
        frontier.opened.families.processed(attempt, page)
        is_answered = page.kind is not ReferenceKind.ERRBACK
        status = attempt.status or 0
        frontier.end(attempt, end_of_page(status, attempt.judgement, is_answered=is_answered))


def _end_raised(frontier: Frontier, attempt: Attempt, error: BaseException) -> None:
    """The callback raised: the end of its attempt, unless a rule of the project's asks for another one."""
    said = f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]
    judgement = frontier.opened.retries.of_failure(attempt, error, CALLBACK_EXCEPTION)
    if not judgement.decision.retries:
        frontier.end(attempt, end_of_error(said, judgement))
        return
    request = attempt.request.copy()
    request.meta[FAULTS] = judgement.question.faults + 1
    count_on(request, attempt.request, judgement.decision)
    attempt.cause = CALLBACK_EXCEPTION
    try_again(frontier, attempt, request, "retry", judgement)


def try_again(
    frontier: Frontier, attempt: Attempt, request: Request, kind: str, judgement: Judgement | None
) -> None:
    """End the attempt, and have `request` follow when it is due; `judgement` is None where nobody was asked."""
    intake, dispatch = frontier.opened.intake, frontier.opened.dispatch
    record = intake.record(request)
    if record is None:
        dispatch.keep_volatile(attempt.lease.identity_id, request)
    now_ms = milliseconds(frontier.clock.now())
    cause, finding = _cause(attempt)
    times = request.meta.get(FAULTS, 0)
    inputs = detail(times=times) if judgement is None else judgement.detail(times=times)
    rank, _ = frontier.opened.admission.place_in_queue(
        request, attempt.url, origin_of(attempt.url), attempt.depth
    )
    due = due_ms(request.meta, now_ms) if judgement is None else judgement.decision.due_ms
    frontier.opened.writer.send(
        Retry(
            attempt.lease,
            Reason(f"{kind}.{cause}", inputs),
            now_ms,
            due,
            record,
            rank,
            finding,
            request,
        )
    )
    failpoints.reach("retry.sent")
    frontier.forget(attempt)


def given_up(attempt: Attempt, inputs: str | None = None) -> Ending:
    """The end of an attempt without a response in whose place another request goes on."""
    cause, finding = _cause(attempt)
    return Ending(Event.GIVE_UP, Disposition.FAILED, Reason(cause, inputs), finding)


def _cause(attempt: Attempt) -> tuple[str, Finding | None]:
    """What the attempt brought, as a code, and as its row shows it unless its response does already."""
    if attempt.is_captured:
        return attempt.cause, None
    if attempt.exception is None:
        return REPLACED, Finding(REPLACED)
    ending = end_of_failure(attempt.exception, attempt)
    return ending.reason.code, ending.finding
