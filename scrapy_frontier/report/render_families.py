"""Families and duplicate groups as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_frontier.report.account import Coverage
    from scrapy_frontier.report.families import FamilyAccount

SHOWN: Final = 20
LISTED: Final = 50


def families_section(account: Coverage) -> list[str]:
    """The families that a rule about traps holds, with an example each."""
    rows = [
        (one.rule or "", one.deferred, one.family, one.first_example or "")
        for one in account.families
        if one.deferred
    ]
    headings = ["rule", "held back", "family", "first example"]
    return layout.section("Traps: families held back", layout.some(headings, rows, SHOWN))


def duplicates_section(account: Coverage) -> list[str]:
    """The same content under several URLs."""
    rows = [
        (one.same + one.alike, one.near, one.url, one.candidate if one.canonicals else "")
        for one in account.duplicates
    ]
    headings = ["same", "nearly", "as the page", "canonical, by the pages"]
    return layout.section("The same content under other URLs", layout.some(headings, rows, SHOWN))


def render_families(found: Sequence[FamilyAccount], run_id: int) -> str:
    """A table of families, and below it what is held, each with its evidence."""
    if not found:
        return f"No families of URLs in run {run_id}.\n"
    rows = [
        (
            one.discovered,
            one.fetched,
            one.deferred,
            "-" if one.new_content is None else f"{one.new_content:.0%}",
            _standing(one),
            f"{one.origin}{one.family}"
            if one.family.startswith("/")
            else f"{one.origin} {one.family}",
        )
        for one in found
    ]
    headings = ["found", "fetched", "held back", "new", "brake", "family"]
    lines = layout.some(headings, rows, LISTED)
    for one in found[:LISTED]:
        if one.deferred:
            lines += ["", *_evidence(one)]
    return "\n".join(lines) + "\n"


def _standing(one: FamilyAccount) -> str:
    if one.released_at:
        return "released"
    return (one.rule or "").removeprefix("trap.") or "-"


def _evidence(one: FamilyAccount) -> list[str]:
    """One held family: why, on which numbers, examples and sources."""
    inputs = one.inputs if isinstance(one.inputs, dict) else {}
    said = ", ".join(f"{name} {value}" for name, value in inputs.items() if value is not None)
    lines = [f"{one.family} on {one.origin}: {one.rule} holds {number(one.deferred)}"]
    if said:
        lines += layout.labelled("  by", [said], 12)
    lines += layout.labelled("  such as", [layout.printable(url) for url in one.examples], 12)
    return [
        *lines,
        *layout.labelled("  found on", [layout.printable(url) for url in one.sources], 12),
    ]
