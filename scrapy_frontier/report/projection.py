"""The projection held against the fold of the ledger (invariant 1)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.report.names import label
from scrapy_frontier.states import Disposition, State
from scrapy_frontier.store.rows import stream_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from scrapy_frontier.report.columns import Columns
    from scrapy_frontier.report.findings import Findings

_FIELDS: Final = (
    "run",
    "origin",
    "last seq",
    "state",
    "disposition",
    "reason",
    "attempt",
    "generation",
)
"""What the ledger decides of a row, by the names of `Columns`, in the order of `_CURRENT`."""

_CURRENT: Final = (
    "SELECT identity_id, run_id, origin_id, last_seq, state, disposition, reason_id, attempt_id,"
    " generation, due_ms FROM current"
)
_STATE: Final = 1 + _FIELDS.index("state")
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
    # Past SQLAlchemy's rows, which cost more than the comparison of one.
    with closing(stream_of(connection)) as cursor:
        cursor.execute(f"{_CURRENT}{only} ORDER BY identity_id")
        while rows := cursor.fetchmany(_BATCH):
            _compare(list(rows), columns, findings)
    _find_missing(connection, run_id, findings)


def _compare(rows: Sequence[tuple[int, ...]], columns: Columns, findings: Findings) -> None:
    folded = [getattr(columns, name.replace(" ", "_")).view for name in _FIELDS]
    runs, dispatches = columns.run.view, columns.dispatches.view
    for row in rows:
        identity, *stored, due_ms = row
        if not 0 < identity < columns.size or not runs[identity]:
            findings.add(1, identity, "the projection has a row of no identity")
            continue
        fold = [view[identity] for view in folded]
        if stored != fold:
            _blame(identity, stored, fold, findings)
        if due_ms and row[_STATE] not in _TIMED:
            findings.add(1, identity, f"a time is due, but it is {label(State, row[_STATE])}")
        if dispatches[identity]:
            less = dispatches[identity]
            findings.add(3, identity, f"dispatch events less attempts: {less}, not 0")


def _find_missing(connection: Connection, run_id: int | None, findings: Findings) -> None:
    only = "" if run_id is None else f" AND run_id = {run_id:d}"
    for identity in connection.scalars(text(f"{_MISSING}{only}")):
        findings.add(1, identity, "the projection has no row of it")


def _blame(identity: int, stored: Sequence[int], fold: Sequence[int], findings: Findings) -> None:
    for field, is_, should in zip(_FIELDS, stored, fold, strict=True):
        if is_ != should:
            findings.add(
                1,
                identity,
                f"{field} is {_shown(field, is_)} in the projection,"
                f" {_shown(field, should)} by the ledger",
            )


def _shown(field: str, number: int) -> str:
    if field == "state":
        return label(State, number)
    if field == "disposition" and number:
        return label(Disposition, number)
    return str(number)
