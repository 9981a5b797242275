"""The redirects of a run: hops by the ledger, and where they lead by the emissions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.account import Redirects
from scrapy_frontier.report.names import origins_of, parsed, select_in, streamed
from scrapy_frontier.states import Event, State
from scrapy_frontier.store.edges import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from scrapy_frontier.report.figures import Figures
    from scrapy_frontier.report.names import Codes

_PART: Final = 5000

_EDGES: Final = (
    "SELECT source_id, targets FROM emission"
    f" WHERE run_id = :run AND kind = {ReferenceKind.REDIRECT:d} AND source_id > 0"
)
_SUPPRESSED: Final = (
    "SELECT identity_id, reason_id FROM current"
    f" WHERE state = {State.SUPPRESSED:d} AND identity_id IN :ids"
)


_CUT_SHORT: Final = (
    "SELECT t.detail, count(*) FROM transition AS t"
    " JOIN reason AS r ON r.reason_id = t.reason_id"
    " JOIN context AS c ON c.context_id = t.context_id"
    f" WHERE t.event = {Event.REDIRECT:d} AND r.code = 'redirect.refused' AND c.run_id = :run"
    " GROUP BY t.detail"
)
"""Refusals that no target shows: circles, spent budgets, several targets at once."""

_OWN_RULES: Final = ("redirect.", "location.")


def redirects(connection: Connection, run_id: int, figures: Figures, codes: Codes) -> Redirects:
    """Count the hops; refused are those whose target has no fetch key or is suppressed now, and those of cut chains."""
    refused: Counter[str] = Counter()
    cross_origin = 0
    for edges in _edges(connection, run_id):
        suppressed = dict(select_in(connection, _SUPPRESSED, [target for _, target in edges]))
        refused.update(codes[suppressed[target]] for _, target in edges if target in suppressed)
        cross_origin += _cross_origin(connection, edges, suppressed)
    for (kind, reason_id), found in figures.rejected.items():
        if kind == ReferenceKind.REDIRECT:
            refused[codes[reason_id]] += found.count
    for detail, count in connection.execute(text(_CUT_SHORT), {"run": run_id}):
        inputs = parsed(detail)
        rule = str(inputs.get("rule", "")) if isinstance(inputs, dict) else ""
        if rule.startswith(_OWN_RULES):
            refused[rule] += count
    return Redirects(
        hops=figures.events(Event.REDIRECT),
        cross_origin=cross_origin,
        refused=dict(sorted(refused.items(), key=lambda item: (-item[1], item[0]))),
    )


def _edges(connection: Connection, run_id: int) -> Iterator[list[tuple[int, int]]]:
    """(page, target) of the redirects, in parts."""
    result = connection.execute(streamed(_EDGES), {"run": run_id})
    for rows in result.partitions(_PART):
        yield [(source_id, target) for source_id, packed in rows for target in unpack(packed)]


def _cross_origin(
    connection: Connection, edges: Sequence[tuple[int, int]], suppressed: Mapping[int, int]
) -> int:
    origins = origins_of(connection, [number for edge in edges for number in edge])
    return sum(
        origins.get(source_id) != origins.get(target)
        for source_id, target in edges
        if target not in suppressed
    )
