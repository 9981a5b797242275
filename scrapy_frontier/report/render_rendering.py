"""Rendered pages as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.report.summary import listed

if TYPE_CHECKING:
    from scrapy_frontier.report.account import Coverage

ORIGINS_SHOWN: Final = 20
PAGES_SHOWN: Final = 10


def rendering_section(account: Coverage) -> list[str]:
    """The pages, what they asked for by origin, and those that asked for the most; nothing where none was rendered."""
    found = account.rendering
    if not found.pages:
        return []
    lines = [
        f"  {counted(found.pages, 'page')} in the browser for {layout.duration(found.wall_s)},"
        f" with {counted(found.sub_requests, 'sub-request')} that brought {layout.size(found.bytes)}."
    ]
    for title, counts in (
        ("Cut short", found.cut),
        ("Failed", found.failed),
        ("Sub-requests by outcome", found.by_outcome),
        ("By type", found.by_type),
    ):
        if counts:
            lines.append(f"  {title}: {listed(counts, 12)}")
    origins = [
        (
            layout.shorten(one.origin, 36),
            one.requests,
            one.sent,
            one.requests - one.sent,
            layout.size(one.bytes).rjust(8),
        )
        for one in found.origins
    ]
    headings = ["asked of", "sub-requests", "sent", "refused", "received"]
    lines += layout.some(headings, origins, ORIGINS_SHOWN)
    pages = [
        (
            one.requests,
            one.requests - one.sent,
            layout.size(one.bytes).rjust(8),
            f"{one.wall_s:.1f} s",
            one.rule,
            one.url,
        )
        for one in found.heaviest[:PAGES_SHOWN]
        if one.requests or one.rule
    ]
    if pages:
        headings = ["sub-requests", "refused", "received", "took", "rule", "page"]
        lines += layout.table(headings, pages)
        if found.pages > len(pages):
            lines.append(f"  (of {number(found.pages)} pages, those that asked for the most)")
    return layout.section("Rendered pages", lines)
