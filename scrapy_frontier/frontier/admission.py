"""Whether a URL may be fetched, when, and in which place: what is decided of a reference before it is written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import Resolved, host_of
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.budgets import NO_BUDGETS, Budgets, Claim
from scrapy_frontier.policy.priority import NO_PRIORITIES, Priorities
from scrapy_frontier.policy.scope import Allowed, DomainScope, Excluded, Scope
from scrapy_frontier.states import Event
from scrapy_frontier.store.messages import Reason, Verdict
from scrapy_frontier.store.on_reference import DEPTH_LIMIT
from scrapy_frontier.store.rows import RANKS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

    from scrapy_frontier.settings import FrontierSettings

logger = get_logger(__name__)

ADMITTED: Final = Verdict(Event.ENQUEUE, Reason("admission.scope"))


@dataclass(frozen=True, slots=True)
class Limits:
    """Scrapy's settings `DEPTH_LIMIT`, `URLLENGTH_LIMIT` and `CONCURRENT_REQUESTS`; 0 is no limit."""

    depth: int
    url_length: int
    in_flight: int

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Limits:
        """Read the limits; raises `ConfigError` for what is not a whole number of at least 0."""
        return cls(
            *(
                _limit(settings, name)
                for name in ("DEPTH_LIMIT", "URLLENGTH_LIMIT", "CONCURRENT_REQUESTS")
            )
        )


def _limit(settings: BaseSettings, name: str) -> int:
    try:
        value = settings.getint(name)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"{name} = {settings.get(name)!r}: must be a whole number") from exc
    if value < 0:
        raise ConfigError(f"{name} = {value}: must be at least 0, which is no limit")
    return value


class Admission:
    """Decides on references by the scope, the spider's domains, and the depth."""

    def __init__(
        self,
        scope: Scope,
        domains: Callable[[], DomainScope],
        limits: Limits,
        budgets: Budgets = NO_BUDGETS,
        priorities: Priorities = NO_PRIORITIES,
    ) -> None:
        self._scope = scope
        self._domains = domains
        self.limits = limits
        self.budgets = budgets
        self.priorities = priorities
        self.hold: Verdict | None = None
        """What becomes of every URL that would be admitted, in a run that sends no requests."""

    def verdict(
        self, request: Request, resolved: Resolved, depth: int = 0
    ) -> tuple[Verdict, str | None]:
        """Whether a URL is admitted, and the waiver that let it in where it would not have been."""
        verdict, waiver = self._by_scope(request, resolved, depth)
        if self.hold is not None and verdict.event is Event.ENQUEUE:
            return self.hold, waiver
        return verdict, waiver

    def _by_scope(
        self, request: Request, resolved: Resolved, depth: int
    ) -> tuple[Verdict, str | None]:
        decision = self._scope.decide(resolved.url, resolved.origin)
        if isinstance(decision, Excluded):
            return _exclusion(decision), None
        decision = self._domains().decide(host_of(resolved.origin))
        if isinstance(decision, Allowed):
            return self.by_depth(resolved, depth), None
        waiver = waiver_of(request.dont_filter, request.meta)
        if waiver is not None:
            return Verdict(Event.ENQUEUE, Reason(f"waiver.{waiver}")), waiver
        return _exclusion(decision), None

    def claims(self, resolved: Resolved) -> tuple[Claim, ...]:
        """The budgets that a URL counts in, were it admitted."""
        return self.budgets.claims(resolved.url, resolved.origin)

    def place_in_queue(
        self, request: Request, url: str, origin: str, depth: int
    ) -> tuple[int, str | None]:
        """The rank of a request, smaller first, and as JSON what it is made of besides the request's own priority."""
        points = self.priorities.points(request.priority, url, origin, depth)
        inputs = None if points.inputs is None else json.dumps(points.inputs, ensure_ascii=False)
        return max(-RANKS, min(RANKS, -points.total)), inputs

    def by_depth(self, resolved: Resolved, depth: int) -> Verdict:
        """Hold what is further from the seeds than a limit, until a shorter way to it is found."""
        limit = self.limits.depth
        if limit and depth > limit:
            return _hold(DEPTH_LIMIT, {"depth": depth, "limit": limit})
        breach = self.budgets.too_deep(resolved.url, resolved.origin, depth)
        return ADMITTED if breach is None else _hold(breach.rule, breach.inputs())


def budgets_of(settings: FrontierSettings) -> Budgets:
    """The budgets on admission that the settings name."""
    return Budgets(
        urls=settings.max_urls,
        origin_urls=settings.max_urls_per_origin,
        queries=settings.max_queries_per_path,
        places=settings.place_budgets,
    )


def _hold(rule: str, inputs: Mapping[str, Any]) -> Verdict:
    return Verdict(Event.DEFER, Reason(rule, json.dumps(inputs, ensure_ascii=False)))


def waiver_of(dont_filter: bool, meta: Mapping[Any, Any]) -> str | None:
    """What lets a request leave the spider's `allowed_domains`, as Scrapy's own offsite middleware has it."""
    if dont_filter:
        return "dont_filter"
    return "allow_offsite" if meta.get("allow_offsite") else None


def due_ms(meta: Mapping[str, Any], now_ms: int) -> int:
    """`meta["frontier_not_before"]` (a time) and `meta["frontier_delay"]` (seconds from now); the later counts."""
    if "frontier_not_before" not in meta and "frontier_delay" not in meta:
        return 0
    due_ms = now_ms + _milliseconds(meta, "frontier_delay")
    return max(due_ms, _milliseconds(meta, "frontier_not_before"))


def _milliseconds(meta: Mapping[str, Any], name: str) -> int:
    value = meta.get(name)
    if value is None:
        return 0
    if hasattr(value, "timestamp"):
        value = value.timestamp()
    elif hasattr(value, "total_seconds"):
        value = value.total_seconds()
    try:
        return max(0, int(float(value) * 1000))
    except (TypeError, ValueError, OverflowError):
        logger.error(
            "meta[%r] = %r is ignored: give seconds, or a datetime or timedelta",
            name,
            value,
            extra={"action": "bad_meta"},
        )
        return 0


def _exclusion(decision: Excluded) -> Verdict:
    inputs = json.dumps({"rule": decision.rule}, ensure_ascii=False)
    return Verdict(Event.EXCLUDE, Reason(decision.code, inputs))
