"""The structural signature of a URL: the family that it belongs to, and what makes it suspicious.

A family is a path shape and parameter names with the shapes of their values, on one origin::

    /2031/05/12/                      /{year}/**          (all pages of a calendar are one family)
    /library/os.html                  /library/{name}.html
    /api/org/example/Thing.html       /api/**/{name}.html
    /boots/?size=M&colour=red         /{name}/?colour={text}&size={text}
    /page;jsessionid=9F0A?sid=17      /{name}             (what names a session is no part of a shape)

Signatures are cached, and have a version: a stored shape of another version is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from scrapy_frontier.policy.traps import names
from scrapy_frontier.policy.traps.segments import (
    DATE,
    HEX,
    NUMBER,
    UUID,
    date_of,
    file_type,
    type_of,
)

SIGNATURE_VERSION: Final = 1

CALENDAR: Final = "calendar"
SEARCH: Final = "search"
SORT: Final = "sort"
PAGINATION: Final = "pagination"
FACETS: Final = "facets"
QUERY: Final = "query"
PLAIN: Final = "plain"

REPEATS: Final = 3
"""How often a group of segments stands in a row in a path that is suspicious for it."""
DEEP: Final = 30
"""Segments from which on any path is suspicious."""
LONGEST_GROUP: Final = 4
"""Segments of the longest group that is looked for."""
SESSION_DIGITS: Final = 12
"""Hexadecimal digits from which on a directory may be a session's."""


class Signature(NamedTuple):
    """What the spelling of a path and query says.

    `trait` is the suspicious thing about the family, `PLAIN` for none. `plain` is the URL without what names a
    session and with its parameters in order: two URLs that agree in it differ in nothing that should matter
    (`has_session`, or else another order of `parameters`).
    `parameters` are the names that narrow or arrange (no session, no page number). `path_shape` is the shape without
    the query. `date` is that of the URL as a number, `20310512`, with zeros for what it lacks.
    """

    shape: str
    path_shape: str
    trait: str
    directories: tuple[str, ...]
    last: str
    plain: str
    parameters: frozenset[str]
    has_session: bool
    has_order: bool
    is_repeating: bool
    date: int | None

    @property
    def year(self) -> int | None:
        """The year of the date in the URL."""
        return None if self.date is None else self.date // 10_000


@lru_cache(maxsize=32_768)
def signature_of(target: str) -> Signature:
    """The signature of a path with its query, as a request URL has them."""
    path, _, query = target.partition("?")
    path, has_session = _without_session(path)
    segments = path.split("/")[1:]
    pairs = _pairs(query)
    kept = [pair for pair in pairs if not names.is_session(*pair)]
    has_session = has_session or len(kept) != len(pairs)
    segments, has_path_session = _without_session_directory(segments)
    path_shape, date = _path_shape(segments)
    ordered = sorted(kept)
    date = date or _date_of_query(kept)
    plain_path = "/" + "/".join(segments)
    plain_query = "&".join(f"{name}={value}" for name, value in ordered)
    return Signature(
        shape=path_shape + _query_shape(ordered),
        path_shape=path_shape,
        trait=_trait(segments, kept, date),
        directories=tuple(segments[:-1]) if segments[-1] else tuple(segments[:-2]),
        last=segments[-1] or "/".join(segments[-2:]),
        plain=f"{plain_path}?{plain_query}" if kept else plain_path,
        parameters=frozenset(pair[0] for pair in kept if not names.is_page(*pair)),
        has_session=has_session or has_path_session,
        has_order=len(kept) > 1,
        is_repeating=_is_repeating(segments),
        date=date,
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    parts = query.replace(";", "&").split("&")
    return [(name, value) for name, _, value in (part.partition("=") for part in parts if part)]


def _without_session(path: str) -> tuple[str, bool]:
    """Path parameters that name a session: `;jsessionid=...`."""
    if ";" not in path:
        return path, False
    kept = [part for part in path.split(";") if not names.is_session(*_pair(part))]
    return ";".join(kept), len(kept) != path.count(";") + 1


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name, value


def _without_session_directory(segments: list[str]) -> tuple[list[str], bool]:
    """A directory that looks like a session's: `/(S(x1y2))/`, or many hexadecimal digits above the last segment."""
    above = len(segments) - (1 if segments[-1] else 2)
    for index, segment in enumerate(segments[:above]):
        is_aspnet = segment.startswith("(S(") and segment.endswith("))")
        if is_aspnet or (len(segment) >= SESSION_DIGITS and type_of(segment) in (HEX, UUID)):
            return segments[:index] + segments[index + 1 :], True
    return segments, False


def _path_shape(segments: Sequence[str]) -> tuple[str, int | None]:
    """The shape of the path: the first directory by name, deeper ones together, the last segment by its type."""
    typed, date = _dated(segments)
    if date is not None:
        return "/" + "/".join(typed), date
    is_directory = not segments[-1]
    named = segments[:-1] if is_directory else segments
    if not named:
        return "/", None
    end = file_type(named[-1]) + ("/" if is_directory else "")
    above = [type_of(segment) or segment for segment in named[:-1]]
    if len(above) > 1:
        above = [above[0], "**"] if above[-1] != "page" else [above[0], "**", "page"]
    return "/" + "".join(f"{segment}/" for segment in above) + end, None


def _dated(segments: Sequence[str]) -> tuple[list[str], int | None]:
    """The segments down to the first date or year, if the path has one, and that date."""
    for index, segment in enumerate(segments):
        if type_of(segment) == DATE:
            above = [type_of(one) or one for one in segments[:index]]
            return [*above, DATE, *(["**"] if any(segments[index + 1 :]) else [])], date_of(segment)
        if _is_number(segment, 4, 1000, 9999) and _is_number(
            segments[index + 1] if index + 1 < len(segments) else "", 2, 1, 12
        ):
            above = [type_of(one) or one for one in segments[:index]]
            date = int(segment) * 10_000 + int(segments[index + 1]) * 100
            if index + 2 < len(segments) and _is_number(segments[index + 2], 2, 1, 31):
                date += int(segments[index + 2])
            return [*above, "{year}", "**"], date
    return list(segments), None


def _is_number(text: str, longest: int, low: int, high: int) -> bool:
    return (
        0 < len(text) <= longest
        and text.isascii()
        and text.isdecimal()
        and low <= int(text) <= high
    )


def _date_of_query(pairs: Sequence[tuple[str, str]]) -> int | None:
    """The date of a parameter that is one, or that of parameters named year and month."""
    by_name = {name.lower(): value for name, value in pairs}
    for value in by_name.values():
        if type_of(value) == DATE:
            return date_of(value)
    year = by_name.get("year", by_name.get("y", ""))
    month = by_name.get("month", by_name.get("m", ""))
    if not _is_number(year, 4, 1000, 9999) or not _is_number(month, 2, 1, 12):
        return None
    day = by_name.get("day", by_name.get("d", ""))
    return int(year) * 10_000 + int(month) * 100 + (int(day) if _is_number(day, 2, 1, 31) else 0)


def _query_shape(pairs: Sequence[tuple[str, str]]) -> str:
    if not pairs:
        return ""
    return "?" + "&".join(f"{name}={_value_shape(value)}" for name, value in pairs)


def _value_shape(value: str) -> str:
    found = type_of(value)
    return found if found in (NUMBER, DATE, HEX, UUID) else "{text}"


def _trait(segments: Sequence[str], pairs: Sequence[tuple[str, str]], date: int | None) -> str:
    if date is not None:
        return CALENDAR
    is_numbered = len(segments) > 1 and _is_number(segments[-1] or segments[-2], 9, 0, 10**9)
    if not pairs:
        above = segments[-3:-1] if not segments[-1] else segments[-2:-1]
        return PAGINATION if is_numbered and above and names.is_page(above[0]) else PLAIN
    parameters = {name for name, _ in pairs}
    if any(names.is_search(name) for name in parameters):
        return SEARCH
    if any(names.is_sort(name) for name in parameters):
        return SORT
    if all(names.is_page(*pair) for pair in pairs):
        return PAGINATION
    return QUERY


def _is_repeating(segments: Sequence[str]) -> bool:
    """Whether a group of segments stands in a row several times, or the path is deeper than any site is."""
    count = len(segments)
    if count > DEEP:
        return True
    if len(set(segments)) > count - REPEATS + 1:
        return False
    for size in range(1, min(LONGEST_GROUP, count // REPEATS) + 1):
        for start in range(count - size * REPEATS + 1):
            group = segments[start : start + size]
            if all(
                segments[start + size * n : start + size * (n + 1)] == group
                for n in range(1, REPEATS)
            ):
                return bool(group[0])
    return False
