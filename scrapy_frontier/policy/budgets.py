"""Budgets: how much of the web a run may take in before a brake is put on what comes further.

A budget on admission counts *accepted* identities, each once, in the order in which they were discovered; what comes
after its limit is held back (`deferred`), with the numbers that decided as the inputs of its reason.

=====================  ==========================================================  ============================
rule                   counts accepted URLs                                        setting
=====================  ==========================================================  ============================
``budget.urls``        of the run                                                  ``FRONTIER_MAX_URLS``
``budget.origin_urls`` of an origin                                                ``FRONTIER_MAX_URLS_PER_ORIGIN``
``budget.queries``     that differ in their query alone: of one path of an origin  ``FRONTIER_MAX_QUERIES_PER_PATH``
``budget.place_urls``  of a place                                                  ``FRONTIER_PLACE_BUDGETS``
``budget.place_queries`` as ``budget.queries``, inside a place                     ``FRONTIER_PLACE_BUDGETS``
``budget.place_depth`` none: the depth at which a URL was found                    ``FRONTIER_PLACE_BUDGETS``
=====================  ==========================================================  ============================

A budget on bytes (`budget.bytes`, `budget.origin_bytes`) is spent by responses, and one on pending work
(`budget.pending`) is given back as the queue empties: see `scrapy_frontier.frontier.spending` and
`scrapy_frontier.store.on_budget`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url
from scrapy_frontier.identity.origins import split_origin
from scrapy_frontier.identity.places import Place

URLS: Final = "budget.urls"
"""Rule: the run has accepted as many URLs as `FRONTIER_MAX_URLS`."""
ORIGIN_URLS: Final = "budget.origin_urls"
"""Rule: the origin has as many accepted URLs as `FRONTIER_MAX_URLS_PER_ORIGIN`."""
QUERIES: Final = "budget.queries"
"""Rule: the path has been accepted with as many queries as `FRONTIER_MAX_QUERIES_PER_PATH`."""
PLACE_URLS: Final = "budget.place_urls"
"""Rule: a place of `FRONTIER_PLACE_BUDGETS` has as many accepted URLs as it may have."""
PLACE_QUERIES: Final = "budget.place_queries"
"""Rule: a path in a place of `FRONTIER_PLACE_BUDGETS` has been accepted with as many queries as it may be."""
PLACE_DEPTH: Final = "budget.place_depth"
"""Rule: a URL in a place of `FRONTIER_PLACE_BUDGETS` is further from the seeds than it may be."""
BYTES: Final = "budget.bytes"
"""Rule: the responses of the run have brought as many bytes as `FRONTIER_MAX_BYTES`."""
ORIGIN_BYTES: Final = "budget.origin_bytes"
"""Rule: the responses of the origin have brought as many bytes as `FRONTIER_MAX_BYTES_PER_ORIGIN`."""
PENDING: Final = "budget.pending"
"""Rule: as many URLs wait in the queue as `FRONTIER_MAX_PENDING`; it is let in as room comes."""

PLACE_SETTING: Final = "FRONTIER_PLACE_BUDGETS"

SETTING_OF: Final[Mapping[str, str]] = {
    URLS: "FRONTIER_MAX_URLS",
    ORIGIN_URLS: "FRONTIER_MAX_URLS_PER_ORIGIN",
    QUERIES: "FRONTIER_MAX_QUERIES_PER_PATH",
    PLACE_URLS: PLACE_SETTING,
    PLACE_QUERIES: PLACE_SETTING,
    PLACE_DEPTH: PLACE_SETTING,
    ORIGIN_BYTES: "FRONTIER_MAX_BYTES_PER_ORIGIN",
}
"""The setting that, raised, lets go on resume what a budget holds. `PENDING` lets go by itself."""

_PLACE_KEYS: Final = ("place", "urls", "depth", "queries")


class Claim(NamedTuple):
    """One budget that a URL counts in, were it accepted: at most `limit` may, of those that share `pattern`."""

    rule: str
    pattern: str
    limit: int


@dataclass(frozen=True, slots=True)
class Breach:
    """A budget that is spent; the inputs tell which, and that it was."""

    rule: str
    pattern: str
    limit: int
    used: int

    def inputs(self) -> dict[str, Any]:
        """What the ledger keeps, enough to decide again."""
        return {"pattern": self.pattern, "limit": self.limit, "used": self.used}


def first_breach(claims: tuple[Claim, ...], used: Mapping[tuple[str, str], int]) -> Breach | None:
    """The first budget among the claims in which nothing is left; `used` by (rule, pattern)."""
    for claim in claims:
        spent = used.get((claim.rule, claim.pattern), 0)
        if spent >= claim.limit:
            return Breach(claim.rule, claim.pattern, claim.limit, spent)
    return None


@dataclass(frozen=True, slots=True)
class PlaceBudget:
    """What may be taken from one place; None is no limit."""

    name: str
    place: Place
    urls: int | None = None
    depth: int | None = None
    queries: int | None = None


class PlaceBudgets:
    """The setting `FRONTIER_PLACE_BUDGETS`: for each name a place and its limits."""

    __slots__ = ("_by_origin", "budgets")

    def __init__(self, budgets: tuple[PlaceBudget, ...] = ()) -> None:
        self.budgets = budgets
        self._by_origin: dict[str, tuple[PlaceBudget, ...]] = {}

    @classmethod
    def from_setting(cls, value: object) -> PlaceBudgets:
        """Read the setting; raise `ConfigError` with the entry at fault and the remedy."""
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{PLACE_SETTING} must be a dictionary of names to budgets, not {value!r}"
            )
        return cls(tuple(_read_place(name, entry) for name, entry in value.items()))

    def covering(self, url: str, origin: str) -> Iterator[PlaceBudget]:
        """The budgets of all places that a request URL lies in."""
        if not self.budgets:
            return
        known = self._by_origin.get(origin)
        if known is None:
            parts = split_origin(origin)
            known = tuple(b for b in self.budgets if b.place.covers_origin(parts))
            if len(self._by_origin) >= 20_000:
                self._by_origin.clear()
            self._by_origin[origin] = known
        path = url[len(origin) :]
        if known and "%" in path:
            path = comparison_url(path)
        yield from (budget for budget in known if budget.place.covers_path(path))


NO_PLACES: Final = PlaceBudgets()


def _read_place(name: object, entry: object) -> PlaceBudget:
    where = f"{PLACE_SETTING}[{name!r}]"
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{PLACE_SETTING} has a budget named {name!r}: a name must be a text")
    if not isinstance(entry, Mapping) or "place" not in entry:
        raise ConfigError(
            f"{where} = {entry!r}: must be a dictionary with a 'place' and one or more of 'urls',"
            " 'depth', 'queries'"
        )
    for key in entry:
        if key not in _PLACE_KEYS:
            raise ConfigError(
                f"{where} has an unknown key {key!r}; known are {', '.join(_PLACE_KEYS)}"
            )
    try:
        place = Place.parse(entry["place"])
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    limits = {key: _limit(where, key, entry[key]) for key in _PLACE_KEYS[1:] if key in entry}
    if not limits:
        raise ConfigError(f"{where} limits nothing: give it 'urls', 'depth' or 'queries'")
    return PlaceBudget(name, place, **limits)


def _limit(where: str, key: str, value: object) -> int:
    least = 0 if key == "depth" else 1
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(
            f"{where}[{key!r}] = {value!r}: must be a whole number of at least {least}"
        )
    return value


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets on admission that are in force; None is no limit."""

    urls: int | None = None
    origin_urls: int | None = None
    queries: int | None = None
    places: PlaceBudgets = NO_PLACES

    @property
    def is_idle(self) -> bool:
        """Whether nothing is limited."""
        limits = (self.urls, self.origin_urls, self.queries)
        return not self.places.budgets and all(limit is None for limit in limits)

    def claims(self, url: str, origin: str) -> tuple[Claim, ...]:
        """The budgets that a URL counts in, the narrowest ones first, so that a breach names what is at work."""
        if self.is_idle:
            return ()
        path, mark, _ = url.partition("?")
        path = comparison_url(path) if "%" in path else path
        return tuple(self._claims(url, origin, path, has_query=bool(mark)))

    def _claims(self, url: str, origin: str, path: str, *, has_query: bool) -> Iterator[Claim]:
        covering = tuple(self.places.covering(url, origin))
        if has_query:
            for budget in covering:
                if budget.queries is not None:
                    yield Claim(PLACE_QUERIES, f"{path}?*", budget.queries)
            if self.queries is not None:
                yield Claim(QUERIES, f"{path}?*", self.queries)
        for budget in covering:
            if budget.urls is not None:
                yield Claim(PLACE_URLS, budget.name, budget.urls)
        if self.origin_urls is not None:
            yield Claim(ORIGIN_URLS, origin, self.origin_urls)
        if self.urls is not None:
            yield Claim(URLS, "", self.urls)

    def too_deep(self, url: str, origin: str, depth: int) -> Breach | None:
        """The first place that a URL lies in and whose depth it exceeds."""
        for budget in self.places.covering(url, origin):
            if budget.depth is not None and depth > budget.depth:
                return Breach(PLACE_DEPTH, budget.name, budget.depth, depth)
        return None


NO_BUDGETS: Final = Budgets()
