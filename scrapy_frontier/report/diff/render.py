"""Differences as text: how many of each kind, and the first of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy_frontier.report import layout
from scrapy_frontier.report.diff.comparison import Kind
from scrapy_frontier.report.layout import counted, number, printable

if TYPE_CHECKING:
    from scrapy_frontier.report.diff.comparison import Difference
    from scrapy_frontier.report.diff.standing import Standing


@dataclass(slots=True)
class Tally:
    """How many differences of each kind, and the first `limit` of each."""

    limit: int
    counts: Counter[str] = field(default_factory=Counter)
    same_text: int = 0
    first: defaultdict[str, list[Difference]] = field(default_factory=lambda: defaultdict(list))

    def add(self, found: Difference) -> None:
        """Count one."""
        self.counts[found.kind] += 1
        self.same_text += found.same_text is True
        if len(self.first[found.kind]) < self.limit:
            self.first[found.kind].append(found)

    def ordered(self) -> dict[str, int]:
        """The counts, in the order of the kinds."""
        return {kind.value: self.counts[kind.value] for kind in Kind if self.counts[kind.value]}


def render(tally: Tally, title: str, notes: Iterable[str]) -> str:
    """The whole answer. Ends with a newline."""
    lines = [title, *(line for note in notes for line in layout.labelled("", [note], 0))]
    counts = tally.ordered()
    if not counts:
        return "\n".join([*lines, "No difference."]) + "\n"
    for kind, count in counts.items():
        lines += layout.section(_heading(kind, count, tally), _rows(tally.first[kind]))
        more = count - len(tally.first[kind])
        lines += [f"  ... and {number(more)} more: --limit, or --format csv"] if more else []
    listed = ", ".join(f"{number(count)} {kind}" for kind, count in counts.items())
    return (
        "\n".join([*lines, "", f"{counted(tally.counts.total(), 'difference')}: {listed}."]) + "\n"
    )


def _heading(kind: str, count: int, tally: Tally) -> str:
    same = f", {number(tally.same_text)} with the same main text" if tally.same_text else ""
    return f"{kind}: {counted(count, 'URL')}{same if kind == Kind.CHANGED.value else ''}"


def _rows(found: Iterable[Difference]) -> list[str]:
    rows = [
        (
            words(one.was),
            words(one.now),
            f"{'' if one.method == 'GET' else one.method + ' '}{one.url}",
        )
        for one in found
    ]
    return layout.table(["was", "now", "URL"], rows, is_cut=False) if rows else []


def words(standing: Standing | None) -> str:
    """A standing in a few words, with its reason."""
    if standing is None:
        return "not known"
    end = (standing.disposition or standing.state).replace("_", " ")
    where = f" to {printable(standing.target)}" if standing.target else ""
    return f"{end} ({standing.reason}){where}"
