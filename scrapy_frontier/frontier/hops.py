"""A middleware answers a request with another one: a retry, a redirect, or its own idea.

The answered attempt ends here. The new request goes on as a further attempt of the same identity where it asks for the
same thing again, and else as a reference of its own, that is admitted and waits its turn like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from scrapy.exceptions import IgnoreRequest

from scrapy_frontier import failpoints
from scrapy_frontier.frontier import further
from scrapy_frontier.frontier.attempts import Attempt, Ending, detail, end_of_failure
from scrapy_frontier.frontier.retries import FAULTS
from scrapy_frontier.frontier.slots import META_KEY
from scrapy_frontier.identity import Rejection, normalise_request_url
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Reason

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.store.messages import Known

REFUSED: Final = "redirect.refused"
"""A redirect that was not followed; the inputs name the rule."""

COOKIE_SET_AT: Final = "frontier_cookie_set_at"
"""Key of meta: the place in the chain of the last response that set a cookie."""

LIMIT: Final = "redirect.limit"
"""Rule: the chain has had `REDIRECT_MAX_TIMES` hops."""

AMBIGUOUS: Final = "location.ambiguous"
"""Rule: the response has several Location headers that differ (Fetch Standard, "location URL")."""

LOOP: Final = "redirect.loop"
"""Rule: the chain comes back to a URL of its own, and nothing was said meanwhile that could change the answer."""


class HopRefused(IgnoreRequest):
    """A redirect is not followed; the errback of its request gets this. `rule` names what refuses `url`.

    `chain` holds the URLs from the first request to the one that was answered with the refused redirect.
    """

    def __init__(self, rule: str, url: str, chain: Sequence[str]) -> None:
        super().__init__(f"redirect to {url} refused: {rule}")
        self.rule = rule
        self.url = url
        self.chain = tuple(chain)


def chain_of(request: Request) -> list[str]:
    """The URLs of the redirect chain that led to a request, its own as the last."""
    return [*request.meta.get("redirect_urls", ()), request.url]


def judge(frontier: Frontier, request: Request, response: Response, hop: Request) -> None:
    """Raise `HopRefused` where the next hop of a chain is not admitted; what refuses it is on record then.

    A hop is admitted by its own URL: that its chain was admitted says nothing of it.
    """
    attempt = frontier.attempts.get(request)
    if attempt is None or attempt.is_direct:
        return
    opened, chain = frontier.opened, chain_of(request)
    resolved = opened.intake.resolve(hop)
    if isinstance(resolved, Rejection):
        refuse(frontier, request, resolved)
    if further.asks_the_same(frontier, request, hop):
        # As a browser would: the same question once more, as far as the budget reaches.
        return
    if "Set-Cookie" in response.headers:
        hop.meta[COOKIE_SET_AT] = len(chain) - 1
    earlier = _place_in(chain if hop.method == request.method else chain[:-1], resolved.url)
    if earlier is not None:
        if hop.meta.get(COOKIE_SET_AT, -1) < earlier:
            raise HopRefused(LOOP, resolved.url, chain)
        # A cookie set since then may change the answer: the circle is walked on, as far as its budget reaches.
        hop.dont_filter = True
        frontier.judged_hops.add(hop)
        return
    hop.dont_filter = _asks_for_visit(request)
    frontier.judged_hops.add(hop)
    verdict, _ = opened.admission.verdict(hop, resolved)
    if verdict.event is Event.EXCLUDE:
        opened.intake.enqueue_hop(hop, attempt, is_visit=False)
        raise HopRefused(verdict.reason.code, resolved.url, chain)


def _asks_for_visit(request: Request) -> bool:
    """Whether a hop of this request is an explicit new attempt. Start requests carry the flag by default."""
    return request.dont_filter and not request.meta.get("is_start_request")


def refuse(frontier: Frontier, request: Request, rejection: Rejection) -> NoReturn:
    """Refuse a hop that has no fetch key: record the reference, raise `HopRefused`."""
    attempt = frontier.attempts.get(request)
    if attempt is not None and not attempt.is_direct:
        frontier.opened.intake.reject_hop(attempt, rejection)
    raise HopRefused(rejection.rule, rejection.observed, chain_of(request))


def _place_in(chain: Sequence[str], url: str) -> int | None:
    """Where a URL stood in the chain last; those of a chain are compared as the request URLs they were sent as."""
    for place in reversed(range(len(chain))):
        known = normalise_request_url(chain[place])
        if not isinstance(known, Rejection) and known.url == url:
            return place
    return None


def replace(frontier: Frontier, attempt: Attempt, request: Request) -> None:
    """Take in `request`, which stands in for the request of `attempt`."""
    old = attempt.request
    if attempt.user_slot is None:
        # Copied from the old request; on another host it would be wrong.
        request.meta.pop(META_KEY, None)
    judgement = frontier.next_attempts.pop(request, None)
    is_retry = judgement is not None or further.rises(old, request, FAULTS)
    is_redirect = further.rises(old, request, "redirect_times")
    if is_retry:
        # The flag lets a retry pass Scrapy's duplicate filter; it is no wish of the spider's.
        request.dont_filter = old.dont_filter
    if further.asks_the_same(frontier, old, request):
        kind = "retry" if is_retry else "redirect.self" if is_redirect else "replaced"
        if is_retry and judgement is None:
            judgement = frontier.opened.retries.of_wish(attempt, request)
        further.try_again(frontier, attempt, request, kind, judgement)
    else:
        _go_on(frontier, attempt, request, is_redirect=is_redirect)


def _go_on(frontier: Frontier, attempt: Attempt, request: Request, *, is_redirect: bool) -> None:
    if request not in frontier.judged_hops:
        request.dont_filter = _asks_for_visit(attempt.request)
    frontier.judged_hops.discard(request)
    inputs = {"to": request.url, "status": attempt.status}

    def settled(known: Known) -> None:
        """The hop is in the ledger: now the attempt that led to it can say where its request went."""
        if known.is_suppressed:
            error = HopRefused(known.rule, request.url, chain_of(attempt.request))
            frontier.end(attempt, ending_of(error, attempt))
            frontier.tell_errback(request, error, attempt.lease.identity_id, attempt.depth)
        elif known.is_taken:
            frontier.end(attempt, _followed(attempt, inputs, is_redirect=is_redirect))
        else:
            joined = {**inputs, "joined": True}
            frontier.end(attempt, _followed(attempt, joined, is_redirect=is_redirect))

    url = frontier.opened.intake.enqueue_hop(
        request, attempt, is_visit=request.dont_filter, settled=settled
    )
    failpoints.reach("hop.sent")
    if url is None:
        frontier.end(attempt, _followed(attempt, inputs, is_redirect=is_redirect))


def _followed(attempt: Attempt, inputs: Mapping[str, Any], *, is_redirect: bool) -> Ending:
    if not attempt.is_captured:
        return further.given_up(attempt, detail(**inputs))
    code = f"redirect.{attempt.status}" if is_redirect else further.REPLACED
    return Ending(Event.REDIRECT, Disposition.REDIRECTED, Reason(code, detail(**inputs)))


def ending_of(error: BaseException | None, attempt: Attempt) -> Ending:
    """The end of an attempt that brought no response to the spider; one with a refused hop is redirected, in vain."""
    if not isinstance(error, HopRefused) or not attempt.is_captured:
        return end_of_failure(error, attempt)
    inputs = detail(to=error.url, status=attempt.status, rule=error.rule, chain=error.chain)
    return Ending(Event.REDIRECT, Disposition.REDIRECTED, Reason(REFUSED, inputs))
