"""`FRONTIER_SCOPE`: which part of the web a crawl may touch.

The setting holds places to include and places to exclude (how a place is written: `Place`)::

    FRONTIER_SCOPE = {
        "include": ["https://docs.example.com/", "example.org/blog/", "*.example.net"],
        "exclude": {"drafts": "https://docs.example.com/drafts/", "search": "*/search"},
    }

Each of the two is one place, a list of places, or a dictionary of names to either; a rule without
a name is called by its place. Which rule decides on a URL:

1. Of the rules whose place covers the URL, each is overruled by any narrower one: one whose place
   lies wholly within the other's. So an include within an exclude is an exception to it, and an
   exclude within an include likewise, to any depth.
2. If an exclude is left, the URL is excluded: of two rules of which neither lies within the other,
   and of two equal ones, the exclude wins.
3. If only includes are left, it is allowed.
4. If no rule covers the URL, it is allowed only if the setting includes nothing at all.

Beside it stands `allowed_domains` of the spider, as Scrapy's own offsite middleware means it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url
from scrapy_frontier.identity.origins import host_of, split_origin
from scrapy_frontier.identity.places import Place
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve

SETTING: Final = "FRONTIER_SCOPE"

SCOPE_ORIGIN: Final = "scope.origin"
"""The origin of the URL is excluded as a whole, or not included."""
SCOPE_PATH: Final = "scope.path"
"""The path of the URL is excluded, or not among those included of its origin."""
SCOPE_ALLOWED_DOMAINS: Final = "scope.allowed_domains"
"""The host of the URL is none of the spider's `allowed_domains`, nor below one."""

_KEYS: Final = ("include", "exclude")
_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Allowed:
    """The URL may be fetched. `rule` names what allows it, `""` where nothing restricts it."""

    excludes: ClassVar[bool] = False

    rule: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Excluded:
    """The URL is out of scope: `code` is the rule's name in reports, `rule` the entry at work."""

    excludes: ClassVar[bool] = True

    code: str
    rule: str


Decision = Allowed | Excluded

UNRESTRICTED: Final = Allowed()


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """One include or exclude, and the decision that it brings."""

    place: Place
    decision: Decision

    @classmethod
    def include(cls, place: Place, name: str) -> ScopeRule:
        """Make the rule that allows what lies in `place`."""
        return cls(place, Allowed(name))

    @classmethod
    def exclude(cls, place: Place, name: str) -> ScopeRule:
        """Make the rule that excludes what lies in `place`."""
        return cls(place, Excluded(SCOPE_PATH if place.path else SCOPE_ORIGIN, name))

    @property
    def is_include(self) -> bool:
        """Whether the rule allows."""
        return isinstance(self.decision, Allowed)


class Scope:
    """The rules in force. `decide` is made for millions of URLs on some thousands of origins."""

    __slots__ = ("_by_origin", "_has_includes", "rules")

    def __init__(self, rules: Iterable[ScopeRule] = ()) -> None:
        self.rules = tuple(rules)
        self._has_includes = any(rule.is_include for rule in self.rules)
        self._by_origin: dict[str, _OriginScope] = {}

    @classmethod
    def from_setting(cls, value: object) -> Scope:
        """Read the setting; raise `ConfigError` with the entry at fault and the remedy."""
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{SETTING} must be a dictionary with 'include' and 'exclude', not {value!r}"
            )
        for key in value:
            if key not in _KEYS:
                known = " and ".join(map(repr, _KEYS))
                raise ConfigError(f"{SETTING} has an unknown key {key!r}; known are {known}")
        includes = [ScopeRule.include(*entry) for entry in _read(value, "include")]
        excludes = [ScopeRule.exclude(*entry) for entry in _read(value, "exclude")]
        return cls((*includes, *excludes))

    def decide(self, url: str, origin: str) -> Decision:
        """Decide on a request URL; `origin` is its origin (both as `resolve` gives them)."""
        if not self.rules:
            return UNRESTRICTED
        scope = self._by_origin.get(origin)
        if scope is None:
            scope = self._remember(origin)
        return scope.decide(url[len(origin) :])

    def _remember(self, origin: str) -> _OriginScope:
        """Gather the rules of an origin that is new here, or was forgotten."""
        parts = split_origin(origin)
        rules = tuple(rule for rule in self.rules if rule.place.covers_origin(parts))
        scope = _OriginScope(rules, self._decide_uncovered(rules))
        if len(self._by_origin) >= _REMEMBERED:
            self._by_origin.clear()
        self._by_origin[origin] = scope
        return scope

    def _decide_uncovered(self, rules: Iterable[ScopeRule]) -> Decision:
        """Decide on the URLs of an origin that none of its rules covers."""
        if not self._has_includes:
            return UNRESTRICTED
        is_origin_included = any(rule.is_include for rule in rules)
        return Excluded(SCOPE_PATH if is_origin_included else SCOPE_ORIGIN, "not included")


class _OriginScope:
    """What the rules say on one origin; each set of rules that cover a path is weighed once."""

    __slots__ = ("_chosen", "_rules")

    def __init__(self, rules: tuple[ScopeRule, ...], uncovered: Decision) -> None:
        self._rules = rules
        self._chosen: dict[tuple[int, ...], Decision] = {(): uncovered}

    def decide(self, path: str) -> Decision:
        if "%" in path:
            path = comparison_url(path)
        covering = tuple(
            [index for index, rule in enumerate(self._rules) if rule.place.covers_path(path)]
        )
        decision = self._chosen.get(covering)
        if decision is None:
            decision = _choose([self._rules[index] for index in covering])
            self._chosen[covering] = decision
        return decision


def _choose(rules: list[ScopeRule]) -> Decision:
    """Choose among rules that all cover the URL, as the head of this module says."""
    left = [rule for rule in rules if not any(_overrules(other, rule) for other in rules)]
    return next((rule.decision for rule in left if not rule.is_include), left[0].decision)


def _overrules(rule: ScopeRule, other: ScopeRule) -> bool:
    return rule.place.is_narrower_than(other.place)


def _read(setting: Mapping[object, object], key: str) -> Iterator[tuple[Place, str]]:
    """Read the places of one side, each with its name."""
    value = setting.get(key)
    where = f"{SETTING}[{key!r}]"
    if isinstance(value, Mapping):
        for name, texts in value.items():
            if not isinstance(name, str) or not name.strip():
                raise ConfigError(f"{where} has a rule named {name!r}: a name must be a text")
            yield from ((_read_place(text, where), name) for text in _read_texts(texts, where))
    else:
        yield from ((_read_place(text, where), text) for text in _read_texts(value, where))


def _read_texts(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where} must hold places or dictionaries of them, not {value!r}")
    return tuple(value)


def _read_place(text: str, where: str) -> Place:
    try:
        return Place.parse(text)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


class DomainScope:
    """The `allowed_domains` of a spider: a host is allowed if it is one of them, or below one.

    A spider that names none allows all. Domains are compared as hosts: in lower case and in their
    ASCII form, never as substrings. `ignored` are the entries that are no hosts (URLs, ports,
    paths); as in Scrapy they match nothing, and the caller may warn of them. Scrapy lets
    `dont_filter=True` and `meta["allow_offsite"]` pass all the same: that is the caller's to record.
    """

    __slots__ = ("_by_host", "_is_restricted", "domains", "ignored")

    def __init__(self, domains: Iterable[str | None] | None = None) -> None:
        listed = [domains] if isinstance(domains, str) else domains or ()
        entries = [entry for entry in listed if entry is not None]
        hosts = [(entry, _host(entry)) for entry in entries]
        self.domains = frozenset(host for _, host in hosts if host)
        self.ignored = tuple(entry for entry, host in hosts if not host)
        self._is_restricted = bool(entries)
        self._by_host: dict[str, Decision] = {}

    def decide(self, host: str) -> Decision:
        """Decide on the URLs of a host, which is spelled as in an origin."""
        if not self._is_restricted:
            return UNRESTRICTED
        decision = self._by_host.get(host)
        if decision is None:
            if len(self._by_host) >= _REMEMBERED:
                self._by_host.clear()
            decision = self._by_host[host] = self._look_up(host)
        return decision

    def _look_up(self, host: str) -> Decision:
        domain = host
        while domain not in self.domains:
            _, dot, domain = domain.partition(".")
            if not dot:
                return Excluded(SCOPE_ALLOWED_DOMAINS, host)
        return Allowed(domain)


def _host(entry: object) -> str:
    """Return the host that an entry names, or `""` where it is not a host alone."""
    if not isinstance(entry, str) or any(mark in entry for mark in "/\\?#@ \t\r\n"):
        return ""
    is_ipv6 = entry.count(":") > 1
    if ":" in entry and not is_ipv6:
        return ""
    resolved = resolve(f"http://[{entry.strip('[]')}]/" if is_ipv6 else f"http://{entry}/")
    return "" if isinstance(resolved, Rejection) else host_of(resolved.origin)
