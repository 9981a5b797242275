"""Robots.txt in the coverage report: what was fetched, and what it keeps from being fetched."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.robots import RobotsState, target_of
from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.states import Disposition

if TYPE_CHECKING:
    from scrapy_frontier.report.account import Coverage, RobotsAccount, RobotsTxtAccount

ORIGINS_SHOWN: Final = 20

STATES: Final = {
    RobotsState.PENDING.label: ("is not read yet", "are not read yet"),
    RobotsState.RULES.label: ("has rules", "have rules"),
    RobotsState.ALLOW_ALL.label: ("allows everything", "allow everything"),
    RobotsState.DISALLOW_ALL.label: ("cannot be had", "cannot be had"),
}
"""How a report calls the state of one record, and of several."""


def robots_txt_sentence(fetched: RobotsTxtAccount) -> str:
    """How many robots.txt were fetched, and what became of the others; without its full stop."""
    came = fetched.terminal.get(Disposition.SUCCEEDED.label, 0)
    came += fetched.terminal.get(Disposition.NOT_MODIFIED.label, 0)
    led_on = fetched.terminal.get(Disposition.REDIRECTED.label, 0)
    others = {
        "led to another URL": led_on,
        "could not be had": sum(fetched.terminal.values()) - came - led_on,
        "under way": sum(fetched.unresolved.values()),
    }
    parts = [f"{number(count)} {what}" for what, count in others.items() if count]
    fetches = counted(fetched.attempts, "attempt")
    return ", ".join([f"{number(came)} robots.txt fetched", *parts, f"in {fetches}"])


def robots_section(account: Coverage) -> list[str]:
    """What robots.txt keeps from being fetched, and the origins where it is in trouble."""
    rows = [
        (
            layout.shorten(one.origin, 34),
            _standing(one),
            one.excluded,
            one.suppressed - one.excluded,
            one.waiting,
            target_of(one.example) if one.example else "",
        )
        for one in account.robots
        if one.suppressed or one.waiting or one.trouble
    ]
    headings = ["origin", "robots.txt", "excluded", "by other", "waiting", "first example"]
    lines = layout.some(headings, rows, ORIGINS_SHOWN)
    return layout.section("Robots", [*lines, *_overall(account)])


def _standing(one: RobotsAccount) -> str:
    why = one.trouble or one.reason
    words = "nothing on record" if one.state is None else STATES[one.state][0]
    if one.is_standing_in:
        words = "old copy"
    return f"{words}: {why}" if one.trouble and why else words


def _overall(account: Coverage) -> list[str]:
    """All origins of the run in a line."""
    known = Counter(one.state for one in account.robots if one.state is not None)
    if not known:
        return []
    words = [
        f"{number(known[state])} {one if known[state] == 1 else several}"
        for state, (one, several) in STATES.items()
        if known[state]
    ]
    return [f"  Of {counted(known.total(), 'origin')} with a record, {', '.join(words)}."]
