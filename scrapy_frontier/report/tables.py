"""The tables of the long report. Each is left out where it would be empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_frontier.report.account import Cause, Coverage, OriginAccount

ORIGINS_SHOWN: Final = 20
CAUSES_SHOWN: Final = 30
DEAD_LETTERS_SHOWN: Final = 10

_SHARE: Final = len(">99.9 %")

COVERED: Final = (
    Disposition.SUCCEEDED.label,
    Disposition.REDIRECTED.label,
    Disposition.NOT_MODIFIED.label,
)
"""Dispositions of URLs that the run has an answer for, as it was meant to."""


def outcomes_section(account: Coverage) -> list[str]:
    """What became of the URLs, by disposition and state."""
    identities = account.identities
    counts = [
        *identities.terminal.items(),
        *identities.unresolved.items(),
        ("excluded by rules", sum(identities.suppressed.values())),
        ("held back", sum(identities.deferred.values())),
    ]
    rows = [
        (_words(name), count, layout.share(count, identities.discovered).rjust(_SHARE))
        for name, count in counts
        if count
    ]
    if not rows:
        return []
    rows.append(("all", identities.discovered, "100 %".rjust(_SHARE)))
    return layout.section(
        "What became of the URLs", layout.table(["outcome", "URLs", "share"], rows)
    )


def causes_section(account: Coverage) -> list[str]:
    """What was not covered, by rule, with an example each."""
    rows = [
        (_what(cause), cause.rule or "", cause.count, cause.example)
        for cause in account.causes
        if cause.state in (State.SUPPRESSED.label, State.DEFERRED.label)
        or cause.disposition not in (None, *COVERED)
    ]
    rows += [
        (f"rejected {cause.kind}", cause.rule, cause.count, cause.example)
        for cause in account.rejected
    ]
    return layout.section(
        "Not covered, and why",
        _some(["what", "rule", "count", "first example"], rows, CAUSES_SHOWN),
    )


def _what(cause: Cause) -> str:
    if cause.disposition is not None:
        return _words(cause.disposition)
    return "excluded" if cause.state == State.SUPPRESSED.label else "held back"


def _words(label: str) -> str:
    return label.replace("_", " ")


def references_section(account: Coverage) -> list[str]:
    """References by kind."""
    rows = [
        (label, kind.total, kind.fresh, kind.duplicates, kind.excluded, kind.rejected)
        for label, kind in account.references.by_kind.items()
    ]
    headings = ["kind", "total", "new URL", "duplicate", "to an excluded URL", "rejected"]
    return layout.section("References", layout.table(headings, rows) if rows else [])


def attempts_section(account: Coverage) -> list[str]:
    """Attempts by outcome."""
    attempts = account.attempts
    rows = list(attempts.by_outcome.items())
    if attempts.open:
        rows.append(("none yet", attempts.open))
    if not rows:
        return []
    rows.append(("all", attempts.total))
    notes = [
        (attempts.retries, counted(attempts.retries, "retry", "retries")),
        (attempts.late, f"{number(attempts.late)} late, of a lease that was no longer in force"),
        (attempts.quarantined, f"{number(attempts.quarantined)} quarantined"),
    ]
    noted = "; ".join(note for count, note in notes if count)
    lines = layout.table(["outcome", "attempts"], rows)
    return layout.section("Attempts", [*lines, f"  {noted}."] if noted else lines)


def origins_section(account: Coverage) -> list[str]:
    """The largest origins."""
    rows = [_origin_row(origin) for origin in account.origins]
    headings = [
        "origin",
        "URLs",
        "open",
        "attempts",
        "2xx",
        "3xx",
        "4xx",
        "5xx",
        "none",
        "received",
    ]
    return layout.section("Origins", _some(headings, rows, ORIGINS_SHOWN))


def _origin_row(origin: OriginAccount) -> tuple[str | int, ...]:
    closed = (State.TERMINAL.label, State.SUPPRESSED.label, State.DEFERRED.label)
    still_open = sum(n for state, n in origin.identities.items() if state not in closed)
    return (
        layout.shorten(origin.origin, 36),
        sum(origin.identities.values()),
        still_open,
        origin.attempts,
        *(origin.by_status.get(status, 0) for status in ("2xx", "3xx", "4xx", "5xx", "none")),
        layout.size(origin.bytes).rjust(8),
    )


def redirects_section(account: Coverage) -> list[str]:
    """Redirects in a line, and those refused by rule."""
    redirects = account.redirects
    if not redirects.hops and not redirects.refused:
        return []
    line = (
        f"  {counted(redirects.hops, 'hop')} followed,"
        f" {number(redirects.cross_origin)} to another origin."
    )
    refused = [f"  refused: {rule} {number(count)}" for rule, count in redirects.refused.items()]
    return layout.section("Redirects", [line, *refused])


def robots_section(account: Coverage) -> list[str]:
    """What robots.txt kept out."""
    rows = [(one.origin, one.rule, one.suppressed, one.example) for one in account.robots]
    headings = ["origin", "rule", "URLs", "first example"]
    return layout.section("Robots", _some(headings, rows, ORIGINS_SHOWN))


def budgets_section(account: Coverage) -> list[str]:
    """What budgets cut."""
    rows = [
        (one.rule, one.pattern or "", one.suppressed, one.deferred, one.first_example)
        for one in account.budgets
    ]
    headings = ["rule", "pattern", "excluded", "held back", "first example"]
    return layout.section("Budgets", _some(headings, rows, CAUSES_SHOWN))


def dead_letters_section(account: Coverage) -> list[str]:
    """URLs that failed for good."""
    rows = [(one.reason, one.attempts, one.transitions, one.url) for one in account.deadletters]
    headings = ["reason", "attempts", "transitions", "URL"]
    return layout.section("Dead letters", _some(headings, rows, DEAD_LETTERS_SHOWN))


def counted_sections(account: Coverage) -> list[str]:
    """Parameter rules, waivers, and requests that could not be stored."""
    lines: list[str] = []
    for title, found in (
        ("Parameter rules", account.parameter_rules),
        ("Waivers", account.waivers),
        ("Requests that could not be stored", account.unserialisable),
    ):
        rows = [(one.name, one.count, one.example or "") for one in found]
        lines += layout.section(
            title, _some(["name", "count", "first example"], rows, CAUSES_SHOWN)
        )
    return lines


def sessions_section(account: Coverage) -> list[str]:
    """The processes that worked on the run."""
    rows = [
        (
            str(one.id),
            _second(one.started_at),
            _second(one.ended_at) if one.ended_at else _unended(account, one.id),
            one.attempts,
            one.worker,
        )
        for one in account.sessions
    ]
    headings = ["session", "started", "ended", "attempts", "worker"]
    return layout.section("Sessions", layout.table(headings, rows) if rows else [])


def _unended(account: Coverage, session_id: int) -> str:
    is_last = session_id == account.sessions[-1].id
    if is_last and account.run.state == "running" and account.run.is_live is not False:
        return "-"
    return "never (killed)"


def _second(at: str | None) -> str:
    return at[:19].replace("T", " ") if at else "-"


def _some(headings: Sequence[str], rows: Sequence[Sequence[str | int]], limit: int) -> list[str]:
    if not rows:
        return []
    lines = layout.table(headings, rows[:limit])
    more = len(rows) - limit
    return (
        [*lines, f"  ... and {number(more)} more: --format json lists all."] if more > 0 else lines
    )
