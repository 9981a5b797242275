"""The page that shows Scrapy's default beside the frontier is what the two do."""

from __future__ import annotations

import pytest

from .cases import CASES
from .comparison import PAGE, compare, page_of

SOME = ["FC01.a", "FC02", "FC07", "FC14.a", "FC17.a", "FC19.b", "FC25.a", "FC30", "loop.2"]


@pytest.mark.parametrize("number", SOME)
async def test_rows(number: str) -> None:
    """The row of the page is what both do now; the frontier is right, and Scrapy in no more than the page says."""
    row = await compare(CASES[number])
    assert row.frontier.is_right
    assert row.markdown() in PAGE.read_text("utf-8").splitlines()


def test_every_case_has_its_row() -> None:
    """The page has all cases, and no other."""
    cells = [line.split(" | ")[0] for line in PAGE.read_text("utf-8").splitlines()]
    numbers = [cell.removeprefix("| ") for cell in cells if cell.startswith("| ")]
    assert [number for number in numbers if number not in ("case", "---")] == list(CASES)


def test_a_page_without_rows_is_a_page() -> None:
    """The heading says how the page is made."""
    assert "python -m tests.hostile.comparison" in page_of({})
