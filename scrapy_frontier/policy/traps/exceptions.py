"""`FRONTIER_TRAP_EXCEPTIONS`: places where named rules about traps do not hold::

    FRONTIER_TRAP_EXCEPTIONS = [
        {"place": "https://example.org/archive/", "rules": ["calendar"], "name": "our own archive"},
    ]

An exception is narrower than the rule that it overrides: it names the rules, and a host or a path. What a rule would
have held and an exception lets through is counted as a waiver in the account, by the name of the exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url
from scrapy_frontier.identity.origins import split_origin
from scrapy_frontier.identity.places import Place
from scrapy_frontier.policy.traps.family import RULES

_KEYS: Final = frozenset({"place", "rules", "name"})


@dataclass(frozen=True, slots=True)
class TrapException:
    """One entry of the setting."""

    name: str
    place: Place
    rules: frozenset[str]

    def covers(self, rule: str, url: str, origin: str) -> bool:
        """Whether `rule` does not hold for this URL."""
        return (
            rule in self.rules
            and self.place.covers_origin(split_origin(origin))
            and self.place.covers_path(comparison_url(url[len(origin) :]))
        )


@dataclass(frozen=True, slots=True)
class TrapExceptions:
    """All entries of the setting."""

    entries: tuple[TrapException, ...] = ()

    @classmethod
    def from_setting(cls, value: object) -> TrapExceptions:
        """Read the setting; raises `ConfigError` with the entry at fault and the remedy."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise ConfigError(
                f"must be a list of dictionaries with 'place' and 'rules', not {value!r}"
            )
        return cls(tuple(_read(entry) for entry in value))

    def find(self, rule: str, url: str, origin: str) -> str | None:
        """The name of the exception that lets this URL pass, None where there is none."""
        return next((entry.name for entry in self.entries if entry.covers(rule, url, origin)), None)


def _read(entry: Any) -> TrapException:
    if not isinstance(entry, Mapping) or not _KEYS.issuperset(entry) or "place" not in entry:
        raise ConfigError(
            f"{entry!r} must be a dictionary with 'place', 'rules' and perhaps 'name'"
        )
    place = Place.parse(entry["place"])
    if not place.host and not place.path:
        raise ConfigError(
            f"{entry['place']!r} is as wide as the rules themselves: name a host or a path, or switch the rules off"
            " with FRONTIER_TRAPS"
        )
    rules = entry.get("rules")
    if isinstance(rules, str) or not isinstance(rules, Sequence) or not rules:
        raise ConfigError(f"{entry!r}: 'rules' must name the rules that do not hold: {_known()}")
    unknown = [rule for rule in rules if rule not in RULES]
    if unknown:
        raise ConfigError(f"{entry!r}: there is no rule {unknown[0]!r}; known are {_known()}")
    return TrapException(str(entry.get("name") or entry["place"]), place, frozenset(rules))


def _known() -> str:
    return ", ".join(sorted(RULES))
