"""The coverage report as text: the long form, and the few lines that close a crawl's log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.report.tables import (
    COVERED,
    attempts_section,
    budgets_section,
    causes_section,
    counted_sections,
    dead_letters_section,
    origins_section,
    outcomes_section,
    redirects_section,
    references_section,
    robots_section,
    sessions_section,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_frontier.report.account import Coverage

_MARGIN: Final = 13

_STOPS: Final = {
    "exhausted": "Finished: nothing was left to do.",
    "operator": "Stopped by the operator; it can be resumed.",
    "deadline": "Stopped at its deadline; it can be resumed.",
    "error": "Stopped by an error; it can be resumed.",
    "interrupted": "Interrupted: its process ended without closing it. It can be resumed.",
}


def render_long(account: Coverage) -> str:
    """The whole report: in a few lines first, then in tables. Ends with a newline."""
    lines = [
        *_heading(account),
        "",
        *_summary(account),
        *outcomes_section(account),
        *causes_section(account),
        *references_section(account),
        *attempts_section(account),
        *origins_section(account),
        *redirects_section(account),
        *robots_section(account),
        *budgets_section(account),
        *dead_letters_section(account),
        *counted_sections(account),
        *sessions_section(account),
        *layout.section("The account, equation by equation", _equations(account)),
    ]
    return "\n".join(lines) + "\n"


def render_short(account: Coverage) -> str:
    """At most twelve lines for the log of a crawl."""
    identities, references, attempts = account.identities, account.references, account.attempts
    lines = [
        f"Run {account.run.id} ({account.run.name}): {stop_sentence(account)}",
        f"URLs: {number(identities.discovered)} found = {number(identities.admitted)} admitted"
        f" + {number(_total(identities.suppressed))} excluded"
        f" + {number(_total(identities.deferred))} held back",
        f"Admitted: {_listed(identities.terminal) or '0 ended'};"
        f" unresolved: {_listed(identities.unresolved) or 'none'}",
        *_named("Excluded", identities.suppressed),
        *_named("Held back", identities.deferred),
        f"References: {number(references.total)}, {number(references.duplicates)} duplicates,"
        f" {number(_total(references.rejected))} rejected",
        *_named("Rejected", references.rejected),
        f"Attempts: {number(attempts.total)}, {counted(attempts.retries, 'retry', 'retries')};"
        f" {_listed(attempts.by_outcome) or 'no outcome yet'}",
        _verdict(account),
        *account.failed_equations[:2],
    ]
    return "\n".join(lines)


def stop_sentence(account: Coverage) -> str:
    """How the run ended, or that it goes on."""
    reason = account.stop.reason
    held_back = sum(account.identities.deferred.values())
    if reason == "exhausted" and held_back:
        held = counted(held_back, "URL is", "URLs are")
        return f"Finished: all that was admitted is done, and {held} held back."
    if reason is not None:
        if reason.startswith("budget:"):
            return f"Stopped by the budget {reason.partition(':')[2]}; it can be resumed."
        return _STOPS.get(reason, f"Ended: {reason}.")
    if account.run.state != "running":
        return f"Ended, state {account.run.state}, without a reason on record."
    if account.run.is_live:
        return "Running."
    return "Running, or interrupted: from here it cannot be told whether its process lives."


def _heading(account: Coverage) -> list[str]:
    run = account.run
    title = f"Run {run.id} ({layout.printable(run.name)}) of spider {layout.printable(run.spider)}"
    times = f"From {clock(run.started_at)}"
    if run.started_at and run.finished_at:
        times = _period(run.started_at, run.finished_at)
    sessions = counted(len(account.sessions), "session")
    lines = [title, "=" * len(title), stop_sentence(account)]
    if account.stop.reason not in (None, "exhausted") and account.stop.detail:
        lines += layout.labelled("", [f"({_detail(account.stop.detail)})"], 0)
    return [*lines, f"{times}, {sessions}, policy version {run.policy_version}."]


def _summary(account: Coverage) -> list[str]:
    identities, references = account.identities, account.references
    covered = sum(identities.terminal.get(end, 0) for end in COVERED)
    not_covered = {
        "excluded by rules": _total(identities.suppressed),
        "held back": _total(identities.deferred),
        **{
            end.replace("_", " "): count
            for end, count in identities.terminal.items()
            if end not in COVERED
        },
    }
    lost = [_sentence({name: count for name, count in not_covered.items() if count})]
    if references.rejected:
        rejected = counted(_total(references.rejected), "reference")
        lost.append(f"{rejected} could not be requested at all.")
    parts = {
        "Asked": [
            f"{counted(references.total, 'reference')} to"
            f" {counted(identities.discovered, 'different URL')}"
            f" on {counted(len(account.origins), 'origin')}."
        ],
        "Covered": [
            f"{number(covered)} of {number(identities.admitted)} admitted"
            f" ({layout.share(covered, identities.admitted)}),"
            f" in {counted(account.attempts.total, 'attempt')}."
        ],
        "Not covered": lost,
        "Unresolved": [_sentence(identities.unresolved)],
        "Account": _account_lines(account),
    }
    return [
        line for label, texts in parts.items() for line in layout.labelled(label, texts, _MARGIN)
    ]


def _account_lines(account: Coverage) -> list[str]:
    if account.reconciled:
        return [f"It adds up: all {len(account.equations)} equations hold."]
    return [
        "IT DOES NOT ADD UP:",
        *account.failed_equations,
        "Run `scrapy frontier verify`: it names the identities at fault.",
    ]


def _verdict(account: Coverage) -> str:
    if account.reconciled:
        return f"The account adds up: all {len(account.equations)} equations hold"
    failed = counted(len(account.failed_equations), "equation")
    return f"THE ACCOUNT DOES NOT ADD UP, {failed} failed; run `scrapy frontier verify`:"


def _equations(account: Coverage) -> list[str]:
    failed = set(account.failed_equations)
    return [
        f"  {'FAILS' if equation in failed else 'holds'}  {equation}"
        for equation in account.equations
    ]


def _total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _sentence(counts: Mapping[str, int]) -> str:
    return f"{_listed(counts)}." if counts else "None."


def _listed(counts: Mapping[str, int], limit: int = 6) -> str:
    named = [f"{number(count)} {name}" for name, count in counts.items()]
    more = len(named) - limit
    return ", ".join(named[:limit]) + (f" and {more} more" if more > 0 else "")


def _named(label: str, counts: Mapping[str, int]) -> list[str]:
    return [f"{label}: {_listed(counts)}"] if counts else []


def _detail(detail: object) -> str:
    if isinstance(detail, dict):
        return ", ".join(f"{name}: {value}" for name, value in detail.items())
    return str(detail)


def _period(start: str, end: str) -> str:
    started, ended = (datetime.fromisoformat(at.removesuffix("Z")) for at in (start, end))
    until = clock(end)
    if started.date() == ended.date():
        until = until.partition(" ")[2]
    lasted = layout.duration((ended - started).total_seconds())
    return f"From {clock(start).removesuffix(' UTC')} to {until}, {lasted}"
