"""What came of an attempt on the wire is known: all who judge outcomes are told here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from scrapy_frontier.connections import TRANSFER, keep_what_arrives, part
from scrapy_frontier.frontier.wholeness import DATALOSS, fault_of_body
from scrapy_frontier.policy.health import Kind, kind_of_failure, kind_of_status
from scrapy_frontier.policy.retry import fault_kind, has_no_answer
from scrapy_frontier.resolver import look_up_fault

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.frontier.retries import Judgement


@contextmanager
def transferring(frontier: Frontier, attempt: Attempt | None) -> Iterator[None]:
    """The context in which the request of an attempt goes over the wire."""
    token = TRANSFER.set(attempt)
    timer = None
    if attempt is not None and not fails_on_dataloss(frontier, attempt.request):
        settings = frontier.crawler.settings
        timeout_s = attempt.request.meta.get("download_timeout") or settings.getfloat(
            "DOWNLOAD_TIMEOUT"
        )
        timer = keep_what_arrives(attempt, timeout_s) if timeout_s else None
    try:
        yield
    finally:
        TRANSFER.reset(token)
        if timer is not None:
            timer.cancel()
        if attempt is not None:
            part(attempt)


def answered(frontier: Frontier, attempt: Attempt, response: Response) -> None:
    """A response has come."""
    frontier.opened.answered += 1
    fault = fault_of_body(attempt.request, response)
    if fault is not None and not fails_on_dataloss(frontier, attempt.request):
        response.flags.append(DATALOSS)
        fault = None
    attempt.exception = None
    attempt.is_whole = fault is None
    attempt.cause = fault or f"http.{response.status}"
    attempt.judgement = frontier.opened.retries.of_response(
        attempt, response, attempt.cause, is_whole=attempt.is_whole
    )
    kind = kind_of_status(response.status) if fault is None else Kind.BROKEN
    frontier.opened.dispatch.health.note(attempt, kind)


def fails_on_dataloss(frontier: Frontier, request: Request) -> bool:
    """Whether half a response is none, as Scrapy's handlers read it."""
    default = frontier.crawler.settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
    return bool(request.meta.get("download_fail_on_dataloss", default))


def failed(
    frontier: Frontier, attempt: Attempt, error: BaseException, *, was_cached: bool = False
) -> None:
    """A download has failed. `was_cached`: the address that could not be reached came out of a cache."""
    attempt.exception = error
    if isinstance(error, IgnoreRequest):
        # A component of this side has dropped it: nothing is known of the server.
        return
    frontier.opened.failed += 1
    fault = _refined(attempt, error)
    attempt.cause = f"download.{fault}"
    attempt.judgement = frontier.opened.retries.of_failure(attempt, error, attempt.cause)
    frontier.opened.dispatch.health.note(attempt, kind_of_failure(fault), was_cached=was_cached)


def unusable(frontier: Frontier, attempt: Attempt, error: BaseException, cause: str) -> Judgement:
    """A response came, was captured, and nothing could be made of it on this side: its origin is not to blame."""
    attempt.exception = error
    attempt.cause = cause
    attempt.judgement = frontier.opened.retries.of_failure(attempt, error, cause)
    return attempt.judgement


def _refined(attempt: Attempt, error: BaseException) -> str:
    """The kind of a fault with what only this process knows: how far the request came."""
    kind = fault_kind(error)
    if kind == "reset" and attempt.is_reused and has_no_answer(error):
        return "stale"
    if kind == "timeout" and attempt.is_sent is False:
        return "connect_timeout"
    if kind == "reset" or (kind == "tls.untrusted" and attempt.handshake_fault != "tls.cut"):
        kind = attempt.handshake_fault or kind
    return look_up_fault(attempt.request) or kind if kind == "dns" else kind
