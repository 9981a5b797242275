"""Traps that go on for ever: a calendar, pages of an archive, a search, pages that are not there."""

from __future__ import annotations

import re
from datetime import date, timedelta
from urllib.parse import parse_qs, quote_plus

from scrapy_frontier.testing.zoo.site import TrapSite
from scrapy_frontier.testing.zoo.words import (
    WORDS,
    anchor,
    article,
    listing,
    number_of,
    page,
)

FIRST = date(2026, 1, 1)
EVENTFUL_DAYS = 60


class Calendar(TrapSite):
    """A page for each month and each day, and always a link to the next; something happens on the first 60 days."""

    name = "calendar"
    rules = frozenset({"calendar"})
    _days = tuple(FIRST + timedelta(days=n) for n in range(EVENTFUL_DAYS))

    @property
    def useful_names(self) -> frozenset[str]:
        days = {f"/calendar/{day:%Y/%m/%d}/" for day in self._days}
        return super().useful_names | days | {f"/calendar/{day:%Y/%m}/" for day in self._days}

    def entrance(self) -> list[tuple[str, str]]:
        return [(f"/calendar/{FIRST:%Y/%m}/", "Calendar")]

    def trap(self, target: str) -> str | None:
        match = re.fullmatch(r"/calendar/(\d{4})/(\d\d)/(?:(\d\d)/)?", target)
        if match is None:
            return None
        day = date(int(match[1]), int(match[2]), int(match[3] or 1))
        return self._day(day) if match[3] else self._month(day)

    def _day(self, day: date) -> str:
        text = (
            article("day", day.isoformat())
            if day in self._days
            else "<p>There are no events on this day.</p>"
        )
        turn = [(day - timedelta(days=1), "Day before"), (day + timedelta(days=1), "Day after")]
        links = listing((f"/calendar/{other:%Y/%m/%d}/", label) for other, label in turn)
        return page(f"Events on {day:%A}, {day.day} {day:%B %Y}", text + links)

    def _month(self, first: date) -> str:
        following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
        before = (first - timedelta(days=1)).replace(day=1)
        days = [first + timedelta(days=n) for n in range((following - first).days)]
        cells = listing((f"/calendar/{day:%Y/%m/%d}/", str(day.day)) for day in days)
        turn = [
            (f"/calendar/{before:%Y/%m}/", "Month before"),
            (f"/calendar/{following:%Y/%m}/", "Month after"),
        ]
        return page(
            f"Events in {first:%B %Y}",
            "<p>Choose a day to see its events.</p>" + cells + listing(turn),
        )


class Pagination(TrapSite):
    """The pages of an archive, with a link to the next one also behind the last."""

    name = "pagination"
    rules = frozenset({"pagination"})

    @property
    def useful_names(self) -> frozenset[str]:
        return super().useful_names | {f"/archive?page={n}" for n in self.lists}

    def entrance(self) -> list[tuple[str, str]]:
        return [("/archive?page=1", "Archive")]

    def trap(self, target: str) -> str | None:
        match = re.fullmatch(r"/archive\?page=(\d+)", target)
        if match is None:
            return None
        number = int(match[1])
        is_real = number in self.lists
        shown = article("archive", number) if is_real else "<p>There are no more entries here.</p>"
        turn = listing([(f"/archive?page={number + n}", f"Page {number + n}") for n in (1, 2, 3)])
        return page(f"Archive of all notes, page {number}", shown + turn)


class Search(TrapSite):
    """Results of a search, and other searches that somebody might want."""

    name = "search"
    rules = frozenset({"search"})

    def entrance(self) -> list[tuple[str, str]]:
        return [(f"/search?q={word}", f"Search for {word}") for word in WORDS[:3]]

    def trap(self, target: str) -> str | None:
        if not target.startswith("/search?"):
            return None
        words = parse_qs(target.partition("?")[2]).get("q", [""])[0]
        found = [self.articles[number_of(words, n) % len(self.articles)] for n in range(6)]
        results = listing((f"/articles/{n}.html", self.title(n)) for n in sorted(set(found)))
        more = [f"{words} {WORDS[number_of(words, 'more', n) % len(WORDS)]}" for n in range(4)]
        others = listing((f"/search?q={quote_plus(text)}", f"Search for {text}") for text in more)
        return page(f"Results for {words}", results + "<h2>Others searched for</h2>" + others)


class SoftNotFound(TrapSite):
    """Every address that is not there says so with status 200, and links on."""

    name = "soft-404"
    rules = frozenset({"soft_404"})

    def entrance(self) -> list[tuple[str, str]]:
        return [("/members/old-page/", "Members")]

    def trap(self, target: str) -> str | None:
        if self.plain(target) is not None:
            return None
        words = [WORDS[number_of(target, n) % len(WORDS)] for n in range(3)]
        links = listing((f"{word}/", "Perhaps this") for word in words)
        return page(
            "Not found",
            f"<p>Sorry, what you are looking for has moved to another place.</p>{links}",
        )


class TrailingSegments(TrapSite):
    """Each article has a printable form, and so has that, and so on."""

    name = "trailing segments"
    rules = frozenset({"trailing", "repeat"})

    def name_of(self, target: str) -> str:
        return re.sub(r"(?:/print)+$", "", target)

    def entrance(self) -> list[tuple[str, str]]:
        return []

    def beside(self, target: str) -> str:
        return f"<p>{anchor(f'{target}/print', 'Printable form')}</p>"

    def trap(self, target: str) -> str | None:
        bare = self.name_of(target)
        if bare == target:
            return None
        found = self.plain(bare)
        return found and found.replace(f'"{bare}/print"', f'"{target}/print"')


class Facets(TrapSite):
    """A shop whose lists are narrowed by three properties, and whose links keep the order of the choices."""

    name = "facets"
    rules = frozenset({"facets", "permutation"})
    FACETS = {
        "colour": ("red", "green", "blue", "grey"),
        "size": ("small", "medium", "large"),
        "brand": ("alder", "birch", "cedar"),
    }

    def entrance(self) -> list[tuple[str, str]]:
        return [(f"/shop/{n}", f"Department {n}") for n in range(1, 5)]

    @property
    def useful_names(self) -> frozenset[str]:
        return super().useful_names | {path for path, _ in self.entrance()}

    def trap(self, target: str) -> str | None:
        path, _, query = target.partition("?")
        match = re.fullmatch(r"/shop/([1-4])", path)
        if match is None:
            return None
        chosen = dict(part.split("=") for part in query.split("&") if part)
        articles = [n for n in self.articles if n % 4 == int(match[1]) % 4][:60]
        shown = [n for n in articles if all(self._has(n, *one) for one in chosen.items())]
        links = [
            (self._address(path, chosen, name, value), f"{name}: {value}")
            for name, values in self.FACETS.items()
            for value in values
        ]
        items = listing((f"/articles/{n}.html", self.title(n)) for n in shown)
        return page(f"Department {match[1]}", items + "<h2>Narrow</h2>" + listing(links))

    def _has(self, number: int, name: str, value: str) -> bool:
        values = self.FACETS[name]
        return values[number_of(name, number) % len(values)] == value

    def _address(self, path: str, chosen: dict[str, str], name: str, value: str) -> str:
        query = {key: one for key, one in chosen.items() if key != name}
        if chosen.get(name) != value:
            query[name] = value
        return (
            path + ("?" if query else "") + "&".join(f"{key}={one}" for key, one in query.items())
        )


class SortOrders(TrapSite):
    """Lists that can be sorted by six columns, each in two directions, on every one of their pages."""

    name = "sort orders"
    rules = frozenset({"sort", "facets", "permutation"})
    COLUMNS = ("name", "date", "price", "size", "author", "place")

    def name_of(self, target: str) -> str:
        return target

    def entrance(self) -> list[tuple[str, str]]:
        return []

    def beside(self, target: str) -> str:
        return self._orders(target) if target.startswith("/list/") else ""

    def _orders(self, path: str) -> str:
        ways = [(column, way) for column in self.COLUMNS for way in ("asc", "desc")]
        return listing(
            (f"{path}?sort={column}&dir={way}", f"{column} {way}") for column, way in ways
        )

    def trap(self, target: str) -> str | None:
        path, _, query = target.partition("?")
        match = re.fullmatch(r"/list/(\d+)\.html", path)
        if match is None or not query or int(match[1]) not in self.lists:
            return None
        items = sorted(self.listed(int(match[1])), key=lambda item: number_of(query, item[1]))
        return page(f"List {match[1]}", listing(items) + self._orders(path))
