"""Where health meets politeness: the bounds that a gate's policy sets, and the policy that comes of
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.health.records import Bounds

if TYPE_CHECKING:
    from scrapy_frontier.policy.health.records import HealthState
    from scrapy_frontier.policy.politeness import OriginPolicy


@dataclass(frozen=True, slots=True)
class HealthRules:
    """What a crawl brings along. `start_s`: the interval that an unknown origin is begun with; the
    others as in `Bounds`.
    """

    ceiling_s: float = 60.0
    close_after_s: float | None = 180.0
    start_s: float = 0.0
    target: float | None = None

    @classmethod
    def from_autothrottle(
        cls,
        close_after_s: float | None,
        *,
        start_delay: Any,
        max_delay: Any,
        target_concurrency: Any,
    ) -> HealthRules:
        """The rules that Scrapy's `AUTOTHROTTLE_*` settings ask for; raises `ConfigError` naming a
        wrong one.
        """
        return cls(
            ceiling_s=_number("AUTOTHROTTLE_MAX_DELAY", max_delay),
            close_after_s=close_after_s,
            start_s=_number("AUTOTHROTTLE_START_DELAY", start_delay),
            target=_number(
                "AUTOTHROTTLE_TARGET_CONCURRENCY", target_concurrency, is_zero_allowed=False
            ),
        )


def bounds_of(policy: OriginPolicy, rules: HealthRules) -> Bounds:
    """What health may choose from at a gate that keeps this policy."""
    ceiling_s = max(rules.ceiling_s, policy.interval_s)
    return Bounds(policy.limit, policy.interval_s, ceiling_s, rules.target, rules.close_after_s)


def adapted(policy: OriginPolicy, state: HealthState) -> OriginPolicy:
    """The policy that a gate keeps while its origin is in this state: never more than `policy`."""
    limit = min(policy.limit, state.concurrency)
    interval_s = max(policy.interval_s, state.interval_s)
    if (limit, interval_s) == (policy.limit, policy.interval_s):
        return policy
    return replace(policy, limit=limit, interval_s=interval_s)


def _number(name: str, value: Any, *, is_zero_allowed: bool = True) -> float:
    least = "at least 0" if is_zero_allowed else "above 0"
    try:
        number = float(value)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"{name} = {value!r}: must be a number {least}") from exc
    if not (0 <= number < float("inf")) or (number == 0 and not is_zero_allowed):
        raise ConfigError(f"{name} = {value!r}: must be a number {least}")
    return number
