"""Traps: which URLs are deferred, by what their families have brought so far.

Pure: it is told of references and of fetched pages, in the order of the run, and says what it makes of them. The same
calls in the same order give the same decisions, which is how a resumed run comes to know what it knew.

Two kinds of suspicion, each with its own evidence:

- A *family* grows: its last fetches in a row (the sample of its rule) brought neither new text nor a link to anything
  but more of the same. The rest of the family is deferred.
- A URL is a *variant* of a known one: its parameters in another order, another session, a directory more, a mirrored
  tree. Variants in a row have proved to be copies. Each further variant is deferred, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from scrapy_frontier.policy.recent import Recent
from scrapy_frontier.policy.traps import family, signature
from scrapy_frontier.policy.traps.content import Content
from scrapy_frontier.policy.traps.family import RULE_OF_TRAIT, RULES, Brake, Family
from scrapy_frontier.policy.traps.mirrors import Mirrors
from scrapy_frontier.policy.traps.signature import Signature, signature_of

YEARS_AHEAD: Final = 3
"""Years from now beyond which a date in a URL is out of any sensible range."""
FIRST_YEAR: Final = 1400
"""Year before which it is likewise."""

NOVELTY: Final[Mapping[str, float]] = {
    family.CALENDAR: 0.1,
    family.SEARCH: 0.5,
    family.SORT: 0.1,
    family.PAGINATION: 0.1,
    family.FACETS: 0.1,
}
"""By rule of the family, the share of a page's phrases up to which new ones count for nothing: the results of a search
repeat what others searched for. A family that is not here is judged by its whole text."""

KNOWN_LIMIT: Final = 131_072
FAMILIES_LIMIT: Final = 65_536
SUSPECTS_LIMIT: Final = 65_536
FACET_SETS: Final = 3
"""Sets of parameters on one path, one of them holding two others, from which on they are facets."""


class Suspicion(NamedTuple):
    """A URL that may be a copy: the family of suspects it belongs to, and the known URL it may be a copy of."""

    rule: str
    family: Family
    like: str


class Referral(NamedTuple):
    """What is made of the first reference to a URL.

    `shape` names its family. `is_outside`: it leads to something else than more of the same. `brake`: why it is
    deferred, if it is.
    """

    shape: str
    is_outside: bool
    brake: Brake | None


class Traps:
    """The families of one run. `year` is the year in which the run goes on."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._known: Recent[int, int] = Recent(KNOWN_LIMIT)
        self._families: Recent[tuple[str, str], Family] = Recent(FAMILIES_LIMIT)
        self._kept: dict[tuple[str, str], Family] = {}
        """Families with a brake, and those that an operator has released: never forgotten."""
        self._suspects: Recent[str, tuple[Suspicion, ...]] = Recent(SUSPECTS_LIMIT)
        self._facets: Recent[tuple[str, str], set[frozenset[str]]] = Recent(8192)
        self._copies: Recent[tuple[str, int], int] = Recent(KNOWN_LIMIT)
        self._originals: Recent[int, str] = Recent(KNOWN_LIMIT)
        """By URL that has proved to be a copy: the one that it is a copy of."""
        self._mirrors = Mirrors()

    @property
    def braked(self) -> Iterator[Family]:
        """The families that a brake holds."""
        return (known for known in self._kept.values() if known.brake is not None)

    def refer(self, url: str, origin: str, source: Content | None = None) -> Referral:
        """A first reference to `url`, from the page whose content is `source` (None: a seed, or no page)."""
        found = signature_of(url[len(origin) :])
        known = self._family_of(origin, found)
        known.discovered += 1
        is_inside = source is not None and source.family == known.key
        known.self_fed += is_inside
        suspicions = self._suspect(url, origin, found, source)
        self._known.put(hash((origin, found.plain)), hash(url))
        if "?" in found.plain:
            page = hash((origin, found.directories, found.last))
            self._known.put(page, self._known.get(page) or hash(url))
        brake = self._brake(url, origin, found, known, suspicions)
        is_more = bool(suspicions) or is_inside or known.rule != family.GROWTH
        return Referral(known.shape, not is_more and brake is None, brake)

    def hold(self, url: str, origin: str) -> Brake | None:
        """Why a URL that was admitted is not to be fetched now, by what has been learned since."""
        found = signature_of(url[len(origin) :])
        known = self._family_of(origin, found)
        return self._brake(url, origin, found, known, self._suspects.get(url) or ())

    def fetched(self, url: str, origin: str, content: Content, outside: int) -> list[Family]:
        """A page was fetched and processed; `outside` are the new URLs it brought that are not more of the same.

        Returns the families that this puts a brake on.
        """
        found = signature_of(url[len(origin) :])
        suspicions = self._suspects.get(url) or ()
        changed = self._mirrors.note(url, origin, content, bool(suspicions))
        if content.is_copy:
            changed += self._note_copy(origin, content.digest)
            self._originals.put(hash((origin, found.plain)), _plain_of(content.like))
        if not self._note_suspicions(suspicions, content, outside, changed):
            noted = self._family_of(origin, found)
            is_dry = not outside and content.is_dry(NOVELTY.get(noted.rule))
            if noted.note(is_dry=is_dry, date=found.date) is not None:
                changed.append(noted)
        for one in changed:
            self._kept[one.key] = one
        return changed

    def _note_copy(self, origin: str, digest: int) -> list[Family]:
        """The same text has come again. Returns the links of such pages, in a list, where this puts a brake on them."""
        copies = (self._copies.get((origin, digest)) or 1) + 1
        self._copies.put((origin, digest), copies)
        if copies < RULES[family.SOFT_404]:
            return []
        text = _written(digest)
        links = self._family(origin, _links_of(text), family.SOFT_404)
        if links.brake is not None or links.is_released or not links.discovered:
            return []
        links.brake = Brake(links.rule, links.shape, {"text": text, "copies": copies})
        return [links]

    def _note_suspicions(
        self,
        suspicions: tuple[Suspicion, ...],
        content: Content,
        outside: int,
        changed: list[Family],
    ) -> bool:
        """Count a page that was suspected to be a copy. Whether it is one: then it says nothing of its own family."""
        is_copy = False
        for suspicion in suspicions:
            if suspicion.rule == family.SOFT_404:
                continue
            original = self._originals.get(hash((suspicion.family.origin, suspicion.like)))
            is_confirmed = _is_confirmed(suspicion, content, outside, original)
            if suspicion.family.note(is_dry=is_confirmed) is not None:
                changed.append(suspicion.family)
            is_copy = is_copy or is_confirmed
        return is_copy

    def family_of(self, url: str, origin: str) -> tuple[str, str]:
        """The key of the family that a URL belongs to."""
        return self._family_of(origin, signature_of(url[len(origin) :])).key

    def restore(self, origin: str, shape: str, rule: str, inputs: dict[str, Any]) -> None:
        """A brake of an earlier process is in force again."""
        known = self._family(origin, shape, rule)
        known.rule, known.brake = rule, Brake(rule, shape, inputs)
        self._kept[known.key] = known
        if rule == family.MIRROR:
            self._mirrors.restore(known)

    def release(self, origin: str, shape: str) -> None:
        """An operator has let a family go: no brake is put on it in this run any more."""
        known = self._family(origin, shape, family.GROWTH)
        known.brake, known.is_released = None, True
        self._kept[known.key] = known
        self._mirrors.release(known)

    def _family(self, origin: str, shape: str, rule: str) -> Family:
        key = (origin, shape)
        known = self._families.get(key) or self._kept.get(key)
        if known is None:
            known = Family(origin, shape, rule)
            self._families.put(key, known)
        return known

    def _family_of(self, origin: str, found: Signature) -> Family:
        """The family of a URL: that of its shape, or, where its parameters are facets, that of its path."""
        may_be_facets = found.parameters and found.trait in (signature.QUERY, signature.SORT)
        if may_be_facets and self._is_faceted(origin, found):
            return self._family(origin, f"{found.path_shape}?*", family.FACETS)
        return self._family(origin, found.shape, RULE_OF_TRAIT[found.trait])

    def _is_faceted(self, origin: str, found: Signature) -> bool:
        key = (origin, found.path_shape)
        sets = self._facets.get(key)
        if sets is None:
            sets = set()
            self._facets.put(key, sets)
        if found.parameters not in sets and len(sets) < 64:
            sets.add(found.parameters)
        return len(sets) >= FACET_SETS and any(
            sum(small < large for small in sets) >= FACET_SETS - 1 for large in sets
        )

    def _suspect(
        self, url: str, origin: str, found: Signature, source: Content | None
    ) -> tuple[Suspicion, ...]:
        """Why a new URL may bring nothing but copies; remembered until its turn comes."""
        suspicions: tuple[Suspicion, ...] = ()
        like = self._like(url, origin, found)
        if like is not None:
            rule, plain = like
            name = f"{rule} /{found.last}" if rule == family.TRAILING else rule
            suspects = self._family(origin, f"({name})", rule)
            suspects.discovered += 1
            suspicions = (Suspicion(rule, suspects, plain),)
        if source is not None and source.is_copy:
            text = _written(source.digest)
            suspects = self._family(origin, _links_of(text), family.SOFT_404)
            suspects.discovered += 1
            suspicions = (*suspicions, Suspicion(family.SOFT_404, suspects, text))
        if suspicions:
            self._suspects.put(url, suspicions)
        return suspicions

    def _like(self, url: str, origin: str, found: Signature) -> tuple[str, str] | None:
        """The rule by which a URL is a variant of a known one, and that one."""
        if found.has_session or found.has_order:
            known = self._known.get(hash((origin, found.plain)))
            if known is not None and known != hash(url):
                return (family.SESSION if found.has_session else family.PERMUTATION), found.plain
        if found.is_repeating:
            return family.REPEAT, found.shape
        directories = found.directories
        if len(directories) > 8 or "?" in found.plain:
            return None
        above = "/" + "/".join(directories) + "/" * found.last.endswith("/")
        is_again = directories[-1:] == (found.last.rstrip("/"),)
        if is_again and self._is_known(origin, above):
            # `/page/print/print` is to `/page/print` what that is to `/page`: one brake holds both.
            return family.TRAILING, above
        for index in range(len(directories)):
            others = "/".join(directories[:index] + directories[index + 1 :])
            shorter = f"/{others}/{found.last}" if others else f"/{found.last}"
            if self._is_known(origin, shorter):
                return family.NESTED, shorter
        is_index = found.last.startswith(("index.", "default."))
        if directories and not is_index and self._is_known(origin, above):
            return family.TRAILING, above
        return None

    def _is_known(self, origin: str, plain: str) -> bool:
        return hash((origin, plain)) in self._known

    def _brake(
        self,
        url: str,
        origin: str,
        found: Signature,
        known: Family,
        suspicions: tuple[Suspicion, ...],
    ) -> Brake | None:
        last = self._year + YEARS_AHEAD
        is_in_range = found.year is None or FIRST_YEAR <= found.year <= last
        if not is_in_range and not known.is_released:
            inputs = {"year": found.year, "from": FIRST_YEAR, "to": last}
            return Brake(family.CALENDAR, known.shape, inputs)
        for suspicion in suspicions:
            brake = _brake_of(suspicion)
            if brake is not None:
                return brake
        brake = self._mirrors.brake(origin, found, self._is_known)
        if brake is not None:
            return brake
        if known.rule == family.GROWTH and "?" in found.plain:
            # Its parameters bring nothing: one URL of each page is fetched all the same.
            page = hash((origin, found.directories, found.last))
            if self._known.get(page) in (None, hash(url)):
                return None
        return known.holds(found.date)


def _brake_of(suspicion: Suspicion) -> Brake | None:
    """The brake on the suspects that a URL belongs to, with the page that it is like."""
    rule, suspects, like = suspicion
    if suspects.brake is None or rule == family.SOFT_404:
        return suspects.brake
    return Brake(rule, suspects.shape, {**suspects.brake.inputs, "like": like})


def _written(digest: int) -> str:
    return f"{digest & 0xFFFFFFFFFFFFFFFF:016x}"


def _links_of(text: str) -> str:
    return f"(links of {text})"


def _is_confirmed(
    suspicion: Suspicion, content: Content, outside: int, original: str | None
) -> bool:
    """Whether a URL that was suspected to be a copy has proved to be one, of the very page that it was said to copy.

    Or of the `original` of that page, where that is a copy itself: `/page/print/print` of `/page`, as `/page/print` is.
    Where no text is looked at, a suspicion that is plain from the URL alone stands, unless the page brought new URLs.
    """
    if not content.is_read:
        return suspicion.rule in family.PLAIN_VARIANTS and not outside
    if suspicion.rule == family.REPEAT:
        return content.is_exact or content.is_near
    if not (content.is_exact or (content.is_near and suspicion.rule in family.PLAIN_VARIANTS)):
        return False
    return _plain_of(content.like) in (suspicion.like, original)


def _plain_of(url: str) -> str:
    path = url.partition("://")[2].partition("/")[2]
    return signature_of(f"/{path}").plain
