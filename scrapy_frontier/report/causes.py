"""Why identities stand where they stand, and why references were rejected: rule, count, example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.account import Cause, RejectedCause
from scrapy_frontier.report.figures import StandingCount
from scrapy_frontier.report.names import label, select_in, streamed, urls
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.figures import Figures
    from scrapy_frontier.report.names import Codes
    from scrapy_frontier.report.robots.fetches import RobotsFetches

_Place = tuple[int, int, int]
"""State, disposition and reason id."""

_NEXT: Final = (
    "SELECT identity_id FROM current WHERE run_id = :run AND state = :state"
    " AND disposition = :disposition AND reason_id = :reason ORDER BY identity_id"
)


def causes(
    connection: Connection, run_id: int, figures: Figures, codes: Codes, fetches: RobotsFetches
) -> tuple[Cause, ...]:
    """The reasons of all identities, the most frequent first."""
    found: dict[_Place, StandingCount] = {}
    for (_, *where), group in figures.standing.items():
        state, disposition, reason_id = where
        known = found.setdefault((state, disposition, reason_id), StandingCount(0, group.example))
        known.count += group.count
        known.example = min(known.example, group.example)
    robots_txt = fetches.by_place()
    for place, group in found.items():
        if group.example in fetches.identities and group.count > robots_txt[place]:
            group.example = _first_page(connection, run_id, place, fetches)
    example = urls(connection, [group.example for group in found.values()])
    ordered = sorted(found.items(), key=lambda item: (-item[1].count, item[0]))
    return tuple(
        Cause(
            label(State, state),
            label(Disposition, disposition) if disposition else None,
            codes[reason_id] if reason_id else None,
            group.count,
            example.get(group.example, ""),
            robots_txt[state, disposition, reason_id],
        )
        for (state, disposition, reason_id), group in ordered
    )


def _first_page(connection: Connection, run_id: int, place: _Place, fetches: RobotsFetches) -> int:
    """The first identity that stands so and is no robots.txt."""
    state, disposition, reason_id = place
    values = {"run": run_id, "state": state, "disposition": disposition, "reason": reason_id}
    with connection.execute(streamed(_NEXT), values) as rows:
        return next((row[0] for row in rows if row[0] not in fetches.identities), 0)


def rejected_causes(
    connection: Connection, figures: Figures, codes: Codes
) -> tuple[RejectedCause, ...]:
    """The rules that rejected references, the most frequent first."""
    query = "SELECT rejection_id, observed, source_id FROM rejection WHERE rejection_id IN :ids"
    examples = [found.example for found in figures.rejected.values()]
    rows = {row.rejection_id: row for row in select_in(connection, query, examples)}
    pages = urls(connection, [row.source_id for row in rows.values() if row.source_id])
    ordered = sorted(figures.rejected.items(), key=lambda item: (-item[1].count, item[0]))
    return tuple(
        RejectedCause(
            codes[reason_id],
            label(ReferenceKind, kind),
            found.count,
            rows[found.example].observed,
            pages.get(rows[found.example].source_id),
        )
        for (kind, reason_id), found in ordered
    )


def is_of(rule: str, family: str) -> bool:
    """Whether a rule belongs to a family: `budget.depth` and `budget:depth` to `budget`."""
    return rule.replace(":", ".").split(".", 1)[0] == family
