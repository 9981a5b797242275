"""An attempt while it is under way, and what its end means for the ledger."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest

from scrapy_frontier.frontier.slots import slot_of
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.messages import Finding, Lease, Reason, Source

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.frontier.page import Page

ROBOTS_MESSAGE: Final = "Forbidden by robots.txt"
"""What Scrapy's RobotsTxtMiddleware says when it drops a request."""

MESSAGE_LIMIT: Final = 500
"""How many characters of an exception's text are kept in the ledger."""


class Attempt:
    """One dispatch of one identity, from its hand-out to the end of its page. Found by its request, never by meta."""

    __slots__ = (
        "body",
        "committed",
        "depth",
        "exception",
        "gate_key",
        "granted",
        "has_place",
        "is_captured",
        "is_charged",
        "is_direct",
        "is_lost",
        "is_on_wire",
        "is_robots",
        "issuer",
        "lease",
        "origin_id",
        "page",
        "replay",
        "request",
        "seen",
        "signs",
        "signs_seen",
        "status",
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
        self.status: int | None = None
        self.exception: BaseException | None = None
        self.replay: bytes | None = None
        """The digest of the response that answers it in place of the wire."""
        self.body: bytes | None = None
        """The body as the wire sent it, until its page begins, where evidence of it is kept."""
        self.seen: asyncio.Future[bytes | None] | None = None
        """Evidence of the response as the spider sees it, while it is being written."""

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


def capture(response: Response, *, is_replayed: bool = False) -> Finding:
    """What the ledger keeps of a response itself."""
    digest = hashlib.blake2b(response.body, digest_size=32).digest()
    if is_replayed:
        return Finding(REPLAYED, response.status, len(response.body), digest)
    return Finding(f"http.{response.status}", response.status, len(response.body), digest)


def end_of_page(
    status: int, callback_error: str | None = None, *, is_answered: bool = True
) -> Ending:
    """The end of an attempt whose response came, by its status and what the callback did.

    `is_answered`: whether a callback got the response; a redirect that nobody follows or handles is an error.
    """
    if callback_error is not None:
        reason = Reason("callback.exception", detail(exception=callback_error))
        return Ending(Event.PROCESS, Disposition.CALLBACK_ERROR, reason)
    reason = Reason(f"http.{status}")
    if status == 304:
        return Ending(Event.NOT_MODIFY, Disposition.NOT_MODIFIED, reason)
    if status in (404, 410):
        return Ending(Event.PROCESS, Disposition.GONE, reason)
    if status >= 400 or (status >= 300 and not is_answered):
        return Ending(Event.PROCESS, Disposition.HTTP_ERROR, reason)
    return Ending(Event.PROCESS, Disposition.SUCCEEDED, reason)


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


def end_of_failure(error: BaseException | None, *, is_captured: bool) -> Ending:
    """The end of an attempt that brought no response to the spider."""
    inputs = detail(exception=type(error).__name__, message=str(error)[:MESSAGE_LIMIT])
    if isinstance(error, IgnoreRequest):
        code = "robots.disallow" if str(error) == ROBOTS_MESSAGE else "request.ignored"
        if not is_captured:
            return Ending(Event.EXCLUDE, None, Reason(code, inputs), Finding(code))
        return Ending(Event.GIVE_UP, Disposition.FAILED, Reason("response.ignored", inputs))
    code = f"download.{failure_kind(error)}"
    finding = None if is_captured else Finding(code)
    return Ending(Event.GIVE_UP, Disposition.FAILED, Reason(code, inputs), finding)


_KINDS: Final = {
    "DownloadTimeoutError": "timeout",
    "TimeoutError": "timeout",
    "TCPTimedOutError": "connect_timeout",
    "CannotResolveHostError": "dns",
    "DNSLookupError": "dns",
    "DownloadConnectionRefusedError": "refused",
    "ConnectionRefusedError": "refused",
    "ConnectionLost": "reset",
    "ConnectionDone": "reset",
    "ResponseFailed": "reset",
    "ResponseNeverReceived": "reset",
    "ResponseDataLossError": "truncated",
    "ResponseDataLoss": "truncated",
    "DownloadCancelledError": "cancelled",
    "UnsupportedURLSchemeError": "unsupported",
    "DownloadFailedError": "failed",
    "ArtifactError": "evidence",
}


def failure_kind(error: BaseException | None) -> str:
    """A short stable name for a download error, by its class or the nearest base class that has one."""
    for cause in _causes(error):
        for cls in type(cause).__mro__:
            if cls.__name__ in _KINDS:
                return _KINDS[cls.__name__]
    return type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error from its innermost cause outwards: Scrapy wraps Twisted's errors, and those wrap others."""
    if error is None:
        return
    for reason in getattr(error, "reasons", ()):
        yield from _causes(getattr(reason, "value", None))
    yield from _causes(error.__cause__)
    yield error


def detail(**inputs: Any) -> str:
    """The inputs of a reason, as the ledger keeps them."""
    return json.dumps(inputs, ensure_ascii=False, default=str)
