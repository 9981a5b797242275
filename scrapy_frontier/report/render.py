"""The coverage report as text: the long form, and the few lines that close a crawl's log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.report.pages import pages_of
from scrapy_frontier.report.render_families import duplicates_section, families_section
from scrapy_frontier.report.render_rendering import rendering_section
from scrapy_frontier.report.robots.tables import robots_section, robots_txt_sentence
from scrapy_frontier.report.stops import stop_sentence
from scrapy_frontier.report.summary import detail_words, listed, summary, total
from scrapy_frontier.report.tables import (
    attempts_section,
    budgets_section,
    causes_section,
    counted_sections,
    dead_letters_section,
    origins_section,
    outcomes_section,
    redirects_section,
    references_section,
    sessions_section,
    unfinished_section,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_frontier.report.account import Coverage

_MARGIN: Final = 13


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
        *unfinished_section(account),
        *families_section(account),
        *duplicates_section(account),
        *rendering_section(account),
        *dead_letters_section(account),
        *counted_sections(account),
        *sessions_section(account),
        *layout.section("The account, equation by equation", _equations(account)),
    ]
    return "\n".join(lines) + "\n"


def render_short(account: Coverage) -> str:
    """At most twelve lines for the log of a crawl."""
    pages, references, attempts = pages_of(account), account.references, account.attempts
    lines = [
        f"Run {account.run.id} ({account.run.name}): {stop_sentence(account)}",
        f"URLs: {number(pages.discovered)} found = {number(pages.admitted)} admitted"
        f" + {number(pages.excluded)} excluded + {number(pages.held_back)} held back",
        f"Admitted: {listed(pages.terminal) or '0 ended'};"
        f" unresolved: {listed(pages.unresolved) or 'none'}",
        *_named("Excluded", pages.suppressed),
        *_named("Held back", pages.deferred),
        *_robots_line(account),
        f"References: {number(pages.references)}, {number(pages.duplicates)} duplicates,"
        f" {number(total(references.rejected))} rejected",
        *_named("Rejected", references.rejected),
        f"Attempts: {number(attempts.total)}, {counted(attempts.retries, 'retry', 'retries')};"
        f" {listed(attempts.by_outcome) or 'no outcome yet'}",
        _verdict(account),
        *account.failed_equations[:2],
    ]
    return "\n".join(lines)


def _heading(account: Coverage) -> list[str]:
    run = account.run
    title = f"Run {run.id} ({layout.printable(run.name)}) of spider {layout.printable(run.spider)}"
    times = f"From {clock(run.started_at)}"
    if run.started_at and run.finished_at:
        times = _period(run.started_at, run.finished_at)
    sessions = counted(len(account.sessions), "session")
    lines = [title, "=" * len(title), *layout.labelled("", [stop_sentence(account)], 0)]
    if account.stop.reason not in (None, "exhausted") and account.stop.detail:
        lines += layout.labelled("", [f"({detail_words(account.stop.detail)})"], 0)
    return [*lines, f"{times}, {sessions}, policy version {run.policy_version}."]


def _summary(account: Coverage) -> list[str]:
    return [
        line
        for label, texts in summary(account).items()
        for line in layout.labelled(label, texts, _MARGIN)
    ]


def _robots_line(account: Coverage) -> list[str]:
    if not account.robots_txt.identities:
        return []
    return [f"Besides: {robots_txt_sentence(account.robots_txt)}"]


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


def _named(label: str, counts: Mapping[str, int]) -> list[str]:
    return [f"{label}: {listed(counts)}"] if counts else []


def _period(start: str, end: str) -> str:
    started, ended = (datetime.fromisoformat(at.removesuffix("Z")) for at in (start, end))
    until = clock(end)
    if started.date() == ended.date():
        until = until.partition(" ")[2]
    lasted = layout.duration((ended - started).total_seconds())
    return f"From {clock(start).removesuffix(' UTC')} to {until}, {lasted}"
