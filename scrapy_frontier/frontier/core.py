"""The Frontier: what the scheduler, the middlewares and the extension of one crawl talk to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_frontier import failpoints, seams
from scrapy_frontier.clock import SystemClock, milliseconds
from scrapy_frontier.errors import FrontierError, IdentityError
from scrapy_frontier.frontier import direct, further, hops, outcomes
from scrapy_frontier.frontier.attempts import (
    REPLAYED,
    ROBOTS_MESSAGE,
    Attempt,
    Ending,
    capture,
    end_of_failure,
)
from scrapy_frontier.frontier.evidence import keep, note_seen, write_end
from scrapy_frontier.frontier.leases import STOPPING
from scrapy_frontier.frontier.page import CURRENT_PAGE, Page, current_page
from scrapy_frontier.frontier.rendering import Rendering
from scrapy_frontier.frontier.slots import META_KEY, SLOT, AutomaticSlot
from scrapy_frontier.identity import Rejection, host_of
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.logs import get_logger
from scrapy_frontier.observations import observed_references
from scrapy_frontier.resolver import forget_unreached
from scrapy_frontier.settings import FrontierSettings
from scrapy_frontier.states import Event
from scrapy_frontier.store.messages import Dispatch, Lease, Move, Reason, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_frontier.frontier.dispatch import Pick
    from scrapy_frontier.frontier.life import Open
    from scrapy_frontier.frontier.retries import Judgement
    from scrapy_frontier.identity import Reference
    from scrapy_frontier.store.messages import Head

logger = get_logger(__name__)

ERROR_REASON: Final = "frontier_error"
"""The reason that the spider is closed with when the frontier cannot go on."""

CURRENT_ATTEMPT: ContextVar[Attempt | None] = ContextVar("frontier_attempt", default=None)
"""The attempt whose download runs in this context."""

_FRONTIERS: WeakKeyDictionary[Crawler, Frontier] = WeakKeyDictionary()


class Frontier:
    """One per crawler; `open` and `close` bound the life of its run."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.settings = FrontierSettings.from_settings(crawler.settings)
        self.clock = SystemClock()
        self.error: BaseException | None = None
        self.is_closed = False
        """Whether the run is closed: what is still yielded then comes again when the run is resumed."""
        self.attempts: dict[Request, Attempt] = {}
        self.judged_hops: set[Request] = set()
        """Next hops that a redirect middleware of ours has let pass."""
        self.next_attempts: dict[Request, Judgement] = {}
        """Requests of next attempts, on their way from the retry middleware."""
        self.rendering: Rendering = Rendering()
        self._replacements: dict[Request, Attempt] = {}
        self._open: Open | None = None

    @classmethod
    def of(cls, crawler: Crawler) -> Frontier:
        """The frontier of this crawler; made by whoever asks first."""
        found = _FRONTIERS.get(crawler)
        if found is None:
            found = _FRONTIERS[crawler] = cls(crawler)
        return found

    def __repr__(self) -> str:
        if self._open is None:
            return "<Frontier, not open>"
        if self.error is not None:
            return f"<Frontier of {self._open.run.name}, failed: {self.error}>"
        return (
            f"<Frontier of {self._open.run.name} [{len(self.attempts)} under way |"
            f" {self._open.dispatch.scheduled} scheduled, {self._open.dispatch.timed} waiting for a time |"
            f" {self._open.writer.pending} messages unwritten]>"
        )

    # The life of the run

    async def open(self, spider: Spider) -> None:
        """Open store and run; raises `ConfigError` or `StoreError`, before any request, where that cannot be."""
        from scrapy_frontier.frontier.life import open_frontier

        self._open = await open_frontier(self, spider)
        self._open.start()

    async def close(self, reason: str) -> None:
        """Write what is left and how the run ended. `reason` is Scrapy's reason for closing the spider."""
        from scrapy_frontier.frontier.closing import close_frontier

        if self._open is not None:
            await close_frontier(self, self._open, reason)

    @property
    def opened(self) -> Open:
        """The parts of the open run."""
        if self._open is None:
            raise FrontierError(
                "the frontier is not open: its scheduler has not been opened by the engine"
            )
        return self._open

    @property
    def is_open(self) -> bool:
        """Whether a run is open."""
        return self._open is not None

    def fail(self, error: BaseException) -> None:
        """Latch an internal error and close the spider: a crawl may stop, it may not go on without its account."""
        if self.error is not None:
            return
        self.error = error
        logger.critical(
            "The frontier cannot go on and closes the spider; what is committed stays, and the run can be resumed: %s",
            error,
            exc_info=error,
            extra={"action": "frontier_failed"},
        )
        for attempt in self.attempts.values():
            attempt.grant(False)
            attempt.commit(False)
        if self._open is not None:
            self._open.dispatch.abandon(IgnoreRequest(STOPPING))
            self._open.wire.abandon(IgnoreRequest(STOPPING))
            self._open.close_spider(ERROR_REASON)

    def close_spider(self, reason: str) -> None:
        """Have the engine close the spider, for a reason of the frontier's own."""
        if self._open is not None:
            self._open.close_spider(reason)

    # References

    def enqueue(self, request: Request) -> bool:
        """Take in a request; False where it is a duplicate or was refused."""
        if self.error is not None or self.is_closed:
            return False
        attempt = self._replacements.pop(request, None)
        if attempt is not None:
            hops.replace(self, attempt, request)
            return True
        page = current_page()
        if page is not None and further.is_wish_of(self, page, request):
            page.wish = request
            return True
        return self.opened.intake.enqueue(request)

    def reject(self, rejection: Rejection) -> None:
        """A reference of the page in this context has no fetch key."""
        self.opened.intake.reject(current_page(), rejection)

    def reject_seed(self, rejection: Rejection) -> None:
        """A start URL has no fetch key."""
        self.opened.intake.reject_seed(rejection)

    def drop(self, head: Head) -> None:
        """A URL whose turn had come is forbidden by robots.txt."""
        if self.crawler.stats is not None:
            self.crawler.stats.inc_value("robotstxt/forbidden")
        try:
            request = self.opened.restore(head)
        except IdentityError as error:
            logger.error(
                "The errback of %s is not told that robots.txt forbids it: %s",
                head.url,
                error,
                extra={"action": "request_unrestorable"},
            )
            return
        error_told = IgnoreRequest(ROBOTS_MESSAGE)
        self.tell_errback(request, error_told, head.identity_id, head.depth)

    def tell_errback(
        self, request: Request, error: Exception, identity_id: int, depth: int
    ) -> None:
        """Let the errback of a request that is not fetched know why, as Scrapy does for those its middlewares drop."""
        if request.errback is None:
            return
        failure = Failure(error)  # type: ignore[no-untyped-call]
        page = Page(Source(identity_id), ReferenceKind.ERRBACK, depth + 1, request.url)
        token = CURRENT_PAGE.set(page)
        try:
            scraped = seams.engine_of(self.crawler).scraper.enqueue_scrape(failure, request)
        finally:
            CURRENT_PAGE.reset(token)
        scraped.addBoth(lambda _: self.close_page(page))

    def close_page(self, page: Page) -> None:
        """The page has ended: what its callback still yields is no part of it."""
        page.is_closed = True
        self.opened.intake.flush(page)

    def take_inventory(self, page: Page, references: Sequence[Reference]) -> None:
        """Keep every reference of a page as it was found."""
        self.opened.intake.take_inventory(page, references)

    @property
    def is_crowded(self) -> bool:
        """Whether whoever yields requests should wait for the writer."""
        opened = self._open
        return (
            opened is not None
            and self.error is None
            and not self.is_closed
            and opened.writer.pending > self.settings.max_queue
        )

    async def room(self) -> None:
        """Wait until the writer has caught up."""
        while self.is_crowded:
            await asyncio.sleep(0.01)

    # The schedule

    def next_request(self) -> Request | None:
        """The next request to fetch, or None; the engine is woken when there may be one."""
        if self.error is not None:
            return None
        opened = self.opened
        if opened.writer.lag_s > self.settings.max_lag_s:
            opened.waker.wake_in(0.1)
            return None
        replayed = opened.replays.next_request(self)
        if replayed is not None:
            return replayed
        dispatch = opened.dispatch
        while True:
            pick = dispatch.next()
            if pick is None:
                delay_s = dispatch.next_delay_s()
                if delay_s is not None:
                    opened.waker.wake_in(delay_s)
                return None
            try:
                request = opened.restore(pick.head)
            except IdentityError as error:
                opened.cancel(pick.head, error)
                dispatch.cancel(pick.gate_key)
                continue
            return self._hand_out(request, pick)

    @property
    def next_delay_s(self) -> float | None:
        """Seconds until the schedule may give something by the passing of time alone."""
        return None if self._open is None or self.error else self._open.dispatch.next_delay_s()

    @property
    def is_pending(self) -> bool:
        """Whether the run has work left that this process can do."""
        opened = self._open
        if opened is None or self.error is not None:
            return False
        return opened.dispatch.is_pending or opened.writer.owes_work or opened.has_replays

    @property
    def has_work_left(self) -> bool:
        """Whether the run would have something to do if it were resumed now."""
        opened = self._open
        return self.error is not None or bool(
            any(not attempt.is_lost for attempt in self.attempts.values())
            or self._replacements
            or (opened and (opened.dispatch.is_pending or opened.has_replays))
        )

    def _hand_out(self, request: Request, pick: Pick) -> Request:
        opened = self.opened
        if request in self.attempts:
            request = request.copy()
        head = pick.head
        attempt = Attempt(
            request, Lease(head.identity_id), head.origin_id, pick.gate_key, head.url, head.depth
        )
        attempt.granted = opened.loop.create_future()
        self.attempts[request] = attempt
        request.meta[META_KEY] = SLOT
        request.meta["autothrottle_dont_adjust_delay"] = True
        opened.writer.send(
            Dispatch(attempt.lease, self._now_ms(), pick.reason, on_commit=attempt.grant)
        )
        failpoints.reach("dispatch.sent")
        return request

    def statistics(self) -> dict[str, Any]:
        """The figures of the run, by their names in Scrapy's stats; empty before a run is open."""
        from scrapy_frontier.frontier import statistics

        return {} if self._open is None else statistics.read(self._open)

    # Downloads

    @contextmanager
    def downloading(self, request: Request) -> Iterator[None]:
        """The context in which a request is downloaded."""
        attempt = self.attempts.get(request)
        if attempt is None:
            yield
            return
        page = CURRENT_PAGE.set(None)
        token = CURRENT_ATTEMPT.set(attempt)
        try:
            yield
        finally:
            CURRENT_ATTEMPT.reset(token)
            CURRENT_PAGE.reset(page)

    def transferring(self, request: Request) -> AbstractContextManager[None]:
        """The context in which a request goes over the wire."""
        return outcomes.transferring(self, self.attempts.get(request))

    async def admit(self, request: Request) -> Response | None:
        """Hold a request until it may go on the wire. Raises `IgnoreRequest` where it may not.

        The response is that of the evidence, where that answers the request.
        """
        attempt = self.attempts.get(request)
        if attempt is not None and attempt.replay is not None:
            return await self.opened.evidence_of(attempt).replay(attempt)
        if self.opened.reparse is not None:
            return await self.opened.reparse.answer(request, attempt)
        if attempt is None:
            attempt = await direct.admit(self, request, CURRENT_ATTEMPT.get())
        if attempt.granted is not None and not await attempt.granted:
            raise self.opened.leases.loss(attempt)
        if not attempt.has_place:
            await self.opened.dispatch.take_place(attempt.gate_key)
            attempt.has_place = True
        await self.opened.wire.enter()
        attempt.is_on_wire = True
        attempt.show_work()
        if attempt.is_lost:
            self.give_place_back(attempt)
            raise self.opened.leases.loss(attempt)
        failpoints.reach("wire.before")
        return None

    def charge(self, request: Request) -> None:
        """The request is on the wire."""
        attempt = self.attempts.get(request)
        if attempt is not None and attempt.has_place and not attempt.is_charged:
            attempt.is_charged = True
            attempt.charged_at = self.clock.now()
            failpoints.reach("wire.charged")
            self.opened.dispatch.charge(attempt.gate_key, attempt.origin_id)

    def release(self, request: Request) -> None:
        """The request has left the wire."""
        attempt = self.attempts.get(request)
        if attempt is not None:
            self.give_place_back(attempt)

    def give_place_back(self, attempt: Attempt) -> None:
        """The attempt needs its place at the gate no longer, or lends it."""
        if attempt.is_on_wire:
            attempt.is_on_wire = False
            self.opened.wire.leave()
        if not attempt.has_place:
            return
        attempt.has_place = False
        if attempt.is_charged:
            self.opened.dispatch.release(attempt.gate_key, attempt.origin_id)
        else:
            self.opened.dispatch.cancel(attempt.gate_key)

    async def capture(self, request: Request, response: Response) -> None:
        """Commit the response. Raises `LeaseLost` where the lease is not the current one any more."""
        attempt = self.attempts.get(request)
        if attempt is None:
            return
        failpoints.reach("respond.before")
        self.give_place_back(attempt)
        request.meta[META_KEY] = attempt.user_slot or AutomaticSlot(host_of(attempt.url))
        if self.error is not None:
            raise IgnoreRequest(STOPPING)
        outcomes.answered(self, attempt, response)
        self.opened.spending.take(attempt.url, len(response.body))
        finding = capture(response, REPLAYED if attempt.replay is not None else attempt.cause)
        evidence = await keep(self, attempt, response, finding.payload)
        attempt.status = response.status
        attempt.committed = self.opened.loop.create_future()
        self.opened.writer.send(
            Move(
                attempt.lease,
                Event.RESPOND,
                Reason(finding.outcome),
                self._now_ms(),
                finding=finding,
                on_commit=attempt.commit,
                evidence=evidence,
            )
        )
        attempt.is_captured = await attempt.committed
        failpoints.reach("respond.committed")
        if not attempt.is_captured:
            raise self.opened.leases.loss(attempt)

    def note_exception(self, request: Request, exception: BaseException) -> None:
        """A download failed; what becomes of it is not known yet."""
        was_cached = forget_unreached(request, exception)
        attempt = self.attempts.get(request)
        if attempt is not None:
            outcomes.failed(self, attempt, exception, was_cached=was_cached)

    def downloaded(self, request: Request, result: object) -> None:
        """A download came to its end: a response, a failure, or another request in its place."""
        attempt = self.attempts.get(request)
        if attempt is None:
            return
        self.give_place_back(attempt)
        if attempt.is_direct:
            direct.finish(self, attempt, result)
        elif isinstance(result, Request):
            self._replacements[result] = attempt
            self.opened.loop.call_soon(self._settle_replacement, result)

    def _settle_replacement(self, request: Request) -> None:
        """A component dropped the request that stood in for another one: that is the end of the first."""
        attempt = self._replacements.pop(request, None)
        if attempt is not None:
            self.next_attempts.pop(request, None)
            self.end(attempt, end_of_failure(IgnoreRequest("the next hop was dropped"), attempt))

    # Pages

    @contextmanager
    def processing(self, request: Request, result: object) -> Iterator[Page | None]:
        """The context in which a page, or the errback of a failure, is processed."""
        attempt = self.attempts.get(request)
        if attempt is None:
            yield None
            return
        kind = ReferenceKind.ERRBACK if isinstance(result, Failure) else ReferenceKind.LINK
        url = attempt.url
        if isinstance(result, Response):
            url = result.url
            note_seen(self, attempt, result)
        page = Page(attempt.source, kind, attempt.depth + 1, url, asked=request)
        attempt.page = page
        attempt.signs += 1
        self.opened.families.read(attempt, page, result)
        token = CURRENT_PAGE.set(page)
        # The download is over: what the callback fetches is no part of it.
        downloaded = CURRENT_ATTEMPT.set(None)
        try:
            yield page
        finally:
            CURRENT_ATTEMPT.reset(downloaded)
            CURRENT_PAGE.reset(token)

    def processed(self, request: Request, result: object, page: Page | None) -> None:
        """All that the page yielded has been enqueued: it ends now, and not earlier (invariant 4)."""
        attempt = self.attempts.get(request)
        if attempt is None or page is None or self.error is not None:
            return
        if page.response is not None and not page.is_closed:
            self.opened.intake.take_extracted(page, observed_references(page.response))
        self.close_page(page)
        failpoints.reach("page.children_sent")
        further.end_page(self, attempt, result, page)
        failpoints.reach("page.end_sent")

    def end(self, attempt: Attempt, ending: Ending) -> None:
        """The attempt is over: write how."""
        self.forget(attempt)
        write_end(self, attempt, ending)

    def forget(self, attempt: Attempt) -> None:
        """The attempt is over."""
        self.attempts.pop(attempt.request, None)
        self.give_place_back(attempt)
        if attempt.on_end is not None:
            attempt.on_end()

    def _now_ms(self) -> int:
        return milliseconds(self.clock.now())
