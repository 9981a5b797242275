"""The tables of the page, as values: columns, rows, and how many rows there were before the cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock, iso

if TYPE_CHECKING:
    from scrapy_frontier.report.account import Coverage, OriginAccount
    from scrapy_frontier.report.html.facts import AttemptFacts, Facts

Cell = str | int | float | None

ORIGINS_LISTED: Final = 5000
HOPS_SHOWN: Final = 4
ROWS_AT_FIRST: Final = 25
"""Rows that stand in the page itself; the reader's browser brings the others when they are asked for."""

ROWS_TO_FILTER: Final = 6
"""A shorter table has no field to narrow it by."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `kind`: text, url, number, or bytes; numbers stand to the right."""

    title: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be sorted and filtered. `total`: the rows there are, of which `rows` are the first."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int


def _table(
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Cell, ...]],
    total: int | None = None,
) -> Table:
    """`columns`: titles, each with its kind behind a bar where that is not text."""
    parted = (column.partition("|") for column in columns)
    made = tuple(Column(title, kind or "text") for title, _, kind in parted)
    return Table(name, caption, made, tuple(rows), len(rows) if total is None else total)


def causes_table(account: Coverage) -> Table:
    """Why URLs stand where they stand."""
    return _table(
        "causes",
        "Why URLs ended, are excluded, are held back, or wait",
        ("State", "Rule or outcome", "URLs|number", "First example|url"),
        [
            (_state(one.state, one.disposition), one.rule, one.count - one.robots_txt, one.example)
            for one in account.causes
            if one.count > one.robots_txt
        ],
    )


def rejected_table(account: Coverage) -> Table:
    """References that are no URL which can be requested."""
    return _table(
        "rejected",
        "References that cannot be requested",
        ("Rule", "Kind", "References|number", "First example|url", "On page|url"),
        [(one.rule, one.kind, one.count, one.example, one.page) for one in account.rejected],
    )


def origins_table(account: Coverage) -> Table:
    """Every origin with what was found there, how it answered, and how it fares."""
    titles = (
        "Origin|url", "Health", "URLs|number", "Done|number", "Excluded|number", "Held back|number",
        "Waiting|number", "Attempts|number", "2xx|number", "3xx|number", "4xx|number",
        "5xx|number", "None|number", "Bytes|bytes",
    )  # fmt: skip
    rows = [_origin(one) for one in account.origins[:ORIGINS_LISTED]]
    return _table("origins", "Origins", titles, rows, len(account.origins))


def _origin(one: OriginAccount) -> tuple[Cell, ...]:
    states = one.identities
    total = sum(states.values())
    aside = {name: states.get(name, 0) for name in ("terminal", "suppressed", "deferred")}
    classes = (one.by_status.get(name, 0) for name in ("2xx", "3xx", "4xx", "5xx", "none"))
    return (
        one.origin,
        _health(one),
        total,
        *aside.values(),
        total - sum(aside.values()),
        one.attempts,
        *classes,
        one.bytes,
    )


def _health(one: OriginAccount) -> str:
    health = one.health
    if health is None:
        return "well"
    if health.is_closed:
        return f"closed ({health.cause})"
    if health.is_held_back:
        held = f"{health.concurrency} in flight, {health.interval_s:g} s apart"
        return f"held back: {held}" + (f" ({health.cause})" if health.cause else "")
    return f"recovered ({health.cause})" if health.backed_off else "well"


def dead_letters_table(account: Coverage, total: int) -> Table:
    """What came to a bad end for good."""
    return _table(
        "deadletters",
        "Dead letters: URLs that failed for good",
        ("URL|url", "Reason", "End", "Attempts|number", "Not tried again because", "Last"),
        [
            (
                one.url,
                one.reason,
                _words(one.disposition),
                one.attempts,
                one.why_not,
                clock(one.last_at),
            )
            for one in account.deadletters
        ],
        max(total, len(account.deadletters)),
    )


def robots_table(account: Coverage) -> Table:
    """What each robots.txt does to the run."""
    return _table(
        "robots",
        "Robots.txt by origin",
        ("Origin|url", "In force", "Why", "Status|number", "URLs excluded|number",
         "URLs waiting|number", "First excluded|url", "Trouble"),
        [
            (one.origin, one.state, one.reason, one.status, one.suppressed, one.waiting,
             one.example, one.trouble)
            for one in account.robots
        ],
    )  # fmt: skip


def budgets_table(account: Coverage) -> Table:
    """What limits cut."""
    return _table(
        "budgets",
        "Budgets and limits that cut something",
        ("Rule", "Part of the web|url", "Limit|number", "URLs kept out|number",
         "Cut otherwise|number", "First example|url"),
        [
            (one.rule, one.pattern, one.limit, one.suppressed + one.deferred,
             one.rejected + one.failed + one.unresolved, one.first_example)
            for one in account.budgets
        ],
    )  # fmt: skip


def families_table(account: Coverage) -> Table:
    """Families of URLs, those with the most first."""
    return _table(
        "families",
        "Families of URLs",
        ("Family|url", "Origin|url", "Found|number", "Fetched|number", "New content",
         "Held back|number", "By", "First example|url"),
        [
            (one.family, one.origin, one.discovered, one.fetched,
             None if one.new_content is None else layout.share(round(1000 * one.new_content), 1000),
             one.deferred, one.rule, one.first_example)
            for one in account.families
        ],
    )  # fmt: skip


def duplicates_table(account: Coverage) -> Table:
    """The same content under several URLs."""
    return _table(
        "duplicates",
        "The same content under other URLs",
        ("As the page|url", "The same|number", "Nearly|number", "Others|url", "Canonical|url"),
        [
            (one.url, one.same + one.alike, one.near, " · ".join(one.examples),
             one.candidate if one.canonicals else None)
            for one in account.duplicates
        ],
    )  # fmt: skip


def asked_table(account: Coverage) -> Table:
    """What rendered pages asked for, by origin."""
    return _table(
        "asked",
        "What rendered pages asked for, by origin",
        ("Origin|url", "Sub-requests|number", "Sent|number", "Refused|number", "Bytes|bytes",
         "By outcome"),
        [
            (one.origin, one.requests, one.sent, one.requests - one.sent, one.bytes,
             ", ".join(f"{outcome} ({count:,})" for outcome, count in one.by_outcome.items()))
            for one in account.rendering.origins
        ],
    )  # fmt: skip


def rendered_table(account: Coverage) -> Table:
    """Rendered pages, those that asked for the most first."""
    return _table(
        "rendered",
        "Rendered pages",
        ("Page|url", "Sub-requests|number", "Refused|number", "Bytes|bytes", "Seconds|number",
         "Cut short, or failed, by"),
        [
            (one.url, one.requests, one.requests - one.sent, one.bytes, one.wall_s, one.rule)
            for one in account.rendering.heaviest
        ],
        account.rendering.pages,
    )  # fmt: skip


def regions_table(account: Coverage) -> Table:
    """Parts of the web where something is left."""
    return _table(
        "regions",
        "Regions that are not finished",
        ("Part of the web|url", "Unresolved|number", "Held back|number", "Held by", "Example|url"),
        [
            (one.place, one.unresolved, one.deferred,
             ", ".join(f"{rule} ({count:,})" for rule, count in one.by_rule.items()), one.example)
            for one in account.unfinished.regions
        ],
    )  # fmt: skip


def chains_table(facts: Facts) -> Table:
    """Redirects, the longest chains first."""
    return _table(
        "chains",
        "Chains of redirects",
        ("From|url", "Hops|number", "Through|url", "To|url", "Ends as"),
        [
            (one.urls[0], len(one.urls) - 1, _through(one.urls[1:-1]), one.urls[-1], one.end)
            for one in facts.graph.chains
        ],
        facts.graph.chains_total,
    )


def _through(urls: Sequence[str]) -> str:
    """The hops between; of a long chain the first and the last."""
    if len(urls) > HOPS_SHOWN:
        urls = [*urls[: HOPS_SHOWN - 1], f"… {len(urls) - HOPS_SHOWN} more …", urls[-1]]
    return " → ".join(urls)


def broken_table(facts: Facts) -> Table:
    """Broken links, those on the most pages first."""
    return _table(
        "broken",
        "Broken links",
        ("Broken URL|url", "End", "Reason", "Pages|number", "On these pages, among others|url"),
        [
            (one.url, _words(one.end), one.reason, one.pages, " · ".join(one.carried_by))
            for one in facts.graph.broken
        ],
        facts.graph.broken_total,
    )


def orphans_table(facts: Facts) -> Table:
    """URLs that no chain of links leads to."""
    rows = [(url,) for url in facts.graph.orphans]
    return _table("orphans", "URLs no link leads to", ("URL|url",), rows, facts.graph.orphaned)


def odd_table(facts: Facts) -> Table:
    """Attempts of the URLs that somebody may ask about."""
    return _table(
        "attempts",
        "URLs that failed, or took several attempts",
        ("URL|url", "State", "Reason", "Attempts|number", "What happened"),
        [
            (one.url, _words(one.state), one.reason, one.attempts, _told(one.first, one.attempts))
            for one in facts.odd
        ],
        facts.odd_total,
    )


def pace_table(facts: Facts) -> Table:
    """Decisions about the pace of origins, the latest first."""
    rows = [
        (clock(iso(one.at_ms)), one.origin, one.code, one.concurrency, one.interval_s)
        for one in reversed(facts.pace.samples)
    ]
    titles = ("At", "Origin|url", "Decision", "In flight|number", "Seconds apart|number")
    return _table("pace", "Decisions about the pace", titles, rows, facts.pace.total)


def _told(first: Sequence[AttemptFacts], attempts: int) -> str:
    """The attempts of one URL on one line."""
    told = []
    for one in first:
        took = "" if one.took_s is None else f" after {one.took_s:.3g} s"
        at = (iso(one.at_ms) or "")[11:19]
        told.append(f"{at} {one.outcome}{took}")
    more = attempts - len(first)
    return "; ".join([*told, *([f"and {more} more"] if more else [])])


def _state(state: str, disposition: str | None) -> str:
    return _words(disposition or state)


def _words(name: str) -> str:
    return name.replace("_", " ")
