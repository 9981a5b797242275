"""What a run has left: in which parts of the web, held by which rules, and a scope for a run that fetches just that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.account import Region, Unfinished
from scrapy_frontier.states import UNRESOLVED, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection

    from scrapy_frontier.report.figures import Figures
    from scrapy_frontier.report.names import Codes

LOOKED_AT: Final = 200_000
"""Unfinished identities that regions are made from at the most, the first to be discovered."""

REGIONS: Final = 500
"""Regions in one report at the most, the largest ones."""

PLACES: Final = 100
"""Places in one suggested scope at the most."""

_LEFT: Final = (*sorted(map(int, UNRESOLVED)), int(State.DEFERRED))

_ROWS: Final = (
    "SELECT i.url, c.state, c.reason_id FROM current AS c"
    " JOIN identity AS i ON i.identity_id = c.identity_id"
    f" WHERE c.run_id = :run AND c.state IN ({', '.join(map(str, _LEFT))})"
    " ORDER BY c.identity_id LIMIT :limit"
)

_BRAKES: Final = "trap."
"""Rules for which a suggested scope makes no exception: what they hold is held for a reason of its own."""


class _Counting:
    """One region in the making."""

    __slots__ = ("by_rule", "deferred", "example", "is_wanted", "unresolved")

    def __init__(self, example: str) -> None:
        self.example = example
        self.unresolved = 0
        self.deferred = 0
        self.by_rule: Counter[str] = Counter()
        self.is_wanted = False

    def add(self, state: int, rule: str) -> None:
        if state == State.DEFERRED:
            self.deferred += 1
            self.by_rule[rule] += 1
            self.is_wanted |= not rule.startswith(_BRAKES)
        else:
            self.unresolved += 1
            self.is_wanted = True


def unfinished(connection: Connection, run_id: int, figures: Figures, codes: Codes) -> Unfinished:
    """What the run has left, by the first folder of the path, the largest region first."""
    regions: dict[str, _Counting] = {}
    looked_at = 0
    left = figures.standing_in(UNRESOLVED | {State.DEFERRED})
    if left:
        for url, state, reason_id in connection.execute(
            text(_ROWS), {"run": run_id, "limit": LOOKED_AT}
        ):
            place = place_of(url)
            region = regions.get(place)
            if region is None:
                region = regions[place] = _Counting(url)
            region.add(state, codes[reason_id])
            looked_at += 1
    return Unfinished(left, looked_at, _largest(regions), _scope(regions))


def place_of(url: str) -> str:
    """The origin and the first folder of a URL, as a scope names places; the origin alone where it lies in none."""
    origin_end = url.find("/", url.find("//") + 2)
    path_end = next((i for i, char in enumerate(url) if char in "?;#"), len(url))
    folder_end = url.find("/", origin_end + 1, path_end)
    place = url[: folder_end + 1] if folder_end > 0 else url[: origin_end + 1]
    return place if _can_be_named(place) else url[: origin_end + 1]


def _can_be_named(place: str) -> bool:
    """Whether a scope can be written so: these characters mean something else there."""
    return not any(char in place for char in "*@\\")


def _largest(regions: Mapping[str, _Counting]) -> tuple[Region, ...]:
    ordered = sorted(
        regions.items(), key=lambda item: (-item[1].unresolved - item[1].deferred, item[0])
    )
    return tuple(
        Region(
            place,
            found.unresolved,
            found.deferred,
            dict(found.by_rule.most_common()),
            found.example,
        )
        for place, found in ordered[:REGIONS]
    )


def _scope(regions: Mapping[str, _Counting]) -> dict[str, Any] | None:
    """The fewest places that hold all that is left; whole origins where there would be too many."""
    wanted = {place for place, found in regions.items() if found.is_wanted}
    places = _outermost(wanted)
    if len(places) > PLACES:
        places = sorted({_origin(place) for place in wanted})
    return {"include": places} if places else None


def _outermost(places: Iterable[str]) -> list[str]:
    kept: set[str] = set()
    for place in sorted(places, key=len):
        if place not in kept and _origin(place) not in kept:
            kept.add(place)
    return sorted(kept)


def _origin(place: str) -> str:
    return place[: place.find("/", place.find("//") + 2) + 1]
