"""How much of its attention an origin is asked for: requests in flight, and the interval between
them.

The inputs are Scrapy's own settings, read with Scrapy's meaning
(scrapy/core/downloader/__init__.py): what a project has set for the downloader's slots is what the
frontier's gates keep. One thing differs on purpose: Scrapy counts per host name, the frontier per
origin (scheme, host and port), because that is what a server is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.errors import ConfigError

if TYPE_CHECKING:
    from random import Random

RANDOMIZED: Final = 0.5
"""The jitter that `RANDOMIZE_DOWNLOAD_DELAY = True` stands for: 50 % up or down."""

STEADY: Final = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """What one gate may let through.

    `limit`: requests in flight at any instant. `interval_s`: seconds that are kept between
    requests; from the end of one to the start of the next where the limit is 1, between dispatches
    where it is higher (design, invariant 7). `jitter`: the factors between which the interval is
    varied; a factor below 0 counts as 0.
    """

    limit: int
    interval_s: float = 0.0
    jitter: tuple[float, float] = STEADY

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit {self.limit!r}: at least 1 request must be allowed in flight")
        if not (math.isfinite(self.interval_s) and self.interval_s >= 0):
            raise ValueError(f"interval_s {self.interval_s!r}: must be a number of at least 0")
        low, high = self.jitter
        if not (math.isfinite(low) and math.isfinite(high) and low <= high and high > 0):
            raise ValueError(
                f"jitter {self.jitter!r}: must be (low, high) with low <= high, 0 < high"
            )

    @property
    def longest_interval_s(self) -> float:
        """The longest interval that can be drawn."""
        return self.interval_s * self.jitter[1]


def draw_interval(policy: OriginPolicy, random: Random) -> float:
    """One interval in seconds, drawn as Scrapy draws its delay: evenly within the jitter, never
    below 0.
    """
    low, high = policy.jitter
    if not policy.interval_s or low == high:
        return policy.longest_interval_s
    return max(0.0, policy.interval_s * random.uniform(low, high))


@dataclass(frozen=True, slots=True)
class Ranked:
    """The value of a Scrapy setting with the priority it was set at (`settings.getpriority(name)`,
    0 = default).
    """

    value: Any
    priority: int = 0


@dataclass(frozen=True, slots=True)
class PolitenessRules:
    """Finds the policy of a gate. Made by `from_values`."""

    default: OriginPolicy
    by_key: Mapping[str, OriginPolicy] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_values(
        cls,
        *,
        concurrent_requests_per_domain: Any = 8,
        concurrent_requests_per_ip: Any = 0,
        download_delay: Any = 0,
        download_delay_jitter: Ranked | None = None,
        randomize_download_delay: Ranked = Ranked(True),
        download_slots: Mapping[str, Mapping[str, Any]] | None = None,
        spider_download_delay: Any = None,
        spider_max_concurrent_requests: Any = None,
    ) -> PolitenessRules:
        """Read the rules from the values of Scrapy's settings of these names; raises `ConfigError`
        naming a wrong one.

        `download_delay_jitter` is None where Scrapy has no such setting (before 2.19). The
        deprecated `concurrent_requests_per_ip` replaces the limit per domain unless it is 0. The
        deprecated spider attributes `download_delay` and `max_concurrent_requests` (None: not
        there, or Scrapy has turned them into settings) replace the settings; an entry of
        `DOWNLOAD_SLOTS` goes before both.
        """
        limit = _limit("CONCURRENT_REQUESTS_PER_DOMAIN", concurrent_requests_per_domain)
        if concurrent_requests_per_ip:
            limit = _limit("CONCURRENT_REQUESTS_PER_IP", concurrent_requests_per_ip)
        if spider_max_concurrent_requests is not None:
            limit = _limit("spider.max_concurrent_requests", spider_max_concurrent_requests)
        interval_s = _seconds("DOWNLOAD_DELAY", download_delay)
        if spider_download_delay is not None:
            interval_s = _seconds("spider.download_delay", spider_download_delay)
        jitter = _default_jitter(download_delay_jitter, randomize_download_delay)
        default = OriginPolicy(limit, interval_s, _factors(jitter))
        by_key = {
            key: _of_slot(key, entry, default) for key, entry in (download_slots or {}).items()
        }
        return cls(default, MappingProxyType(by_key))

    def for_origin(self, gate_key: str, host: str = "") -> OriginPolicy:
        """The policy of the gate `gate_key` of an origin on `host`.

        `DOWNLOAD_SLOTS` is looked up by `gate_key` (an origin such as `https://example.com:8443`,
        or the name that a request's `download_slot` gave) and then by host name, as Scrapy does.
        Leave `host` empty for a `download_slot` of the user's: Scrapy does not look at the host
        then.
        """
        policy = self.by_key.get(gate_key) or self.by_key.get(host)
        return self.default if policy is None else policy


def _default_jitter(jitter: Ranked | None, randomize: Ranked) -> float:
    """Scrapy 2.19, `_default_jitter`: the deprecated switch counts only where it is set at a higher
    priority.
    """
    switched = RANDOMIZED if _switch("RANDOMIZE_DOWNLOAD_DELAY", randomize.value) else 0.0
    if jitter is None:
        return switched
    if randomize.priority > max(0, jitter.priority):
        return switched
    return _magnitude("DOWNLOAD_DELAY_JITTER", jitter.value)


def _of_slot(key: str, entry: Mapping[str, Any], default: OriginPolicy) -> OriginPolicy:
    name = f"DOWNLOAD_SLOTS[{key!r}]"
    if not isinstance(entry, Mapping):
        raise ConfigError(
            f"{name} = {entry!r}: must be a dict such as {{'concurrency': 1, 'delay': 2}}"
        )
    limit, interval_s, jitter = default.limit, default.interval_s, default.jitter
    if "concurrency" in entry:
        limit = _limit(f"{name}['concurrency']", entry["concurrency"])
    if "delay" in entry:
        interval_s = _seconds(f"{name}['delay']", entry["delay"])
    if "jitter" in entry:
        jitter = _factors(_magnitude(f"{name}['jitter']", entry["jitter"]))
    elif "randomize_delay" in entry:
        is_randomized = _switch(f"{name}['randomize_delay']", entry["randomize_delay"])
        jitter = _factors(RANDOMIZED if is_randomized else 0.0)
    return OriginPolicy(limit, interval_s, jitter)


def _factors(magnitude: float) -> tuple[float, float]:
    return 1 - magnitude, 1 + magnitude


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"{name} = {value!r}: must be a number") from exc
    if not math.isfinite(number):
        raise ConfigError(f"{name} = {value!r}: must be a finite number")
    return number


def _limit(name: str, value: Any) -> int:
    number = _number(name, value)
    if number != int(number) or number < 1:
        raise ConfigError(f"{name} = {value!r}: must be a whole number of at least 1")
    return int(number)


def _seconds(name: str, value: Any) -> float:
    number = _number(name, value)
    if number < 0:
        raise ConfigError(f"{name} = {value!r}: must be a number of seconds, at least 0")
    return number


def _magnitude(name: str, value: Any) -> float:
    number = _number(name, value)
    if number < 0:
        raise ConfigError(f"{name} = {value!r}: must be at least 0; 0.5 varies a delay by half")
    return number


def _switch(name: str, value: Any) -> bool:
    """As Scrapy's `getbool` reads a value."""
    text = str(value).strip().lower()
    if text in {"true", "1"}:
        return True
    if text in {"false", "0", "none", ""}:
        return False
    raise ConfigError(f"{name} = {value!r}: must be True or False")
