"""What is known of a family while a run goes on, and the brake that may hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scrapy_frontier.policy.traps import signature

CALENDAR: Final = "calendar"
SEARCH: Final = "search"
SORT: Final = "sort"
PAGINATION: Final = "pagination"
FACETS: Final = "facets"
GROWTH: Final = "growth"
REPEAT: Final = "repeat"
PERMUTATION: Final = "permutation"
SESSION: Final = "session"
NESTED: Final = "nested"
TRAILING: Final = "trailing"
MIRROR: Final = "mirror"
SOFT_404: Final = "soft_404"

RULES: Final[Mapping[str, int]] = {
    CALENDAR: 6,
    SEARCH: 6,
    SORT: 5,
    PAGINATION: 6,
    FACETS: 8,
    GROWTH: 16,
    REPEAT: 4,
    PERMUTATION: 4,
    SESSION: 4,
    NESTED: 5,
    TRAILING: 5,
    MIRROR: 5,
    SOFT_404: 10,
}
"""Each rule with its sample: pages of the family in a row that bring nothing new before the rest is deferred."""

VARIANTS: Final = frozenset({PERMUTATION, SESSION, NESTED, TRAILING, MIRROR})
"""Rules about URLs that are other spellings of one known URL: they hold each of them, not a whole family."""

PLAIN_VARIANTS: Final = frozenset({PERMUTATION, SESSION, REPEAT})
"""Rules whose suspicion is plain from the URL alone."""

RULE_OF_TRAIT: Final[Mapping[str, str]] = {
    signature.CALENDAR: CALENDAR,
    signature.SEARCH: SEARCH,
    signature.SORT: SORT,
    signature.PAGINATION: PAGINATION,
    signature.FACETS: FACETS,
    signature.QUERY: GROWTH,
    signature.PLAIN: GROWTH,
}

SELF_FED_SHARE: Final = 0.5
"""Share of a family's URLs that its own pages must have brought before its growth alone is suspicious."""


@dataclass(frozen=True, slots=True)
class Brake:
    """Why a URL is deferred: the rule, the family that it holds, and the inputs that the decision was made from."""

    rule: str
    family: str
    inputs: Mapping[str, Any]

    @property
    def code(self) -> str:
        """The reason code in the ledger."""
        return f"trap.{self.rule}"

    def detail(self) -> dict[str, Any]:
        """The reason's inputs, the family first."""
        return {"family": self.family, **self.inputs}


@dataclass(slots=True)
class Dates:
    """The dates of a calendar that brought something, and the dry ones on either side of them."""

    first: int | None = None
    last: int | None = None
    before: int = 0
    after: int = 0

    def note(self, date: int, *, is_dry: bool) -> None:
        """A page of this date was fetched."""
        is_before = self.first is None or date < self.first
        is_after = self.last is None or date > self.last
        if is_dry:
            self.before += is_before
            self.after += is_after
            return
        if is_before:
            self.first, self.before = date, 0
        if is_after:
            self.last, self.after = date, 0


@dataclass(slots=True)
class Family:
    """The counts of one family on one origin. `dry` are fetches in a row that brought nothing new."""

    origin: str
    shape: str
    rule: str
    discovered: int = 0
    self_fed: int = 0
    fetched: int = 0
    fresh: int = 0
    dry: int = 0
    brake: Brake | None = None
    is_released: bool = False
    dates: Dates | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What names the family in its run."""
        return self.origin, self.shape

    def note(self, *, is_dry: bool, date: int | None = None) -> Brake | None:
        """A page was fetched and processed. Returns the brake where this fetch makes one, or makes it wider."""
        self.fetched += 1
        self.fresh += not is_dry
        self.dry = self.dry + 1 if is_dry else 0
        if date is not None and self.rule == CALENDAR:
            return self._note_date(date, is_dry=is_dry)
        if self.brake is not None or self.is_released or self.dry < RULES[self.rule]:
            return None
        if self.rule == GROWTH and self.self_fed < SELF_FED_SHARE * self.discovered:
            return None
        self.brake = Brake(self.rule, self.shape, self._inputs())
        return self.brake

    def holds(self, date: int | None) -> Brake | None:
        """The brake, where it holds a URL with this date (None: without one)."""
        brake = self.brake
        if brake is None or date is None or self.rule != CALENDAR:
            return brake
        after, before = brake.inputs.get("after"), brake.inputs.get("before")
        is_held = (after is not None and date > after) or (before is not None and date < before)
        return brake if is_held else None

    def _note_date(self, date: int, *, is_dry: bool) -> Brake | None:
        """A calendar is held on the side of the dates that brought something on which it has run dry."""
        dates = self.dates
        if dates is None:
            dates = self.dates = Dates()
        dates.note(date, is_dry=is_dry)
        if self.is_released or not is_dry:
            return None
        sample = RULES[CALENDAR]
        held = {} if self.brake is None else self.brake.inputs
        after = (dates.last or 0) if dates.after >= sample else held.get("after")
        before = (dates.first or 0) if dates.before >= sample else held.get("before")
        if (after, before) == (held.get("after"), held.get("before")):
            return None
        self.brake = Brake(
            CALENDAR, self.shape, {**self._inputs(), "after": after, "before": before}
        )
        return self.brake

    def _inputs(self) -> dict[str, int]:
        return {
            "discovered": self.discovered,
            "self_fed": self.self_fed,
            "fetched": self.fetched,
            "new_content": self.fresh,
            "dry": self.dry,
            "sample": RULES[self.rule],
        }
