"""Where all identities of a run stand, as bars that are cut in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_frontier.report.pages import COVERED, pages_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy_frontier.report.account import Coverage


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a bar. `tone`: good, bad, out, or waiting."""

    name: str
    count: int
    tone: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A whole and its parts, which add up to it."""

    name: str
    total: int
    parts: tuple[Part, ...]


def flow(account: Coverage) -> tuple[Bar, ...]:
    """discovered = admitted + suppressed + deferred, and admitted = terminal + unresolved."""
    pages = pages_of(account)
    ended = [
        Part(name.replace("_", " "), count, "good" if name in COVERED else "bad")
        for name, count in pages.terminal.items()
    ]
    waiting = [
        Part(name.replace("_", " "), count, "waiting") for name, count in pages.unresolved.items()
    ]
    found = [
        Part("admitted", pages.admitted, "good"),
        Part("excluded", pages.excluded, "out"),
        Part("held back", pages.held_back, "waiting"),
    ]
    excluded = [Part(name, count, "out") for name, count in pages.suppressed.items()]
    held_back = [Part(name, count, "waiting") for name, count in pages.deferred.items()]
    return tuple(
        bar
        for bar in (
            _bar("Found", found),
            _bar("Admitted", sorted([*ended, *waiting], key=_order)),
            _bar("Excluded by rules", excluded),
            _bar("Held back", held_back),
        )
        if bar.total
    )


def _order(part: Part) -> tuple[int, int]:
    return ("good", "waiting", "bad", "out").index(part.tone), -part.count


def _bar(name: str, parts: Iterable[Part]) -> Bar:
    kept = tuple(part for part in parts if part.count)
    return Bar(name, sum(part.count for part in kept), kept)
