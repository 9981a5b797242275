"""From a request that somebody yielded to a message for the ledger: identity, admission, first or further reference.

Runs on the event loop for every link of every page: a URL seen lately costs one look-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from scrapy_frontier.frontier.admission import Admission, due_ms
from scrapy_frontier.frontier.page import KnownUrl, Page, RecentUrls, current_page
from scrapy_frontier.frontier.retries import HOLDS
from scrapy_frontier.frontier.seeds import with_credentials
from scrapy_frontier.frontier.slots import slot_of
from scrapy_frontier.identity import (
    USERINFO,
    NotSerialisable,
    Rejection,
    Resolved,
    comparison_url,
    fetch_key,
    normalise_request_url,
    partition,
    resolve,
)
from scrapy_frontier.identity import Reference as Found
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.logs import get_logger
from scrapy_frontier.observations import observed_reference
from scrapy_frontier.states import Event
from scrapy_frontier.store.edges import Observation
from scrapy_frontier.store.messages import Known, Reason, Reference, Source, Tally, Verdict

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.families import Families
    from scrapy_frontier.frontier.promotion import Promotion
    from scrapy_frontier.frontier.requests import RequestCodec
    from scrapy_frontier.settings import FrontierSettings
    from scrapy_frontier.store.writer import Writer

logger = get_logger(__name__)

BY_ENGINE: Final = Verdict(Event.ENQUEUE, Reason("admission.engine"))

NOBODY: Final = Source()


class Intake:
    """Turns requests into references. One per open run."""

    def __init__(
        self,
        settings: FrontierSettings,
        admission: Admission,
        codec: RequestCodec,
        writer: Writer,
        clock: Clock,
        keep_volatile: Callable[[int, Request], None],
        promotion: Promotion,
        families: Families,
    ) -> None:
        self._settings = settings
        self._codec = codec
        self._writer = writer
        self._clock = clock
        self._admission = admission
        self._keep_volatile = keep_volatile
        self._promotion = promotion
        self._families = families
        self._recent = RecentUrls(settings.known_urls)
        self._seeds: Counter[bytes] = Counter()
        self._loose: dict[ReferenceKind, Page] = {}
        self.references: int = 0
        self.duplicates: int = 0
        self.unserialisable: int = 0

    def enqueue(self, request: Request) -> bool:
        """Take in a request that was yielded, or handed to the engine. False: it is a duplicate or was refused."""
        self.references += 1
        page = current_page()
        is_seed = page is None and bool(request.meta.get("is_start_request"))
        is_visit = request.dont_filter
        if page is not None and not is_visit and request.method == "GET" and not request.body:
            known = self._recent.get(request.url)
            if known is not None and known.identity_id and not _may_change(known, request):
                self._again(page, known, request)
                return False
        if page is None:
            page = self._loose_page(ReferenceKind.SEED if is_seed else ReferenceKind.ENGINE)
        return self._refer(request, page, is_seed=is_seed, is_visit=is_visit)

    def enqueue_hop(
        self,
        request: Request,
        attempt: Attempt,
        *,
        is_visit: bool,
        settled: Callable[[Known], None] | None = None,
    ) -> str | None:
        """Take in the next hop of a redirect; the URL it leads to, or None where it was rejected.

        `settled` is told what became of it, unless it was rejected.
        """
        self.references += 1
        resolved = self.resolve(request)
        if isinstance(resolved, Rejection):
            self.reject_hop(attempt, resolved)
            return None
        page = Page(attempt.source, ReferenceKind.REDIRECT, attempt.depth)
        key = self._key(request, resolved)
        self._send(request, resolved, page, key, seed=0, is_visit=is_visit, settled=settled)
        return resolved.url

    def refer_direct(
        self,
        request: Request,
        resolved: Resolved,
        holder: Attempt | None,
        on_commit: Callable[[Known], None] | None,
        verdict: Verdict = BY_ENGINE,
        *,
        is_robots: bool = False,
    ) -> None:
        """A request issued past the scheduler, in the download of `holder`, in a page's processing, or by neither."""
        page = current_page()
        source = NOBODY
        if holder is not None:
            source = holder.source
        elif page is not None:
            source = page.source
        key = fetch_key(
            request.method, resolved.url, request.body, role="robots" if is_robots else "engine"
        )
        self._writer.send(
            Reference(
                key=key,
                method=request.method,
                url=resolved.url,
                origin=self.queue_of(request, resolved),
                partition=partition(resolved.origin),
                source=source,
                kind=int(ReferenceKind.ROBOTS if is_robots else ReferenceKind.DIRECT),
                depth=0,
                record=None,
                rank=0,
                due_ms=0,
                verdict=verdict,
                at_ms=self._now_ms(),
                is_visit=True,
                is_direct=True,
                on_commit=on_commit,
            )
        )

    def resolve(self, request: Request) -> Resolved | Rejection:
        """The request URL of a request, or the rule that rejects it."""
        return normalise_request_url(request.url, max_length=self._admission.limits.url_length)

    def reject(self, page: Page | None, rejection: Rejection) -> None:
        """Record a reference that has no fetch key."""
        page = page or self._loose_page(ReferenceKind.ENGINE)
        page.reject(rejection.rule, rejection.observed)
        logger.debug(
            "Rejected reference %r: %s",
            rejection.observed,
            rejection.rule,
            extra={"action": "reference_rejected"},
        )
        self._flush_if_due(page)

    def reject_hop(self, attempt: Attempt, rejection: Rejection) -> None:
        """Record where a response of this attempt sends its client, in vain."""
        page = Page(attempt.source, ReferenceKind.REDIRECT, attempt.depth)
        self.reject(page, rejection)
        self.flush(page)

    def reject_seed(self, rejection: Rejection) -> None:
        """Record a start URL that has no fetch key."""
        self.reject(self._loose_page(ReferenceKind.SEED), rejection)

    def take_extracted(self, page: Page, references: Sequence[Found]) -> None:
        """Keep what link extractors of ours found on a page; those it rejected are references too."""
        for found in references:
            if found.rejection is not None:
                self.references += 1
                page.reject(found.rejection.rule, found.rejection.observed)
            elif found.url is not None:
                page.observe(self._recent.get(found.url), _line(found))
            self._flush_if_due(page)

    def take_inventory(self, page: Page, references: Sequence[Found]) -> None:
        """Keep every reference of a page as it was found; none of them makes a request."""
        for found in references:
            known = None if found.url is None else self._recent.get(found.url)
            page.observe(known, _line(found, is_followed=False))
            self._flush_if_due(page)

    def take_sitemaps(self, robots_url: str, sitemaps: Sequence[str]) -> None:
        """Keep the sitemaps that a robots.txt names; whether they are fetched is for the spider to say."""
        page = Page(NOBODY, ReferenceKind.SITEMAP, 0, robots_url)
        found = [Found.of(url, resolve(url, robots_url), tag="sitemap") for url in sitemaps]
        self.take_inventory(page, found)
        for reference in found:
            if reference.rejection is not None:
                page.reject(reference.rejection.rule, reference.observed)
        self.flush(page)

    def flush(self, page: Page) -> None:
        """Send what the page has emitted and not yet sent."""
        emission = page.take_emission()
        if emission is not None:
            self._writer.send(emission)

    def queue_of(self, request: Request, resolved: Resolved) -> str:
        """The origin whose queue a request stands in; a `download_slot` of the user's makes a queue of its own."""
        slot = slot_of(request.meta)
        return resolved.origin if slot is None else f"{resolved.origin} ({slot})"

    def _refer(self, request: Request, page: Page, *, is_seed: bool, is_visit: bool) -> bool:
        rejection: Rejection | None = getattr(request, "rejection", None)
        resolved: Resolved | Rejection = rejection or self.resolve(request)
        if is_seed and isinstance(resolved, Rejection) and resolved.rule == USERINFO:
            request = with_credentials(request)
            resolved = self.resolve(request)
        if isinstance(resolved, Rejection):
            self.reject(page, resolved)
            return False
        plain = request.method == "GET" and not request.body
        known = self._recent.get(resolved.url) if plain else None
        if known is not None and not is_visit and not _may_change(known, request):
            self._recent.put(request.url, known)
            self._again(page, known, request)
            return False
        seed, key = 0, self._key(request, resolved)
        if is_seed and is_visit:
            self._seeds[key] += 1
            seed = self._seeds[key]
        known = self._send(request, resolved, page, key, seed=seed, is_visit=is_visit)
        if plain:
            self._recent.put(request.url, known)
            self._recent.put(resolved.url, known)
        self._observe(page, known, request, is_first=True)
        return True

    def _send(
        self,
        request: Request,
        resolved: Resolved,
        page: Page,
        key: bytes,
        *,
        seed: int,
        is_visit: bool,
        settled: Callable[[Known], None] | None = None,
    ) -> KnownUrl:
        depth = request.meta.get("depth", page.depth)
        verdict, waiver = self._admission.verdict(request, resolved, depth)
        family, verdict = self._families.refer(
            request, resolved.url, resolved.origin, page, verdict
        )
        now_ms = self._now_ms()
        known = KnownUrl(key, is_suppressed=verdict.event is Event.EXCLUDE)

        claims = self._admission.claims(resolved) if verdict.event is Event.ENQUEUE else ()
        rank, points = self._admission.place_in_queue(request, resolved.url, resolved.origin, depth)
        # Copied from another request; this one has not waited yet.
        request.meta.pop(HOLDS, None)
        record = self.record(request)

        def settle(answer: Known) -> None:
            known.identity_id = answer.identity_id
            known.is_suppressed = answer.is_suppressed
            known.is_held = answer.is_held
            if record is None and answer.is_taken:
                self._keep_volatile(answer.identity_id, request)
            if settled is not None:
                settled(answer)

        self._writer.send(
            Reference(
                key=known.key,
                method=request.method,
                url=resolved.url,
                origin=self.queue_of(request, resolved),
                partition=partition(resolved.origin),
                source=page.source,
                kind=int(page.kind),
                depth=depth,
                record=record,
                rank=rank,
                points=points,
                due_ms=due_ms(request.meta, now_ms),
                verdict=verdict,
                at_ms=now_ms,
                is_visit=is_visit,
                seed=seed,
                waiver=waiver,
                claims=claims,
                payload=request,
                on_commit=settle,
                family=family,
            )
        )
        return known

    def _key(self, request: Request, resolved: Resolved) -> bytes:
        rules = self._settings.parameter_rules
        if not rules.rules:
            return fetch_key(request.method, resolved.url, request.body)
        for name in rules.apply(comparison_url(resolved.url)).touched:
            self._writer.send(Tally("parameter_rule", name, 1, resolved.url))
        return fetch_key(request.method, resolved.url, request.body, rules=rules)

    def _again(self, page: Page, known: KnownUrl, request: Request) -> None:
        self.duplicates += 1
        page.refer(known)
        self._promotion.note(known)
        self._observe(page, known, request, is_first=False)
        self._flush_if_due(page)

    def _observe(self, page: Page, known: KnownUrl, request: Request, *, is_first: bool) -> None:
        """Keep the spelling of a first reference, and every fragment: no key holds it."""
        seen = observed_reference(request, page.response)
        if seen is None:
            fragment = request.url.partition("#")[2]
            if fragment:
                page.observe(known, Observation(0, request.url, fragment).line())
        elif is_first or seen.fragment:
            page.observe(known, _line(seen))

    def record(self, request: Request) -> str | None:
        """The request as the store keeps it; None, counted, where it cannot be stored."""
        try:
            return self._codec.dump(request)
        except NotSerialisable as error:
            if not self.unserialisable:
                logger.warning(
                    "%s cannot be stored and lives in memory only: it is lost if this process dies. %s"
                    " (Further ones are counted, not logged.)",
                    request,
                    error,
                    extra={"action": "request_unserialisable"},
                )
            self.unserialisable += 1
            self._writer.send(Tally("unserialisable", "request", 1, f"{request.url}: {error}"))
            return None

    def _loose_page(self, kind: ReferenceKind) -> Page:
        """References without a source page: seeds, and what is handed to the engine from outside callbacks."""
        page = self._loose.get(kind)
        if page is None:
            page = self._loose[kind] = Page(NOBODY, kind, 0)
        return page

    def flush_loose(self) -> None:
        """Send what seeds and the engine have emitted."""
        for page in self._loose.values():
            self.flush(page)

    def _flush_if_due(self, page: Page) -> None:
        if page.is_full or not page.source.identity_id:
            self.flush(page)

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


def _may_change(known: KnownUrl, request: Request) -> bool:
    """Whether this reference may change how the identity stands, so that it must not pass as a mere duplicate."""
    return known.is_held or (known.is_suppressed and bool(request.meta.get("allow_offsite")))


def _line(found: Found, *, is_followed: bool = True) -> str:
    """How a reference stood on its page, as the edges keep it; the target is told apart from it."""
    seen = Observation(
        0, found.observed, found.fragment, found.tag, found.rel, found.text, is_followed
    )
    return seen.line()
