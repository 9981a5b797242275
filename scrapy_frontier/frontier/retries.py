"""Whether an attempt is followed by another: the inputs gathered, the decision made, and what it means for the gate."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scrapy.utils.misc import load_object

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.frontier.admission import due_ms
from scrapy_frontier.policy.retry import (
    Counts,
    Decision,
    Limits,
    Question,
    RetryRules,
    Terms,
    decide,
    exception_names,
    record,
)

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.dispatch import Dispatch
    from scrapy_frontier.settings import FrontierSettings

FAULTS: Final = "retry_times"
"""Key of meta, Scrapy's: how many attempts have failed before this one."""

HOLDS: Final = "frontier_holds"
"""Key of meta: how many times the request was sent back to wait, by no fault of its own."""

IDEMPOTENT: Final = "frontier_idempotent"
"""Key of meta: the request may be sent twice, whatever its method."""

ASKED: Final = "retry.asked"
"""Cause: the spider or a middleware asks for another attempt."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A decision with the inputs and the terms it was made from."""

    question: Question
    terms: Terms
    decision: Decision

    def detail(self, **others: Any) -> str:
        """All of it, as the ledger keeps it."""
        return record(self.question, self.terms, self.decision, **others)


@dataclass(frozen=True, slots=True)
class Lists:
    """`RETRY_HTTP_CODES` and `RETRY_EXCEPTIONS` where the project has set them; None where it has not."""

    is_enabled: bool = True
    statuses: frozenset[int] | None = None
    exceptions: tuple[type[BaseException], ...] | None = None

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Lists:
        """Read them; raises `ConfigError` for what is no status or no class."""
        statuses = exceptions = None
        try:
            if settings.getpriority("RETRY_HTTP_CODES"):
                statuses = frozenset(int(code) for code in settings.getlist("RETRY_HTTP_CODES"))
            if settings.getpriority("RETRY_EXCEPTIONS"):
                exceptions = tuple(map(load_object, settings.getlist("RETRY_EXCEPTIONS")))
        except (ValueError, TypeError, ImportError, NameError) as exc:
            raise ConfigError(f"RETRY_HTTP_CODES or RETRY_EXCEPTIONS: {exc}") from exc
        return cls(settings.getbool("RETRY_ENABLED"), statuses, exceptions)

    def has_status(self, status: int) -> bool | None:
        """Whether a response with this status is tried again; None where the project says nothing."""
        return None if self.statuses is None else status in self.statuses

    def has_exception(self, error: BaseException) -> bool | None:
        """The same of an exception."""
        return None if self.exceptions is None else isinstance(error, self.exceptions)


def rules(settings: FrontierSettings, scrapy_settings: BaseSettings) -> RetryRules:
    """The rules in force."""
    limits = Limits(
        times=max(0, scrapy_settings.getint("RETRY_TIMES")),
        holds=settings.retry_holds,
        delay_s=settings.retry_delay_s,
        max_delay_s=settings.retry_max_delay_s,
        retry_after_cap_s=settings.retry_after_cap_s,
    )
    return RetryRules(settings.retry_rules, limits)


class Retries:
    """Judges the outcomes of attempts. One per open run."""

    def __init__(
        self,
        rules: RetryRules,
        lists: Lists,
        dispatch: Dispatch,
        clock: Clock,
        spider: str,
        random_source: random.Random,
    ) -> None:
        self.rules = rules
        self.lists = lists
        self._dispatch = dispatch
        self._clock = clock
        self._spider = spider
        self._random = random_source
        self._answered: set[int] = set()

    def __repr__(self) -> str:
        return f"<Retries by {self.rules!r}, {len(self._answered)} origins have answered>"

    def of_response(
        self, attempt: Attempt, response: Response, cause: str, *, is_whole: bool
    ) -> Judgement | None:
        """Judge a response; None for one that nobody would ask for again."""
        if attempt.replay is None:
            self._answered.add(attempt.origin_id)
        status = response.status
        is_listed = self.lists.has_status(status) if is_whole else None
        if status < 400 and is_whole and not is_listed and not self.rules.rules:
            return None
        return self._judge(
            attempt,
            cause,
            is_sent=True,
            is_listed=is_listed,
            retry_after=_header(response, "Retry-After"),
            date=_header(response, "Date"),
        )

    def of_failure(self, attempt: Attempt, error: BaseException, cause: str) -> Judgement:
        """Judge a download that failed, or a callback."""
        return self._judge(
            attempt,
            cause,
            exceptions=exception_names(error),
            is_listed=self.lists.has_exception(error),
            is_sent=attempt.is_sent,
        )

    def of_wish(self, attempt: Attempt, request: Request) -> Judgement:
        """Judge a retry that a component or the spider asks for with `request`; how often is for them to say."""
        now_ms = milliseconds(self._clock.now())
        return self._judge(
            attempt,
            ASKED,
            is_sent=True,
            own_times=(count_of(attempt.request.meta.get(FAULTS)) or 0) + 1,
            may_repeat=True,
            is_wish=True,
            not_before_ms=_wished_ms(attempt.request, request, now_ms),
        )

    def _judge(
        self,
        attempt: Attempt,
        cause: str,
        *,
        is_wish: bool = False,
        may_repeat: bool = False,
        own_times: int | None = None,
        exceptions: Sequence[str] = (),
        **inputs: Any,
    ) -> Judgement:
        meta = attempt.request.meta
        question = Question(
            cause=cause,
            at_ms=milliseconds(self._clock.now()),
            seed=self._random.getrandbits(31),
            method=attempt.request.method,
            origin=attempt.origin,
            spider=self._spider,
            exceptions=tuple(exceptions),
            faults=count_of(meta.get(FAULTS)) or 0,
            holds=count_of(meta.get(HOLDS)) or 0,
            own_times=count_of(meta.get("max_retry_times")) if own_times is None else own_times,
            is_enabled=self.lists.is_enabled or is_wish,
            is_refused=bool(meta.get("dont_retry")) and not is_wish,
            may_repeat=may_repeat or bool(meta.get(IDEMPOTENT)),
            has_answered=attempt.origin_id in self._answered,
            **inputs,
        )
        decision, terms = decide(question, self.rules)
        if decision.hold_until_ms and not attempt.is_robots and attempt.replay is None:
            # What asks for robots.txt keeps times of its own; what is replayed was obeyed when it came.
            self._dispatch.hold_back(attempt.gate_key, attempt.origin_id, decision.hold_until_ms)
        return Judgement(question, terms, decision)


def count_on(request: Request, earlier: Request, decision: Decision) -> None:
    """Count an attempt on the request of the next one as what it was: a fault, or a hold."""
    if decision.counts is not Counts.HOLD:
        return
    request.meta[HOLDS] = (count_of(earlier.meta.get(HOLDS)) or 0) + 1
    if FAULTS in earlier.meta:
        request.meta[FAULTS] = earlier.meta[FAULTS]
    else:
        request.meta.pop(FAULTS, None)


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")


def count_of(value: Any) -> int | None:
    """A count out of meta, which may hold anything."""
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def _wished_ms(earlier: Request, request: Request, now_ms: int) -> int:
    """The time that a request asks for, unless it was merely copied from the one before."""
    names = ("frontier_delay", "frontier_not_before")
    if all(request.meta.get(name) == earlier.meta.get(name) for name in names):
        return 0
    return due_ms(request.meta, now_ms)
