"""What was rendered in a run: the pages, and what they asked for beside their documents, by page and by origin."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.policy import rendering as policy
from scrapy_frontier.report.figures import ranges
from scrapy_frontier.report.names import urls

if TYPE_CHECKING:
    from sqlalchemy import Connection

PAGES_LISTED: Final = 100
"""Rendered pages listed in one report, those that asked for the most first."""

CUTS: Final = frozenset({policy.TIME, policy.REQUESTS, policy.BYTES})
"""Limits that leave a page as it was; any other rule of a rendering is a failure."""


@dataclass(frozen=True, slots=True)
class OriginAsked:
    """What rendered pages asked for of one origin. `sent`: what went on the wire; the others a rule refused."""

    origin: str
    requests: int
    sent: int
    bytes: int
    by_outcome: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PageAsked:
    """What one rendering of a page asked for; `rule`: the limit or the failure that ended it, "" for none."""

    url: str
    requests: int
    sent: int
    bytes: int
    wall_s: float
    rule: str


@dataclass(frozen=True, slots=True)
class RenderingAccount:
    """The renderings of a run: how many, which failed or were cut short by which rule, seconds in the browser.

    `sub_requests` are counted by outcome and by type; what was sent of them is among the identities and attempts, too.
    """

    pages: int
    failed: Mapping[str, int]
    cut: Mapping[str, int]
    wall_s: float
    sub_requests: int
    bytes: int
    by_outcome: Mapping[str, int]
    by_type: Mapping[str, int]
    origins: tuple[OriginAsked, ...]
    heaviest: tuple[PageAsked, ...]


_PAGES: Final = "SELECT rendering.rule, count(*), sum(rendering.wall_ms) FROM rendering {where} GROUP BY rendering.rule"
_ASKED: Final = (
    "SELECT origin, type, outcome, sum(count), sum(bytes) FROM sub_request {where}"
    " GROUP BY origin, type, outcome"
)
_HEAVIEST: Final = (
    "SELECT r.identity_id, r.wall_ms, r.rule, coalesce(sum(s.count), 0) AS requests,"
    " coalesce(sum(CASE WHEN s.outcome LIKE 'http.%' OR s.outcome LIKE 'download.%' THEN s.count ELSE 0 END), 0),"
    " coalesce(sum(s.bytes), 0) FROM rendering AS r"
    " LEFT JOIN sub_request AS s ON s.attempt_id = r.attempt_id WHERE r.run_id = :run"
    " GROUP BY r.attempt_id, r.identity_id, r.wall_ms, r.rule"
    " ORDER BY requests DESC, r.attempt_id LIMIT :limit"
)


@dataclass(slots=True)
class _Sum:
    """Sub-requests added up."""

    requests: int = 0
    sent: int = 0
    bytes: int = 0
    by_outcome: Counter[str] = field(default_factory=Counter)


def rendering_account(connection: Connection, run_id: int) -> RenderingAccount:
    """The account of what a run rendered."""
    rules: Counter[str] = Counter()
    wall_ms = 0
    for rule, count, took_ms in ranges(
        connection, _PAGES, "rendering.attempt_id", f"rendering.run_id = {run_id:d}"
    ):
        rules[rule] += count
        wall_ms += int(took_ms)
    origins: defaultdict[str, _Sum] = defaultdict(_Sum)
    by_outcome: Counter[str] = Counter()
    by_type: Counter[str] = Counter()
    for origin, kind, outcome, count, size in ranges(
        connection, _ASKED, "sub_request.attempt_id", f"sub_request.run_id = {run_id:d}"
    ):
        found = origins[origin]
        found.requests += int(count)
        found.sent += int(count) if _is_sent(outcome) else 0
        found.bytes += int(size)
        found.by_outcome[outcome] += int(count)
        by_outcome[outcome] += int(count)
        by_type[kind] += int(count)
    return RenderingAccount(
        pages=rules.total(),
        failed={rule: n for rule, n in rules.most_common() if rule and rule not in CUTS},
        cut={rule: n for rule, n in rules.most_common() if rule in CUTS},
        wall_s=round(wall_ms / 1000, 3),
        sub_requests=by_outcome.total(),
        bytes=sum(one.bytes for one in origins.values()),
        by_outcome=dict(by_outcome.most_common()),
        by_type=dict(by_type.most_common()),
        origins=_origins(origins),
        heaviest=_heaviest(connection, run_id) if rules else (),
    )


def _is_sent(outcome: str) -> bool:
    return outcome.startswith(("http.", "download."))


def _origins(found: Mapping[str, _Sum]) -> tuple[OriginAsked, ...]:
    ordered = sorted(found, key=lambda origin: (-found[origin].requests, origin))
    return tuple(
        OriginAsked(
            origin,
            found[origin].requests,
            found[origin].sent,
            found[origin].bytes,
            dict(found[origin].by_outcome.most_common()),
        )
        for origin in ordered
    )


def _heaviest(connection: Connection, run_id: int) -> tuple[PageAsked, ...]:
    rows = connection.execute(text(_HEAVIEST), {"run": run_id, "limit": PAGES_LISTED}).all()
    names = urls(connection, [row[0] for row in rows])
    return tuple(
        PageAsked(
            names.get(number, ""), int(count), int(sent), int(size), round(took_ms / 1000, 3), rule
        )
        for number, took_ms, rule, count, sent, size in rows
    )
