"""The zoo of traps, crawled: how much of each crawl is waste.

python -m tests.traps.zoo [USEFUL] [--markdown]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scrapy_frontier.testing.zoo import SITES, TrapSite
from tests.traps.walk import walk


class Outcome(NamedTuple):
    """What a crawl of one site cost: `missed` are useful pages that were not fetched."""

    name: str
    useful: int
    fetched: int
    missed: int
    waste: int
    deferred: int
    rules: str

    @property
    def share(self) -> float:
        """Waste as a share of all fetches."""
        return self.waste / self.fetched if self.fetched else 0.0


def outcome_of(
    site: TrapSite, fetched: Iterable[str], deferred: int, rules: Iterable[str]
) -> Outcome:
    """Count the waste among the targets that were fetched."""
    names = [site.name_of(target) for target in fetched]
    useful = site.useful_names.intersection(names)
    return Outcome(
        site.name,
        len(site.useful_names),
        len(names),
        len(site.useful_names) - len(useful),
        len(names) - len(useful),
        deferred,
        ", ".join(sorted(rules)),
    )


def walked(site: TrapSite, limit: int) -> Outcome:
    """Crawl a site by the policies alone."""
    found = walk(site.answer, limit=limit)
    return outcome_of(site, found.fetched, len(found.deferred), found.rules)


def lines(outcomes: Iterable[Outcome], *, is_markdown: bool) -> Iterator[str]:
    """The outcomes as a table: for a terminal, or for the documentation."""
    if is_markdown:
        yield "| site | useful pages | missed | wasted fetches | share | held back | by rule |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
    for one in outcomes:
        if is_markdown:
            yield (
                f"| {one.name} | {one.useful} | {one.missed} | {one.waste} | {one.share:.1%} |"
                f" {one.deferred} | {one.rules} |"
            )
        else:
            yield (
                f"{one.name:22} {one.useful:5} useful {one.missed:4} missed {one.waste:5} waste"
                f" {one.share:6.1%} {one.deferred:6} deferred  {one.rules}"
            )


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--markdown"]
    useful = int(words[0]) if words else 500
    outcomes = (walked(make(useful), useful * 4) for make in SITES)
    for line in lines(outcomes, is_markdown="--markdown" in sys.argv):
        print(line)


if __name__ == "__main__":
    main()
