"""Families of URLs and the brakes on them in a running crawl: what is held, what pages bring, what is written of it."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_frontier.identity import origin_of
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.likeness import (
    LIKENESS_VERSION,
    Likeness,
    LikenessIndex,
    Match,
    SeenPhrases,
)
from scrapy_frontier.policy.traps import Brake, Content, Traps
from scrapy_frontier.policy.traps.reading import Reader
from scrapy_frontier.states import Event
from scrapy_frontier.store.messages import FamilyBraked, Likened, Reason, Tally, Transit, Verdict

if TYPE_CHECKING:
    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.page import Page
    from scrapy_frontier.policy.traps import TrapExceptions
    from scrapy_frontier.settings import FrontierSettings
    from scrapy_frontier.store.messages import Head
    from scrapy_frontier.store.writer import Writer

logger = get_logger(__name__)

PAGES_KNOWN: Final = 50_000
"""Pages whose text is remembered, so that another like them is known for one."""

NEW, SAME, EXACT, NEAR = range(4)
"""How a page is like another one, as the store keeps it."""

_CANONICAL = re.compile(
    r"""<link\b(?=[^>]*\brel\s*=\s*["']?canonical\b)[^>]*\bhref\s*=\s*["']?([^"'\s>]+)""",
    re.IGNORECASE,
)
_HEAD_LIMIT: Final = 32_768
_DONT_FILTER: Final = '"dont_filter":true'
_HOLDABLE: Final = frozenset({ReferenceKind.LINK, ReferenceKind.ERRBACK})


class Families:
    """One per open run. Everything is decided on the loop, in the order of the run; the writer is told of it."""

    def __init__(self, settings: FrontierSettings, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._has_likeness = settings.likeness
        self._exceptions: TrapExceptions = settings.trap_exceptions
        self.holds: bool = settings.traps
        self.traps = Traps(time.gmtime(clock.now()).tm_year)
        self.index = LikenessIndex(PAGES_KNOWN)
        self._reader = Reader(self.index, SeenPhrases())
        self._read: dict[int, tuple[Likeness, Match | None]] = {}
        self.released: set[int] = set()
        """Identities that an operator has let go and that wait for their turn."""
        self.held: int = 0
        """URLs deferred by rules about traps in this session."""

    def refer(
        self, request: Request, url: str, origin: str, page: Page, verdict: Verdict
    ) -> tuple[str, Verdict]:
        """The family of a URL that is referred to, and what becomes of it, where `verdict` would have it fetched."""
        if not self.holds:
            return "", verdict
        referral = self.traps.refer(url, origin, page.content)
        if verdict.event is not Event.ENQUEUE:
            return f"{origin} {referral.shape}", verdict
        page.outside += referral.is_outside
        may_hold = page.kind in _HOLDABLE and not request.dont_filter and request.method == "GET"
        if referral.brake is not None and may_hold:
            verdict = self._verdict(referral.brake, url, origin) or verdict
        return f"{origin} {referral.shape}", verdict

    def hold(self, head: Head) -> Reason | None:
        """Why a URL whose turn has come is not fetched, by what has been learned since it was admitted."""
        if not self.holds or not head.depth or head.method != "GET" or _is_wanted(head):
            return None
        if head.identity_id in self.released:
            self.released.discard(head.identity_id)
            return None
        origin = origin_of(head.url)
        brake = self.traps.hold(head.url, origin)
        if brake is None or self._exceptions.find(brake.rule, head.url, origin) is not None:
            return None
        self.held += 1
        return _reason(brake)

    def defer(self, head: Head, reason: Reason) -> None:
        """Write that a scheduled URL is deferred."""
        self._writer.send(
            Transit([head.identity_id], Event.DEFER, reason, int(self._clock.now() * 1000))
        )

    def read(self, attempt: Attempt, page: Page, response: object) -> None:
        """Look at the text of a page before its callback does, so that its links are judged by it."""
        if attempt.is_direct or attempt.request.method != "GET":
            return
        origin = origin_of(attempt.url)
        text = None
        if self._has_likeness and isinstance(response, HtmlResponse) and response.status == 200:
            text = response.text
        page.content, found = self._reader.read(
            text,
            attempt.url,
            origin,
            attempt.lease.identity_id,
            self.traps.family_of(attempt.url, origin),
        )
        if found is not None and text is not None:
            page.likeness = (*found, _canonical(text))

    def processed(self, attempt: Attempt, page: Page) -> None:
        """All links of a page are known: count what it brought."""
        content = page.content
        if content is None:
            return
        origin = origin_of(attempt.url)
        for known in self.traps.fetched(attempt.url, origin, content, page.outside):
            if known.brake is not None and self.holds:
                self._tell(known.origin, known.brake)
        if page.likeness is not None:
            values = _values(content, page.outside, *page.likeness)
            self._writer.send(Likened(attempt.lease.attempt_id, attempt.lease.identity_id, values))

    def _verdict(self, brake: Brake, url: str, origin: str) -> Verdict | None:
        if not self.holds:
            return None
        exception = self._exceptions.find(brake.rule, url, origin)
        if exception is None:
            self.held += 1
            return Verdict(Event.DEFER, _reason(brake))
        self._writer.send(Tally("waiver", f"trap.{brake.rule}: {exception}", 1, url))
        inputs = _json({"exception": exception, "rule": brake.rule, **brake.detail()})
        return Verdict(Event.ENQUEUE, Reason("trap.exception", inputs))

    def _tell(self, origin: str, brake: Brake) -> None:
        logger.warning(
            "A trap on %s: the rest of %s is deferred by the rule %s; `scrapy frontier families` shows it",
            origin,
            brake.family,
            brake.rule,
            extra={"action": "family_braked"},
        )
        self._writer.send(
            FamilyBraked(
                f"{origin} {brake.family}",
                brake.rule,
                _json(brake.inputs),
                int(self._clock.now() * 1000),
            )
        )


def _is_wanted(head: Head) -> bool:
    """Whether somebody asked for this very page."""
    if isinstance(head.payload, Request):
        return head.payload.dont_filter
    return head.record is not None and _DONT_FILTER in head.record


def _reason(brake: Brake) -> Reason:
    return Reason(f"trap.{brake.rule}", _json(brake.detail()))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _canonical(text: str) -> str | None:
    """The address that a page names as its canonical one, as it stands there."""
    match = _CANONICAL.search(text, 0, _HEAD_LIMIT)
    return match[1][:2000] if match else None


def _values(
    content: Content, outside: int, likeness: Likeness, match: Match | None, canonical: str | None
) -> tuple[int | str | None, ...]:
    kind = NEW
    if match is not None:
        kind = SAME if match.is_same else EXACT if match.is_exact else NEAR
    return (
        LIKENESS_VERSION,
        likeness.digest,
        likeness.bare,
        likeness.simhash,
        likeness.words,
        round(1000 * content.novelty),
        outside,
        kind,
        0 if match is None else match.number,
        0 if match is None else match.distance,
        canonical,
    )
