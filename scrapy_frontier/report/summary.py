"""A run in a few sentences: what was asked, what was covered, what not and why, whether it adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.report.pages import COVERED, pages_of
from scrapy_frontier.report.robots.records import robots_origin
from scrapy_frontier.report.robots.tables import robots_txt_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_frontier.report.account import Coverage
    from scrapy_frontier.report.pages import Pages


def summary(account: Coverage) -> dict[str, list[str]]:
    """Sentences under a word each, the same in every form of the report."""
    pages = pages_of(account)
    found = [one for one in account.origins if sum(one.identities.values()) > one.robots_txt]
    origins = len({robots_origin(one.origin) for one in found})
    return {
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
        rejected = counted(total(account.references.rejected), "reference")
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


def _account_lines(account: Coverage) -> list[str]:
    if account.reconciled:
        return [f"It adds up: all {len(account.equations)} equations hold."]
    return [
        "IT DOES NOT ADD UP:",
        *account.failed_equations,
        "Run `scrapy frontier verify`: it names the identities at fault.",
    ]


def total(counts: Mapping[str, int]) -> int:
    """The counts added up."""
    return sum(counts.values())


def _sentence(counts: Mapping[str, int]) -> str:
    return f"{listed(counts)}." if counts else "None."


def listed(counts: Mapping[str, int], limit: int = 6) -> str:
    """Counts and their names on one line, the first `limit` of them."""
    named = [f"{number(count)} {name}" for name, count in counts.items()]
    more = len(named) - limit
    return ", ".join(named[:limit]) + (f" and {more} more" if more > 0 else "")


def detail_words(detail: object) -> str:
    """What stands beside a stop reason, on one line."""
    if isinstance(detail, dict):
        return ", ".join(f"{name}: {value}" for name, value in detail.items())
    return str(detail)
