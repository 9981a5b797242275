"""`FRONTIER_PARAMETER_RULES`: what only the project can know of its query parameters.

A rule acts on the fetch key only, never on the request URL: what is sent is what was found. It
takes whole `name[=value]` pairs and touches no other byte. Without rules nothing is left out and
nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url
from scrapy_frontier.identity.origins import origin_of, split_origin
from scrapy_frontier.identity.places import Place
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve
from scrapy_frontier.identity.tracking import (
    CONTENT_PARAMETERS,
    ORDER_SENSITIVE_PARAMETERS,
    TRACKING_PARAMETERS,
)

SETTING: Final = "FRONTIER_PARAMETER_RULES"
SHIPPED_RULE: Final = "tracking"
"""The entry of the setting that stands for the shipped list, `TRACKING_PARAMETERS`, on every host.
"""

_KEYS: Final = ("name", "parameters", "scope", "treatment", "examples")


class Treatment(str, Enum):
    """What a rule does with its parameters in the fetch key."""

    TRACKING = "tracking"
    """They are left out."""
    ORDER_INSENSITIVE = "order_insensitive"
    """They stand at the end, sorted, wherever they stood."""


class ParameterClass(str, Enum):
    """What a parameter is for, as far as its name tells."""

    TRACKING_ONLY = "tracking-only"
    ORDER_SENSITIVE = "order-sensitive"
    CONTENT_BEARING = "content-bearing"
    UNKNOWN = "unknown"


class NameList:
    """Parameter names, exact or as prefixes (`utm_*`), compared with regard to case."""

    __slots__ = ("_exact", "_prefixes")

    def __init__(self, names: Iterable[str]) -> None:
        names = tuple(names)
        self._exact = frozenset(name for name in names if not name.endswith("*"))
        self._prefixes = tuple(name[:-1] for name in names if name.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return name in self._exact or name.startswith(self._prefixes)


_CLASSES = (
    (NameList(TRACKING_PARAMETERS), ParameterClass.TRACKING_ONLY),
    (NameList(ORDER_SENSITIVE_PARAMETERS), ParameterClass.ORDER_SENSITIVE),
    (NameList(CONTENT_PARAMETERS), ParameterClass.CONTENT_BEARING),
)


def classify(name: str) -> ParameterClass:
    """Say what a query parameter is for, by its name alone; it changes nothing."""
    for names, parameter_class in _CLASSES:
        if name in names:
            return parameter_class
    # PHP's and Rails' arrays: the place in the query is the place in the array.
    return ParameterClass.ORDER_SENSITIVE if name.endswith("[]") else ParameterClass.UNKNOWN


@dataclass(frozen=True, slots=True)
class ParameterRule:
    """One named rule: these parameters, there, are treated so.

    `places` is empty where the rule holds everywhere. `examples` are URLs that the rule must touch,
    or pairs of URLs that it must make one; they are tried when the setting is read.
    """

    name: str
    parameters: tuple[str, ...]
    places: tuple[Place, ...]
    treatment: Treatment
    examples: tuple[str | tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """A comparison URL after the rules, and the names of the rules that changed it."""

    url: str
    touched: tuple[str, ...] = ()


class ParameterRules:
    """The rules in force, applied in the order of the setting."""

    __slots__ = ("_names", "rules")

    def __init__(self, rules: Iterable[ParameterRule] = ()) -> None:
        self.rules = tuple(rules)
        self._names = tuple(NameList(rule.parameters) for rule in self.rules)

    @classmethod
    def from_setting(cls, value: object) -> ParameterRules:
        """Read the setting, a list of `"tracking"` and dictionaries; raise `ConfigError`."""
        if value is None:
            return cls()
        if isinstance(value, str | Mapping):
            value = [value]
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{SETTING} must be a list of rules, not {value!r}")
        rules = [_read_rule(entry, position) for position, entry in enumerate(value)]
        names = [rule.name for rule in rules]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"{SETTING} has two rules named {name!r}: give each its own name")
        for rule in rules:
            _try_examples(rule)
        return cls(rules)

    def apply(self, url: str) -> Applied:
        """Apply the rules to a comparison URL. Idempotent."""
        if not self.rules or "?" not in url:
            return Applied(url)
        touched = []
        treated = url
        for rule, names in zip(self.rules, self._names, strict=True):
            changed = _treat(treated, names, rule.treatment)
            if changed != treated and _holds_at(rule, treated):
                touched.append(rule.name)
                treated = changed
        # Two rules that sort move past each other and back; that is no touch.
        return Applied(treated, tuple(touched) if treated != url else ())

    def classify(self, name: str, request_url: str) -> ParameterClass:
        """Say what a parameter of this URL is for: by the rules first, then by its name alone."""
        for rule, names in zip(self.rules, self._names, strict=True):
            is_tracking = rule.treatment is Treatment.TRACKING
            if is_tracking and name in names and _holds_at(rule, comparison_url(request_url)):
                return ParameterClass.TRACKING_ONLY
        return classify(name)


def _treat(url: str, names: NameList, treatment: Treatment) -> str:
    before, _, query = url.partition("?")
    pairs = query.split("&")
    concerned = [pair for pair in pairs if pair.partition("=")[0] in names]
    if not concerned:
        return url
    kept = [pair for pair in pairs if pair.partition("=")[0] not in names]
    if treatment is Treatment.ORDER_INSENSITIVE:
        kept += sorted(concerned)
    query = "&".join(kept)
    return f"{before}?{query}" if query else before


def _holds_at(rule: ParameterRule, url: str) -> bool:
    if not rule.places:
        return True
    origin = origin_of(url)
    path = url[len(origin) :]
    parts = split_origin(origin)
    return any(place.covers_origin(parts) and place.covers_path(path) for place in rule.places)


def _read_rule(entry: object, position: int) -> ParameterRule:
    if entry == SHIPPED_RULE:
        return ParameterRule(SHIPPED_RULE, TRACKING_PARAMETERS, (), Treatment.TRACKING)
    where = f"{SETTING}[{position}]"
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be {SHIPPED_RULE!r} or a dictionary, not {entry!r}")
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise ConfigError(
            f"{where} has an unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}"
        )
    parameters = _read_texts(entry.get("parameters"), f"{where}['parameters']")
    if not parameters:
        raise ConfigError(f"{where} names no parameters: list them under 'parameters'")
    return ParameterRule(
        name=_read_name(entry.get("name"), where, parameters),
        parameters=tuple(_read_parameter(name, where) for name in parameters),
        places=_read_places(entry.get("scope"), where),
        treatment=_read_treatment(entry.get("treatment"), where),
        examples=_read_examples(entry.get("examples"), where),
    )


def _read_parameter(name: str, where: str) -> str:
    """Return a parameter's name as it stands in comparison URLs."""
    resolved = resolve(f"http://host/?{name}")
    if not name.strip("* ") or "*" in name[:-1] or isinstance(resolved, Rejection):
        raise ConfigError(f"{where}: {name!r} is no parameter; write its name, or a prefix and '*'")
    if any(mark in name for mark in "&=#"):
        raise ConfigError(f"{where}: {name!r} is more than a name; write the name alone")
    return comparison_url(resolved.url).partition("?")[2]


def _read_texts(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where} must be a text or a list of texts, not {value!r}")
    for text in value:
        if not isinstance(text, str):
            raise ConfigError(f"{where} holds {text!r}, which is no text")
    return tuple(value)


def _read_name(value: object, where: str, parameters: tuple[str, ...]) -> str:
    if value is None:
        return ",".join(parameters)
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where}['name'] must be a text, not {value!r}")
    return value


def _read_places(value: object, where: str) -> tuple[Place, ...]:
    texts = _read_texts(value, f"{where}['scope']")
    try:
        return tuple(Place.parse(text) for text in texts)
    except ConfigError as exc:
        raise ConfigError(f"{where}['scope']: {exc}") from exc


def _read_treatment(value: object, where: str) -> Treatment:
    try:
        return Treatment(value)
    except ValueError as exc:
        known = " or ".join(repr(treatment.value) for treatment in Treatment)
        raise ConfigError(f"{where}['treatment'] is {value!r}: write {known}") from exc


def _read_examples(value: object, where: str) -> tuple[str | tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise ConfigError(
            f"{where}['examples'] must be a list of URLs or of pairs of URLs, not {value!r}"
        )
    return tuple(_read_example(example, where) for example in value)


def _read_example(value: object, where: str) -> str | tuple[str, str]:
    match value:
        case str():
            return value
        case [str() as one, str() as other]:
            return one, other
    raise ConfigError(f"{where}: the example {value!r} is neither a URL nor a pair of URLs")


def _try_examples(rule: ParameterRule) -> None:
    """Check that a rule does what its examples say; a slip would go unnoticed for weeks."""
    rules = ParameterRules([rule])
    for example in rule.examples:
        applied = [rules.apply(_example_url(url, rule)) for url in _urls_of(example)]
        if len({a.url for a in applied}) > 1:
            raise ConfigError(f"{SETTING}: the rule {rule.name!r} does not make one of {example!r}")
        if not any(a.touched for a in applied):
            raise ConfigError(
                f"{SETTING}: the rule {rule.name!r} does not touch its example {example!r}"
            )


def _urls_of(example: str | tuple[str, str]) -> tuple[str, ...]:
    return (example,) if isinstance(example, str) else example


def _example_url(url: str, rule: ParameterRule) -> str:
    resolved = resolve(url)
    if isinstance(resolved, Rejection):
        raise ConfigError(
            f"{SETTING}: the example {url!r} of {rule.name!r} is no URL: {resolved.rule}"
        )
    return comparison_url(resolved.url)
