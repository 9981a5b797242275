"""How families of URLs grew over the run, and what they brought."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.report.figures import ranges
from scrapy_frontier.report.html.facts import Growth
from scrapy_frontier.states import Event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from scrapy_frontier.report.html.facts import Timeline

FAMILIES_SHOWN: Final = 3
LEAST_URLS: Final = 20
"""A family with fewer has no curve to speak of."""

_NEW: Final = 0

_SIZES: Final = (
    "SELECT identity.family_id, count(*) FROM identity"
    " {where} AND identity.family_id > 0 GROUP BY identity.family_id"
)
_FAMILIES: Final = "SELECT family_id, name, braked_ms FROM family WHERE run_id = :run"
_STEP: Final = "(%s - {start}) / {width}"
_FOUND: Final = (
    f"SELECT i.family_id, {_STEP % 'transition.at_ms'} AS step, count(*) FROM transition"
    " JOIN identity AS i ON i.identity_id = transition.identity_id"
    f" {{{{where}}}} AND transition.event = {Event.DISCOVER:d} GROUP BY i.family_id, step"
)
_FETCHED: Final = (
    f"SELECT i.family_id, {_STEP % 'attempt.finished_ms'} AS step, count(*) FROM attempt"
    " JOIN identity AS i ON i.identity_id = attempt.identity_id"
    " {{where}} AND attempt.status IS NOT NULL GROUP BY i.family_id, step"
)
_BROUGHT: Final = (
    f"SELECT i.family_id, {_STEP % 'a.finished_ms'} AS step, count(*) FROM likeness"
    " JOIN identity AS i ON i.identity_id = likeness.identity_id"
    " JOIN attempt AS a ON a.attempt_id = likeness.attempt_id"
    f" {{{{where}}}} AND likeness.kind = {_NEW} GROUP BY i.family_id, step"
)
_CURVES: Final = (
    (_FOUND, "transition.seq"),
    (_FETCHED, "attempt.attempt_id"),
    (_BROUGHT, "likeness.attempt_id"),
)


def growth(connection: Connection, run_id: int, timeline: Timeline) -> tuple[Growth, ...]:
    """The curves of the families that a brake was put on, and of the largest others, in the slices of the run."""
    names = _shown(connection, run_id) if len(timeline.slices) > 1 else {}
    if not names:
        return ()
    found, fetched, brought = (
        _curves(connection, query, column, run_id, timeline, names) for query, column in _CURVES
    )
    made = []
    for number, name in names.items():
        origin, _, shape = name.partition(" ")
        made.append(Growth(origin, shape, found[number], fetched[number], brought[number]))
    return tuple(made)


def _shown(connection: Connection, run_id: int) -> dict[int, str]:
    sizes: dict[int, int] = {}
    only = f"identity.run_id = {run_id:d}"
    for family, count in ranges(connection, _SIZES, "identity.identity_id", only):
        sizes[family] = sizes.get(family, 0) + count
    rows = [
        (row.braked_ms is None, -sizes.get(row.family_id, 0), row.family_id, row.name)
        for row in connection.execute(text(_FAMILIES), {"run": run_id})
        if sizes.get(row.family_id, 0) >= LEAST_URLS
    ]
    return {family: name for _, _, family, name in sorted(rows)[:FAMILIES_SHOWN]}


def _curves(
    connection: Connection,
    query: str,
    column: str,
    run_id: int,
    timeline: Timeline,
    names: Mapping[int, str],
) -> dict[int, tuple[int, ...]]:
    """How many there were at the end of each slice, by family."""
    steps = {family: [0] * len(timeline.slices) for family in names}
    asked = query.format(start=timeline.slices[0].start_ms, width=timeline.width_ms)
    only = f"i.run_id = {run_id:d} AND i.family_id IN ({', '.join(map(str, names))})"
    for family, step, count in ranges(connection, asked, column, only):
        steps[family][min(max(step, 0), len(timeline.slices) - 1)] += count
    return {family: tuple(accumulate(counts)) for family, counts in steps.items()}
