"""The projection held against the fold of the ledger (invariant 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.names import label
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.columns import Columns
    from scrapy_frontier.report.findings import Findings

_CURRENT: Final = (
    "SELECT identity_id, run_id, origin_id, last_seq, state, disposition, reason_id, attempt_id,"
    " generation, due_ms FROM current"
)
_MISSING: Final = (
    "SELECT identity_id FROM identity AS i WHERE NOT EXISTS"
    " (SELECT 1 FROM current AS c WHERE c.identity_id = i.identity_id)"
)
_BATCH: Final = 20_000

_TIMED: Final = (State.RETRYABLE, State.DEFERRED)
"""The states in which a time may hold an identity."""


def compare_projection(
    connection: Connection, run_id: int | None, columns: Columns, findings: Findings
) -> None:
    """Compare each row of the projection with what the replay left in `columns`."""
    only = "" if run_id is None else f" WHERE run_id = {run_id:d}"
    cursor = connection.connection.cursor()
    cursor.execute(f"{_CURRENT}{only} ORDER BY identity_id")
    size = columns.size
    fields = (
        columns.run,
        columns.origin,
        columns.last_seq,
        columns.state,
        columns.disposition,
        columns.reason,
        columns.attempt,
        columns.generation,
    )
    run, origin, last_seq, state, disposition, reason, attempt, generation = (
        column.view for column in fields
    )
    dispatches = columns.dispatches.view
    while rows := cursor.fetchmany(_BATCH):
        for row in rows:
            number = row[0]
            if not 0 < number < size or not run[number]:
                findings.add(1, number, "the projection has a row of no identity")
                continue
            fold = (
                number,
                run[number],
                origin[number],
                last_seq[number],
                state[number],
                disposition[number],
                reason[number],
                attempt[number],
                generation[number],
            )
            if row[:9] != fold:
                _blame(row, fold, findings)
            if row[9] and row[4] not in _TIMED:
                findings.add(1, number, f"a time is due, but it is {label(State, row[4])}")
            if dispatches[number]:
                findings.add(
                    3, number, f"dispatch events less attempts: {dispatches[number]}, not 0"
                )
    _find_missing(connection, run_id, findings)


def _find_missing(connection: Connection, run_id: int | None, findings: Findings) -> None:
    only = "" if run_id is None else f" AND run_id = {run_id:d}"
    for identity in connection.scalars(text(f"{_MISSING}{only}")):
        findings.add(1, identity, "the projection has no row of it")


_FIELDS: Final = (
    "identity",
    "run",
    "origin",
    "last seq",
    "state",
    "disposition",
    "reason",
    "attempt",
    "generation",
)


def _blame(row: tuple[Any, ...], fold: tuple[int, ...], findings: Findings) -> None:
    for field, stored, folded in zip(_FIELDS, row, fold, strict=False):
        if stored != folded:
            findings.add(
                1,
                row[0],
                f"{field} is {_shown(field, stored)} in the projection,"
                f" {_shown(field, folded)} by the ledger",
            )


def _shown(field: str, number: int) -> str:
    if field == "state":
        return label(State, number)
    if field == "disposition" and number:
        return label(Disposition, number)
    return str(number)
