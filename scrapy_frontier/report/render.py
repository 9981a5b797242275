"""The coverage report as text: the long form, and the few lines that close a crawl's log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.report.pages import COVERED, pages_of
from scrapy_frontier.report.render_families import duplicates_section, families_section
from scrapy_frontier.report.robots.records import robots_origin
from scrapy_frontier.report.robots.tables import robots_section, robots_txt_sentence
from scrapy_frontier.report.stops import stop_sentence
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
    from scrapy_frontier.report.pages import Pages

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
        f"Admitted: {_listed(pages.terminal) or '0 ended'};"
        f" unresolved: {_listed(pages.unresolved) or 'none'}",
        *_named("Excluded", pages.suppressed),
        *_named("Held back", pages.deferred),
        *_robots_line(account),
        f"References: {number(pages.references)}, {number(pages.duplicates)} duplicates,"
        f" {number(_total(references.rejected))} rejected",
        *_named("Rejected", references.rejected),
        f"Attempts: {number(attempts.total)}, {counted(attempts.retries, 'retry', 'retries')};"
        f" {_listed(attempts.by_outcome) or 'no outcome yet'}",
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
        lines += layout.labelled("", [f"({_detail(account.stop.detail)})"], 0)
    return [*lines, f"{times}, {sessions}, policy version {run.policy_version}."]


def _summary(account: Coverage) -> list[str]:
    pages = pages_of(account)
    found = [one for one in account.origins if sum(one.identities.values()) > one.robots_txt]
    origins = len({robots_origin(one.origin) for one in found})
    parts = {
        "Asked": [
            f"{counted(pages.references, 'reference')} to"
            f" {counted(pages.discovered, 'different URL')} on {counted(origins, 'origin')}."
        ],
        "Covered": [
            f"{number(pages.covered)} of {number(pages.admitted)} admitted"
            f" ({layout.share(pages.covered, pages.admitted)}),"
            f" in {counted(pages.attempts, 'attempt')}."
        ],
        "Not covered": _not_covered(account, pages),
        "Unresolved": [_sentence(pages.unresolved), *_waiting(account)],
        "Robots.txt": _robots_txt(account, pages),
        "Account": _account_lines(account),
    }
    return [
        line for label, texts in parts.items() for line in layout.labelled(label, texts, _MARGIN)
    ]


def _not_covered(account: Coverage, pages: Pages) -> list[str]:
    counts = {
        "excluded by rules": pages.excluded,
        "held back": pages.held_back,
        **{
            end.replace("_", " "): count
            for end, count in pages.terminal.items()
            if end not in COVERED
        },
    }
    lines = [_sentence({name: count for name, count in counts.items() if count})]
    if account.references.rejected:
        rejected = counted(_total(account.references.rejected), "reference")
        lines.append(f"{rejected} could not be requested at all.")
    return lines


def _waiting(account: Coverage) -> list[str]:
    waiting = sum(one.waiting for one in account.robots)
    wait = counted(waiting, "URL waits", "URLs wait")
    return [f"{wait} for a robots.txt that cannot be had."] if waiting else []


def _robots_txt(account: Coverage, pages: Pages) -> list[str]:
    """What the lines above leave out, and how it comes to the numbers of the account."""
    robots_txt = account.robots_txt
    if not robots_txt.identities:
        return []
    sums = (
        (pages.discovered, robots_txt.identities, "identities"),
        (pages.attempts, robots_txt.attempts, "attempts"),
        (pages.references, robots_txt.references, "references"),
    )
    written = ", ".join(
        f"{number(one)} + {number(two)} = {number(one + two)} {what}" for one, two, what in sums
    )
    return [
        f"{robots_txt_sentence(robots_txt)}.",
        f"They are left out above. The account has them too: {written}.",
    ]


def _robots_line(account: Coverage) -> list[str]:
    if not account.robots_txt.identities:
        return []
    return [f"Besides: {robots_txt_sentence(account.robots_txt)}"]


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
