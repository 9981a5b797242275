"""Which rule decides: the narrowest of the project's that fits, on top of the built-in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from scrapy_frontier.identity.origins import split_origin
from scrapy_frontier.identity.places import Place
from scrapy_frontier.policy.retry.questions import Question
from scrapy_frontier.policy.retry.retry_after import read_retry_after
from scrapy_frontier.policy.retry.table import Counts, built_in

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods that may be sent again at will (RFC 9110, section 9.2.2)."""


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A rule of the project's. What is None is not restricted, or left to the built-in rule.

    `causes` are patterns of causes (`http.503`, `http.5??`, `download.tls.*`), `exceptions` names of
    classes, dotted or not.
    """

    name: str
    causes: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    origin: Place | None = None
    spider: str | None = None
    method: str | None = None
    retry: bool | None = None
    times: int | None = None
    delay_s: float | None = None
    max_delay_s: float | None = None
    holds_gate: bool | None = None
    repeats_unsafe: bool | None = None

    def fits(self, question: Question) -> bool:
        """Whether the rule speaks of this outcome."""
        return (
            (self.spider is None or self.spider == question.spider)
            and (self.method is None or self.method == question.method)
            and (not self.causes or any(map(question.has_cause, self.causes)))
            and (not self.exceptions or any(map(question.has_exception, self.exceptions)))
            and (self.origin is None or self.origin.covers_origin(split_origin(question.origin)))
        )

    @property
    def narrowness(self) -> tuple[int, ...]:
        """How narrow the rule is: by origin first, then spider, method, and what came."""
        what = 0
        if self.causes:
            what = 2 if any(mark in cause for cause in self.causes for mark in "*?") else 4
        if self.exceptions:
            what = max(what, 3) + 1
        return _breadth(self.origin), int(self.spider is not None), int(bool(self.method)), what


def _breadth(place: Place | None) -> int:
    if place is None:
        return 0
    exact = 1 if place.has_subdomains or not place.host else 8
    return exact + 2 * bool(place.host) + bool(place.scheme) + bool(place.port is not None)


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds where no rule says otherwise: the settings `RETRY_TIMES`, `FRONTIER_RETRY_HOLDS`,
    `FRONTIER_RETRY_DELAY`, `FRONTIER_RETRY_MAX_DELAY` and `FRONTIER_RETRY_AFTER_CAP`.
    """

    times: int = 2
    holds: int = 10
    delay_s: float = 3.0
    max_delay_s: float = 300.0
    retry_after_cap_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Terms:
    """The rule in force for one outcome, with all that it says. The ledger keeps them."""

    rule: str
    counts: Counts
    times: int
    delay_s: float
    max_delay_s: float
    retry_after_cap_s: float
    holds_gate: bool
    may_repeat: bool

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "counts": self.counts.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Terms:
        """Of what `to_json` gave."""
        return cls(**{**data, "counts": Counts(data["counts"])})


class RetryRules:
    """The rules in force: the table, the limits, and those of `FRONTIER_RETRY_RULES`."""

    __slots__ = ("limits", "rules")

    def __init__(self, rules: Iterable[RetryRule] = (), limits: Limits = Limits()) -> None:
        # Of two that are equally narrow, the one that was written first.
        self.rules = tuple(sorted(rules, key=lambda rule: rule.narrowness, reverse=True))
        self.limits = limits

    def __repr__(self) -> str:
        return f"<RetryRules {len(self.rules)} of the project, {self.limits}>"

    def terms(self, question: Question) -> Terms:
        """The rule that decides, and what it says."""
        base = built_in(question.cause)
        own = next((rule for rule in self.rules if rule.fits(question)), RetryRule(base.name))
        limits = self.limits
        is_outage = base.is_unreached and question.has_answered
        counts = _counts(own, question, Counts.HOLD if is_outage else base.counts)
        times = question.own_times if question.own_times is not None else own.times
        times = limits.times if times is None else times
        if counts is Counts.HOLD and own.times is None:
            times = self._holds(
                question, times, is_wait=base.counts is Counts.HOLD and base.holds_gate
            )
        delay_s = limits.delay_s if own.delay_s is None else own.delay_s
        max_s = limits.max_delay_s if own.max_delay_s is None else own.max_delay_s
        holds_gate = base.holds_gate or is_outage
        return Terms(
            rule=own.name,
            counts=counts,
            times=times,
            delay_s=delay_s,
            max_delay_s=max(delay_s, max_s),
            retry_after_cap_s=limits.retry_after_cap_s,
            holds_gate=holds_gate if own.holds_gate is None else own.holds_gate,
            may_repeat=bool(base.is_unapplied or own.repeats_unsafe),
        )

    def _holds(self, question: Question, times: int, *, is_wait: bool) -> int:
        """How often it is sent back to wait: as often as a server that names a time is good for, and
        else twice as often as faults are allowed, for nothing is wrong with the URL.
        """
        if not times:
            return 0
        if is_wait and _names_a_time(question, self.limits):
            return max(times, self.limits.holds)
        return max(times, min(2 * times, self.limits.holds))


def _names_a_time(question: Question, limits: Limits) -> bool:
    found = read_retry_after(
        question.retry_after, question.date, question.at_ms / 1000, limits.retry_after_cap_s
    )
    return found is not None and found.wait_s is not None


def _counts(own: RetryRule, question: Question, base: Counts) -> Counts:
    """Whether it is tried again at all: a rule of the project's, then its lists, then the table."""
    if own.retry is not None:
        wanted = own.retry
    elif question.is_listed is not None:
        wanted = question.is_listed
    else:
        return base
    if not wanted:
        return Counts.NOT
    return Counts.FAULT if base is Counts.NOT else base
