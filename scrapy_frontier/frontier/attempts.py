"""An attempt while it is under way, and what its end means for the ledger."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest

from scrapy_frontier.frontier.slots import slot_of
from scrapy_frontier.identity import origin_of
from scrapy_frontier.policy.retry import fault_kind
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Finding, Lease, Reason, Source

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.frontier.page import Page
    from scrapy_frontier.frontier.retries import Judgement

ROBOTS_MESSAGE: Final = "Forbidden by robots.txt"
"""What Scrapy's RobotsTxtMiddleware says when it drops a request."""

CALLBACK_EXCEPTION: Final = "callback.exception"
"""Cause: the callback raised."""

MESSAGE_LIMIT: Final = 500
"""How many characters of an exception's text are kept in the ledger."""


class Attempt:
    """One dispatch of one identity, from its hand-out to the end of its page. Found by its request, never by meta."""

    __slots__ = (
        "body",
        "cause",
        "charged_at",
        "committed",
        "connection",
        "depth",
        "exception",
        "gate_key",
        "granted",
        "handshake_fault",
        "has_place",
        "is_captured",
        "is_charged",
        "is_direct",
        "is_lost",
        "is_observed",
        "is_on_wire",
        "is_reused",
        "is_robots",
        "is_sent",
        "is_whole",
        "issuer",
        "judgement",
        "lease",
        "on_end",
        "origin_id",
        "page",
        "parts",
        "replay",
        "request",
        "seen",
        "signs",
        "signs_seen",
        "status",
        "tls",
        "transfer",
        "url",
        "user_slot",
    )

    def __init__(
        self,
        request: Request,
        lease: Lease,
        origin_id: int,
        gate_key: str,
        url: str,
        depth: int,
    ) -> None:
        self.request = request
        self.lease = lease
        self.origin_id = origin_id
        self.gate_key = gate_key
        self.url = url
        self.depth = depth
        self.user_slot: str | None = slot_of(request.meta)
        self.granted: asyncio.Future[bool] | None = None
        self.committed: asyncio.Future[bool] | None = None
        self.has_place = True
        """Whether it holds a place at its origin's gate."""
        self.is_on_wire = False
        """Whether it holds one of the places that `CONCURRENT_REQUESTS` gives."""
        self.is_charged = False
        """Whether its request has reached the wire."""
        self.charged_at: float = 0.0
        self.is_observed = False
        """Whether what came of it is known to the health of its origin."""
        self.is_captured = False
        """Whether its response is in the ledger."""
        self.is_direct = False
        """Whether somebody else than the scheduler issued it."""
        self.is_robots = False
        """Whether it fetches a robots.txt to be read as rules."""
        self.is_lost = False
        """Whether its lease has been taken back."""
        self.issuer: Attempt | Page | None = None
        """Who waits for it: the page, or the attempt, in whose context it was issued past the scheduler."""
        self.page: Page | None = None
        """The page that is made of its result, once that is processed."""
        self.transfer: asyncio.Task[Any] | None = None
        """The task that downloads it, while it is on the wire."""
        self.signs = 0
        """Signs of work seen in its download."""
        self.signs_seen = 0
        self.is_sent: bool | None = None
        """Whether the request may have reached the server; None where nobody can tell."""
        self.is_reused = False
        """Whether its request went out on a connection that an earlier one had opened."""
        self.handshake_fault = ""
        """The kind of the fault that its TLS handshake has come to."""
        self.connection: Any = None
        """The connection that its request went out on, where that is known."""
        self.tls: Any = None
        """What speaks TLS on that connection."""
        self.is_whole = True
        """Whether its response is all of what was asked for."""
        self.cause = ""
        """What it brought: `http.{status}` or `download.{kind}`."""
        self.judgement: Judgement | None = None
        """Whether another attempt should follow, once that is known."""
        self.status: int | None = None
        self.exception: BaseException | None = None
        self.replay: bytes | None = None
        """The digest of the response that answers it in place of the wire."""
        self.body: bytes | None = None
        """The body as the wire sent it, until its page begins, where evidence of it is kept."""
        self.parts: dict[str, bytes] = {}
        """What is kept beside the response as the spider sees it, by name: the picture of a rendered page, say."""
        self.seen: asyncio.Future[bytes | None] | None = None
        """Evidence of the response as the spider sees it, while it is being written."""
        self.on_end: Callable[[], None] | None = None
        """What is to be let go when it is over, whatever came of it."""

    def is_judged_by(self, error: BaseException | None) -> bool:
        """Whether this error, or the body that it speaks of, is what the attempt was judged by."""
        return error is not None and (self.exception is error or not self.is_whole)

    @property
    def origin(self) -> str:
        """The origin it is sent to."""
        return origin_of(self.url)

    @property
    def source(self) -> Source:
        """This attempt as the source of references."""
        return Source(self.lease.identity_id, self.lease.attempt_id)

    @property
    def is_waiting(self) -> bool:
        """Whether it stands in a queue of this process, and what it waits for is that others get on."""
        return not (self.is_on_wire or self.is_captured or self.page is not None)

    def show_work(self) -> None:
        """Its download gets on, and whoever waits for it with it."""
        self.signs += 1
        if self.issuer is not None:
            self.issuer.signs += 1

    def has_worked(self) -> bool:
        """Whether there was a sign of work since this was last asked."""
        signs = self.signs + (self.page.signs if self.page is not None else 0)
        has_worked = signs != self.signs_seen
        self.signs_seen = signs
        return has_worked

    def grant(self, is_granted: bool) -> None:
        """The writer has answered the dispatch."""
        self.signs += 1
        _settle(self.granted, is_granted)

    def commit(self, is_applied: bool) -> None:
        """The writer has answered the response."""
        self.show_work()
        _settle(self.committed, is_applied)

    def __repr__(self) -> str:
        held = "in place" if self.has_place else "without place"
        return f"<Attempt {self.lease.attempt_id} of {self.url} ({held}, status {self.status})>"


def _settle(future: asyncio.Future[bool] | None, value: bool) -> None:
    if future is not None and not future.done():
        future.set_result(value)


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends: the event, what it makes of the identity, why, and the outcome the attempt's row shows."""

    event: Event
    disposition: Disposition | None
    reason: Reason
    finding: Finding | None = None


REPLAYED: Final = "evidence.replayed"
"""The outcome of an attempt that was answered from evidence: no request of it went on the wire."""


def capture(response: Response, cause: str) -> Finding:
    """What the ledger keeps of a response itself."""
    digest = hashlib.blake2b(response.body, digest_size=32).digest()
    return Finding(cause, response.status, len(response.body), digest)


def end_of_page(
    status: int, judgement: Judgement | None = None, *, is_answered: bool = True
) -> Ending:
    """The end of an attempt whose response came and was processed, by its status.

    `judgement`: why no further attempt follows. `is_answered`: whether a callback got the response; a redirect that
    nobody follows or handles is an error.
    """
    reason = Reason(f"http.{status}", None if judgement is None else judgement.detail())
    if status == 304:
        return Ending(Event.NOT_MODIFY, Disposition.NOT_MODIFIED, reason)
    if status in (404, 410):
        return Ending(Event.PROCESS, Disposition.GONE, reason)
    if status >= 400 or (status >= 300 and not is_answered):
        return Ending(Event.PROCESS, Disposition.HTTP_ERROR, reason)
    return Ending(Event.PROCESS, Disposition.SUCCEEDED, reason)


def end_of_error(error: str, judgement: Judgement | None) -> Ending:
    """The end of an attempt whose callback raised `error`."""
    inputs = judgement.detail(exception=error) if judgement else detail(exception=error)
    reason = Reason(CALLBACK_EXCEPTION, inputs)
    return Ending(Event.PROCESS, Disposition.CALLBACK_ERROR, reason)


def end_of_robots(status: int) -> Ending:
    """The end of a robots.txt: it has served where its answer says something about the rules (RFC 9309, 2.3.1)."""
    reason = Reason(f"http.{status}")
    if status == 429 or status >= 500:
        return Ending(Event.PROCESS, Disposition.HTTP_ERROR, reason)
    if status == 304:
        return Ending(Event.NOT_MODIFY, Disposition.NOT_MODIFIED, reason)
    if 300 <= status < 400:
        return Ending(Event.REDIRECT, Disposition.REDIRECTED, Reason(f"redirect.{status}"))
    return Ending(Event.PROCESS, Disposition.SUCCEEDED, reason)


def end_of_failure(error: BaseException | None, attempt: Attempt) -> Ending:
    """The end of an attempt that brought no response to the spider."""
    said = {"exception": type(error).__name__, "message": str(error)[:MESSAGE_LIMIT]}
    if isinstance(error, IgnoreRequest):
        inputs = detail(**said)
        code = "robots.disallow" if str(error) == ROBOTS_MESSAGE else "request.ignored"
        if not attempt.is_captured:
            return Ending(Event.EXCLUDE, None, Reason(code, inputs), Finding(code))
        return Ending(Event.GIVE_UP, Disposition.FAILED, Reason("response.ignored", inputs))
    cause = attempt.cause if attempt.is_judged_by(error) else f"download.{fault_kind(error)}"
    judgement = attempt.judgement if attempt.is_judged_by(error) else None
    inputs = detail(**said) if judgement is None else judgement.detail(**said)
    finding = None if attempt.is_captured else Finding(cause)
    return Ending(Event.GIVE_UP, Disposition.FAILED, Reason(cause, inputs), finding)


def detail(**inputs: Any) -> str:
    """The inputs of a reason, as the ledger keeps them."""
    return json.dumps(inputs, ensure_ascii=False, default=str)
