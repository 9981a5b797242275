"""The tables of the long report. Each is left out where it would be empty."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.report.pages import COVERED, pages_of
from scrapy_frontier.states import State

if TYPE_CHECKING:
    from scrapy_frontier.report.account import Budget, Cause, Coverage, OriginAccount

ORIGINS_SHOWN: Final = 20
CAUSES_SHOWN: Final = 30
DEAD_LETTERS_SHOWN: Final = 10

_SHARE: Final = len(">99.9 %")


def outcomes_section(account: Coverage) -> list[str]:
    """What became of the URLs, by disposition and state."""
    pages = pages_of(account)
    counts = [
        *pages.terminal.items(),
        *pages.unresolved.items(),
        ("excluded by rules", pages.excluded),
        ("held back", pages.held_back),
    ]
    rows = [
        (_words(name), count, layout.share(count, pages.discovered).rjust(_SHARE))
        for name, count in counts
        if count
    ]
    if not rows:
        return []
    rows.append(("all", pages.discovered, "100 %".rjust(_SHARE)))
    return layout.section(
        "What became of the URLs", layout.table(["outcome", "URLs", "share"], rows)
    )


def causes_section(account: Coverage) -> list[str]:
    """What was not covered, by rule, with an example each."""
    rows = [
        (_what(cause), cause.rule or "", cause.count - cause.robots_txt, cause.example)
        for cause in account.causes
        if cause.count > cause.robots_txt and _is_uncovered(cause)
    ]
    rows += [
        (f"rejected {cause.kind}", cause.rule, cause.count, cause.example)
        for cause in account.rejected
    ]
    return layout.section(
        "Not covered, and why",
        layout.some(["what", "rule", "count", "first example"], rows, CAUSES_SHOWN),
    )


def _is_uncovered(cause: Cause) -> bool:
    is_kept_out = cause.state in (State.SUPPRESSED.label, State.DEFERRED.label)
    return is_kept_out or cause.disposition not in (None, *COVERED)


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
        if kind.total
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
        (account.robots_txt.attempts, f"{number(account.robots_txt.attempts)} for a robots.txt"),
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
    return layout.section("Origins", layout.some(headings, rows, ORIGINS_SHOWN))


def _origin_row(origin: OriginAccount) -> tuple[str | int, ...]:
    closed = (State.TERMINAL.label, State.SUPPRESSED.label, State.DEFERRED.label)
    still_open = sum(n for state, n in origin.identities.items() if state not in closed)
    return (
        layout.shorten(origin.origin, 36),
        sum(origin.identities.values()) - origin.robots_txt,
        still_open,
        origin.attempts,
        *(origin.by_status.get(status, 0) for status in ("2xx", "3xx", "4xx", "5xx", "none")),
        layout.size(origin.bytes).rjust(8),
    )


def redirects_section(account: Coverage) -> list[str]:
    """Redirects in a line, and those refused by rule."""
    redirects, hops = account.redirects, pages_of(account).hops
    if not hops and not redirects.refused:
        return []
    line = f"  {counted(hops, 'hop')} followed, {number(redirects.cross_origin)} to another origin."
    refused = [f"  refused: {rule} {number(count)}" for rule, count in redirects.refused.items()]
    return layout.section("Redirects", [line, *refused])


def budgets_section(account: Coverage) -> list[str]:
    """What budgets cut."""
    rows = [
        (
            one.rule,
            one.pattern or "",
            "" if one.limit is None else f"{one.limit:,}",
            _cut(one),
            one.first_example or "",
        )
        for one in account.budgets
    ]
    headings = ["rule", "pattern", "limit", "cut", "first example"]
    return layout.section("Budgets", layout.some(headings, rows, CAUSES_SHOWN))


def _cut(budget: Budget) -> str:
    let_in = budget.held - budget.deferred - budget.suppressed
    counts = [
        (budget.suppressed, "excluded"),
        (budget.deferred, "held back"),
        (let_in, "let in later"),
        (budget.rejected, "rejected"),
        (budget.failed, "attempts"),
        (budget.unresolved, "left in the queue"),
    ]
    return ", ".join(f"{number(count)} {what}" for count, what in counts if count > 0)


def unfinished_section(account: Coverage) -> list[str]:
    """The parts of the web in which something is left."""
    left = account.unfinished
    rows = [
        (one.place, one.unresolved, one.deferred, ", ".join(one.by_rule), one.example)
        for one in left.regions
    ]
    headings = ["place", "unresolved", "held back", "by rule", "first example"]
    lines = layout.some(headings, rows, ORIGINS_SHOWN)
    if left.looked_at < left.identities:
        lines.append(
            f"  (made from the first {number(left.looked_at)} of {number(left.identities)})"
        )
    if left.scope is not None:
        scope = json.dumps(dict(left.scope), ensure_ascii=False)
        lines.append("  A run of just these: FRONTIER_SCOPE = " + scope)
    return layout.section("Unfinished", lines)


def dead_letters_section(account: Coverage) -> list[str]:
    """URLs that failed for good."""
    rows = [
        (one.reason, one.why_not or "", one.attempts, one.transitions, one.url)
        for one in account.deadletters
        if not one.is_robots_txt
    ]
    headings = ["reason", "not again", "attempts", "transitions", "URL"]
    return layout.section("Dead letters", layout.some(headings, rows, DEAD_LETTERS_SHOWN))


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
            title, layout.some(["name", "count", "first example"], rows, CAUSES_SHOWN)
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
