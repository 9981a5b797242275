"""A middleware answers a request with another one: a retry, a redirect, or its own idea.

The answered attempt ends here. The new request goes on as a further attempt of the same identity where it asks for the
same thing again, and else as a reference of its own, that is admitted and waits its turn like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier.admission import due_ms, rank_of
from scrapy_frontier.frontier.attempts import Attempt, Ending, detail, end_of_failure
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Finding, Reason, Retry

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_frontier.frontier.core import Frontier

REPLACED: Final = "request.replaced"
"""A middleware answered with another request, without a response from the wire and without a failure."""


def replace(frontier: Frontier, attempt: Attempt, request: Request) -> None:
    """Take in `request`, which stands in for the request of `attempt`."""
    old = attempt.request
    if attempt.user_slot is None:
        # Copied from the old request; on another host it would be wrong.
        request.meta.pop("download_slot", None)
    is_retry = _rises(old, request, "retry_times")
    is_redirect = _rises(old, request, "redirect_times")
    if is_retry:
        # The flag lets a retry pass Scrapy's duplicate filter; it is no wish of the spider's.
        request.dont_filter = old.dont_filter
    if _asks_the_same(frontier, old, request):
        kind = "retry" if is_retry else "redirect.self" if is_redirect else "replaced"
        _try_again(frontier, attempt, request, kind)
    else:
        _go_on(frontier, attempt, request, is_redirect=is_redirect)


def _rises(old: Request, new: Request, counter: str) -> bool:
    return bool(new.meta.get(counter, 0) > old.meta.get(counter, 0))


def _asks_the_same(frontier: Frontier, old: Request, new: Request) -> bool:
    resolve = frontier.opened.intake.resolve
    return resolve(new) == resolve(old) and new.method == old.method and new.body == old.body


def _go_on(frontier: Frontier, attempt: Attempt, request: Request, *, is_redirect: bool) -> None:
    # A start request carries the flag by default: a hop of its chain is no explicit new attempt.
    is_visit = request.dont_filter and not attempt.request.meta.get("is_start_request")
    request.dont_filter = is_visit
    url = frontier.opened.intake.enqueue_hop(request, attempt, is_visit=is_visit)
    inputs = detail(to=url or request.url, status=attempt.status)
    if not attempt.is_captured:
        ending = given_up(attempt, inputs)
    else:
        code = f"redirect.{attempt.status}" if is_redirect else REPLACED
        ending = Ending(Event.REDIRECT, Disposition.REDIRECTED, Reason(code, inputs))
    frontier.end(attempt, ending)


def _try_again(frontier: Frontier, attempt: Attempt, request: Request, kind: str) -> None:
    intake, dispatch = frontier.opened.intake, frontier.opened.dispatch
    record = intake.record(request)
    if record is None:
        dispatch.keep_volatile(attempt.lease.identity_id, request)
    now_ms = milliseconds(frontier.clock.now())
    cause, finding = _cause(attempt)
    frontier.opened.writer.send(
        Retry(
            attempt.lease,
            Reason(f"{kind}.{cause}", detail(times=request.meta.get("retry_times", 0))),
            now_ms,
            due_ms(request.meta, now_ms),
            record,
            rank_of(request),
            finding,
            request,
        )
    )
    frontier.forget(attempt)


def given_up(attempt: Attempt, inputs: str | None = None) -> Ending:
    """The end of an attempt without a response in whose place another request goes on."""
    cause, finding = _cause(attempt)
    return Ending(Event.GIVE_UP, Disposition.FAILED, Reason(cause, inputs), finding)


def _cause(attempt: Attempt) -> tuple[str, Finding | None]:
    """What the attempt brought, as a code, and as its row shows it unless its response does already."""
    if attempt.is_captured:
        return f"http.{attempt.status}", None
    if attempt.exception is None:
        return REPLACED, Finding(REPLACED)
    ending = end_of_failure(attempt.exception, is_captured=False)
    return ending.reason.code, ending.finding
