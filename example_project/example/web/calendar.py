"""The village calendar: a page for each month and each day, and always a link to the next.

It is correct, it is useful, and it never ends: a crawler needs a bound of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import MAXYEAR, date, timedelta

from example.web.almanac import MONTHS
from example.web.pages import html, link, listing, pick
from scrapy_frontier.testing import Answer, Origin, Request

FIRST = date(2024, 1, 1)
PATH = re.compile(r"/(\d{4})/(\d\d)/(?:(\d\d)/)?")
EVENTS = ("choir", "council", "dance", "fair", "market", "nothing", "nothing", "nothing")


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the calendar on `site`."""
    site.on("/", html("Calendar", listing([(month_path(FIRST), f"{MONTHS[0]} {FIRST.year}")])))
    site.on("/*", answer)


def answer(request: Request) -> Answer:
    """The page of a month or of a day; 404 for what is no date, or one too far away."""
    match = PATH.fullmatch(request.path)
    if not match or int(match[1]) == MAXYEAR:
        return not_found()
    year, month, day = match.groups(default="1")
    try:
        shown = date(int(year), int(month), int(day))
    except ValueError:
        return not_found()
    return day_page(shown) if match[3] else month_page(shown)


def not_found() -> Answer:
    return html("No such day", f"<p>{link('/', 'Calendar')}</p>", status=404)


def month_path(day: date) -> str:
    return f"/{day.year:04}/{day.month:02}/"


def day_path(day: date) -> str:
    return f"{month_path(day)}{day.day:02}/"


def month_page(first: date) -> Answer:
    following = next_month(first)
    days = [first + timedelta(days=n) for n in range((following - first).days)]
    return html(
        f"{MONTHS[first.month - 1]} {first.year}",
        listing((day_path(day), f"{day.day}: {event(day)}") for day in days)
        + f"<p>{link(month_path(following), 'next month')}</p>",
    )


def day_page(day: date) -> Answer:
    following = day + timedelta(days=1)
    return html(
        f"{day.day} {MONTHS[day.month - 1]} {day.year}",
        f"<p>On this day: {event(day)}.</p><p>{link(day_path(following), 'next day')} | "
        f"{link(month_path(day), 'month')}</p>",
    )


def next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def event(day: date) -> str:
    return pick(EVENTS, day.isoformat())
