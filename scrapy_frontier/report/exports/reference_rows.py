"""Pages of edges, observed references and rejections, as exports write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.exports.ledger_rows import page
from scrapy_frontier.report.names import label, select_in
from scrapy_frontier.store.edges import unpack, unpack_observations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from scrapy_frontier.report.exports.moment import Moment

_EMISSIONS: Final = (
    "SELECT emission_id, run_id, source_id, attempt_id, kind, {column} FROM emission"
    " WHERE run_id = :run AND emission_id > :after AND emission_id <= :upto"
    " AND {column} IS NOT NULL ORDER BY emission_id"
)
_REJECTIONS: Final = (
    "SELECT j.rejection_id, j.run_id, j.kind, j.source_id, r.code, j.observed"
    " FROM rejection AS j LEFT JOIN reason AS r ON r.reason_id = j.reason_id"
    " WHERE j.run_id = :run AND j.rejection_id > :after AND j.rejection_id <= :upto"
    " ORDER BY j.rejection_id"
)


def edges(connection: Connection, moment: Moment, after: int, upto: int) -> list[tuple[Any, ...]]:
    """One row for each reference that led to an identity; a page may refer to one more than once."""
    query = _EMISSIONS.format(column="targets")
    emissions = [
        (*row[:5], unpack(bytes(row.targets)))
        for row in page(connection, query, moment, after, upto)
    ]
    named = {source for _, _, source, _, _, _ in emissions}.union(
        *(targets for *_, targets in emissions)
    )
    known = _urls(connection, named - {0})
    return [
        (
            emission,
            run,
            label(ReferenceKind, kind),
            attempt or None,
            source or None,
            known.get(source),
            target,
            known.get(target),
        )
        for emission, run, source, attempt, kind, targets in emissions
        for target in targets
    ]


def references(
    connection: Connection, moment: Moment, after: int, upto: int
) -> list[tuple[Any, ...]]:
    """One row for each reference whose spelling is kept; one that was refused has no target."""
    query = _EMISSIONS.format(column="observations")
    emissions = [
        (*row[:5], unpack_observations(bytes(row.observations)))
        for row in page(connection, query, moment, after, upto)
    ]
    named = {seen.target for *_, observed in emissions for seen in observed}
    known = _urls(connection, (named | {source for _, _, source, _, _, _ in emissions}) - {0})
    return [
        (
            emission,
            run,
            label(ReferenceKind, kind),
            source or None,
            known.get(source),
            seen.target or None,
            known.get(seen.target),
            seen.observed,
            seen.fragment or None,
            seen.tag or None,
            seen.rel or None,
            seen.text or None,
            seen.is_followed,
        )
        for emission, run, source, _, kind, observed in emissions
        for seen in observed
    ]


def rejections(
    connection: Connection, moment: Moment, after: int, upto: int
) -> list[tuple[Any, ...]]:
    """One row for each reference without a fetch key, and the rule that refused it."""
    rows = page(connection, _REJECTIONS, moment, after, upto)
    known = _urls(connection, {row.source_id for row in rows} - {0})
    return [
        (
            row.rejection_id,
            row.run_id,
            label(ReferenceKind, row.kind),
            row.source_id or None,
            known.get(row.source_id),
            row.code,
            row.observed,
        )
        for row in rows
    ]


def _urls(connection: Connection, identity_ids: Iterable[int]) -> dict[int, str]:
    query = "SELECT identity_id, url FROM identity WHERE identity_id IN :ids"
    return {row.identity_id: row.url for row in select_in(connection, query, identity_ids)}
