"""The tables of docs/traps.md are whole, and say what the rules promise."""

from __future__ import annotations

from pathlib import Path

from scrapy_frontier.testing.zoo import SITES
from tests.traps.trees import TREES

PAGE = Path(__file__).parents[2] / "docs" / "traps.md"


def rows(heading: str) -> dict[str, list[str]]:
    """The cells of the table whose first column has this heading, by the first one."""
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip().replace(",", "") for cell in line.strip("|").split("|"))
        found[name] = cells
    return found


def test_every_site_of_the_zoo_is_told_and_none_misses_or_wastes_too_much() -> None:
    table = rows("site")
    assert list(table) == [make.name for make in SITES]
    for make in SITES:
        useful, missed, waste, share, held, by_rule = table[make.name]
        assert (int(useful), int(missed)) == (len(make(500).useful_names), 0)
        assert share == f"{int(waste) / (int(useful) + int(waste)):.1%}"
        assert int(waste) < 0.05 * (int(useful) + int(waste))
        assert int(held) > 0
        assert make.rules.intersection(by_rule.split())


def test_every_tree_is_told_and_nothing_of_it_is_held() -> None:
    table = rows("tree")
    assert list(table) == list(TREES)
    assert all(int(pages) > 0 and held == "0" for _, pages, held in table.values())
