"""The page that shows Scrapy's default beside the frontier is what the two do."""

from __future__ import annotations

import pytest

from .cases import CASES
from .comparison import PAGE, SCRAPY, compare, page_of

SOME = ["FC01.b", "FC02", "FC07.a", "FC14.a", "FC17.a", "FC19.b", "FC25.a", "FC30", "loop.2"]


@pytest.mark.parametrize("number", SOME)
async def test_rows(number: str) -> None:
    """The row of the page is what both do now, as far as it speaks of this version of Scrapy; the frontier is right."""
    row = await compare(CASES[number])
    text = PAGE.read_text("utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {number} |"))
    assert row.frontier.is_right
    assert line.endswith(f" | {row.frontier} |")
    if SCRAPY in text:
        assert line == row.markdown()


def test_every_case_has_its_row() -> None:
    """The page has all cases, and no other."""
    cells = [line.split(" | ")[0] for line in PAGE.read_text("utf-8").splitlines()]
    numbers = [cell.removeprefix("| ") for cell in cells if cell.startswith("| ")]
    assert [number for number in numbers if number not in ("case", "---")] == list(CASES)


def test_a_page_without_rows_is_a_page() -> None:
    """The heading says how the page is made."""
    assert "python -m tests.hostile.comparison" in page_of({})
