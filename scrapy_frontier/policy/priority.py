"""Priority: in which place of its origin's queue a URL stands.

The points of a URL are those of its request (`Request.priority`, Scrapy's meaning), and on top of them

=============  ================================================  ==================================
part           points                                            setting
=============  ================================================  ==================================
``rule``       of the narrowest place that the URL lies in       ``FRONTIER_PRIORITY_RULES``
``depth``      for each step away from the seeds                 ``FRONTIER_PRIORITY_WEIGHTS``
``links``      for each doubling of the references to it         ``FRONTIER_PRIORITY_WEIGHTS``
``freshness``  for each doubling of the days since an earlier    ``FRONTIER_PRIORITY_WEIGHTS``
               run fetched it; one that no run knows stands
               before them all
=============  ================================================  ==================================

Without any of them URLs of one priority go in the order in which they were found, which is breadth-first. The rank is
the points turned round, so that the smaller goes first; ranks are grouped into bands (`scheduling.selector`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url
from scrapy_frontier.identity.origins import split_origin
from scrapy_frontier.identity.places import Place

RULES_SETTING: Final = "FRONTIER_PRIORITY_RULES"
WEIGHTS_SETTING: Final = "FRONTIER_PRIORITY_WEIGHTS"

DAY_MS: Final = 86_400_000

NEVER_FETCHED_DAYS: Final = 1023
"""The days that a URL counts which no earlier run has fetched: ten doublings."""

REMEMBERED: Final = 20_000


class Points(NamedTuple):
    """The points of a URL, and what they are made of where the request's own are not all."""

    total: int
    inputs: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PriorityRule:
    """What lies in a place has so many points more, or fewer."""

    name: str
    place: Place
    points: int


class PriorityRules:
    """The setting `FRONTIER_PRIORITY_RULES`: for each name a place and its points; the narrowest place decides."""

    __slots__ = ("_by_origin", "rules")

    def __init__(self, rules: tuple[PriorityRule, ...] = ()) -> None:
        self.rules = rules
        self._by_origin: dict[str, tuple[PriorityRule, ...]] = {}

    @classmethod
    def from_setting(cls, value: object) -> PriorityRules:
        """Read the setting; raise `ConfigError` with the entry at fault and the remedy."""
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{RULES_SETTING} must be a dictionary of names to rules, not {value!r}"
            )
        return cls(tuple(_read_rule(name, entry) for name, entry in value.items()))

    def find(self, url: str, origin: str) -> PriorityRule | None:
        """The rule of the narrowest place that a request URL lies in; of equal ones the first."""
        known = self._by_origin.get(origin)
        if known is None:
            parts = split_origin(origin)
            known = tuple(rule for rule in self.rules if rule.place.covers_origin(parts))
            if len(self._by_origin) >= REMEMBERED:
                self._by_origin.clear()
            self._by_origin[origin] = known
        if not known:
            return None
        path = url[len(origin) :]
        path = comparison_url(path) if "%" in path else path
        best: PriorityRule | None = None
        for rule in known:
            if rule.place.covers_path(path) and (
                best is None or rule.place.is_narrower_than(best.place)
            ):
                best = rule
        return best


NO_RULES: Final = PriorityRules()


def _read_rule(name: object, entry: object) -> PriorityRule:
    where = f"{RULES_SETTING}[{name!r}]"
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{RULES_SETTING} has a rule named {name!r}: a name must be a text")
    if not isinstance(entry, Mapping) or set(entry) != {"place", "points"}:
        raise ConfigError(f"{where} = {entry!r}: must be a dictionary with 'place' and 'points'")
    points = entry["points"]
    if isinstance(points, bool) or not isinstance(points, int):
        raise ConfigError(f"{where}['points'] = {points!r}: must be a whole number")
    try:
        return PriorityRule(name, Place.parse(entry["place"]), points)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


@dataclass(frozen=True, slots=True)
class Weights:
    """The setting `FRONTIER_PRIORITY_WEIGHTS`; 0 leaves a part out."""

    depth: int = 0
    links: int = 0
    freshness: int = 0

    @classmethod
    def from_setting(cls, value: object) -> Weights:
        """Read the setting; raise `ConfigError` with the entry at fault and the remedy."""
        if not isinstance(value, Mapping):
            raise ConfigError(f"{WEIGHTS_SETTING} must be a dictionary, not {value!r}")
        for key, weight in value.items():
            if key not in cls.__slots__:
                raise ConfigError(
                    f"{WEIGHTS_SETTING} has an unknown key {key!r}; known are"
                    f" {', '.join(cls.__slots__)}"
                )
            if isinstance(weight, bool) or not isinstance(weight, int):
                raise ConfigError(
                    f"{WEIGHTS_SETTING}[{key!r}] = {weight!r}: must be a whole number"
                )
            if key == "links" and weight < 0:
                raise ConfigError(f"{WEIGHTS_SETTING}['links'] = {weight}: must be at least 0")
        return cls(**value)


NO_WEIGHTS: Final = Weights()


@dataclass(frozen=True, slots=True)
class Priorities:
    """The rules and weights in force."""

    rules: PriorityRules = NO_RULES
    weights: Weights = NO_WEIGHTS

    def points(self, priority: int, url: str, origin: str, depth: int) -> Points:
        """The points of a URL when it is discovered, by its request's own priority."""
        rule = self.rules.find(url, origin) if self.rules.rules else None
        by_depth = self.weights.depth * depth
        if rule is None and not by_depth:
            return Points(priority, None)
        inputs: dict[str, Any] = {"priority": priority}
        total = priority
        if rule is not None:
            inputs |= {"rule": rule.name, "points": rule.points}
            total += rule.points
        if by_depth:
            inputs |= {"depth": depth, "depth_weight": self.weights.depth}
            total += by_depth
        return Points(total, inputs)


NO_PRIORITIES: Final = Priorities()


def freshness_points(weight: int, fetched_ms: int | None, now_ms: int) -> int:
    """The points for the time since an earlier run fetched a URL; None: no earlier run has."""
    days = NEVER_FETCHED_DAYS
    if fetched_ms is not None:
        days = min(NEVER_FETCHED_DAYS, max(0, now_ms - fetched_ms) // DAY_MS)
    return weight * int(math.log2(days + 1))


def is_promotion(references: int) -> bool:
    """Whether this reference doubles the number of those known before."""
    return references > 1 and references & (references - 1) == 0
