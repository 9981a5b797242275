"""Text for a terminal of 100 columns: tables, numbers, sizes, durations."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

WIDTH: Final = 100

_GAP: Final = "  "

Cell = str | int


def table(
    headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_cut: bool = True
) -> list[str]:
    """Lines of a table; whole numbers stand to the right. The last column of text is cut to fit,
    unless it must be whole.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *texts, strict=True)]
    is_number = [isinstance(cell, int) for cell in rows[0]] if rows else [False] * len(headings)
    room = WIDTH - len(_GAP) - sum(width + len(_GAP) for width in widths[:-1])
    if is_cut and not is_number[-1]:
        widths[-1] = min(widths[-1], max(room, 20))

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if number else shorten(cell, width).ljust(width)
            for cell, width, number in zip(cells, widths, is_number, strict=True)
        ]
        return (_GAP + _GAP.join(parts)).rstrip()

    return [line(headings), *map(line, texts)]


def _text(cell: Cell) -> str:
    return number(cell) if isinstance(cell, int) else printable(cell)


def some(headings: Sequence[str], rows: Sequence[Sequence[Cell]], limit: int) -> list[str]:
    """A table of the first rows, and how many more there are; nothing where there are none."""
    if not rows:
        return []
    lines = table(headings, rows[:limit])
    more = len(rows) - limit
    return (
        [*lines, f"  ... and {number(more)} more: --format json lists all."] if more > 0 else lines
    )


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A blank line, a title, and what stands below it; nothing where there is nothing below."""
    return ["", title, *lines] if lines else []


def labelled(label: str, lines: Sequence[str], margin: int) -> list[str]:
    """Lines behind a label, wrapped, the further ones indented to the first."""
    made = []
    for position, text in enumerate(lines):
        head = (label if position == 0 else "").ljust(margin)
        made += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=head,
            subsequent_indent=" " * margin,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [head.rstrip()]
    return made


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text longer than `width`: both ends of a URL tell something."""
    if len(text) <= width:
        return text
    tail = (width - 3) // 3
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


def printable(text: str) -> str:
    """The text on one line, with what a terminal might obey written as an escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def number(count: int) -> str:
    """A whole number with its thousands marked."""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun: `1 page`, `2 pages`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def size(count: int) -> str:
    """Bytes in a unit that leaves two to four digits."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def share(part: int, whole: int) -> str:
    """A share in per cent; 100 % only where it is all, 0 % only where it is nothing."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %" if 0 < percent < 100 else f"{percent:.0f} %"


def duration(seconds: float) -> str:
    """A time span in its two largest units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, whole = divmod(whole, length)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
