"""Results of a run that were kept and not applied: those in quarantine, and those that came too late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock, iso
from scrapy_frontier.report.layout import counted
from scrapy_frontier.report.names import label
from scrapy_frontier.states import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

LISTED: Final = 1000
"""Results of each kind listed at the most, the newest first; their numbers stand in the report."""

SHOWN_DIGITS: Final = 16
"""Digits of a digest in the text; the JSON has all."""

_COLUMNS: Final = (
    "i.url, i.method, n.attempt_id, n.generation, s.worker, r.code, n.status, n.size, n.at_ms,"
    " n.payload"
)
_JOINS: Final = (
    " JOIN identity AS i ON i.identity_id = n.identity_id"
    " LEFT JOIN reason AS r ON r.reason_id = n.outcome_id"
    " LEFT JOIN attempt AS a ON a.attempt_id = n.attempt_id"
    " LEFT JOIN session AS s ON s.session_id = a.session_id WHERE n.run_id = :run"
)
_QUARANTINED: Final = (
    f"SELECT {_COLUMNS}, n.first_payload AS first_payload, 0 AS event FROM quarantine AS n{_JOINS}"
    " ORDER BY n.quarantine_id DESC LIMIT :limit"
)
_LATE: Final = (
    f"SELECT {_COLUMNS}, NULL AS first_payload, n.event AS event FROM late AS n{_JOINS}"
    " ORDER BY n.late_id DESC LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class SetAside:
    """One result that was not applied. Digests in hex; `first_payload` is what the attempt had brought before.

    `event`: what a late result would have been, None for a quarantined one, which is always a response.
    """

    url: str
    method: str
    attempt: int
    generation: int
    worker: str | None
    outcome: str | None
    status: int | None
    size: int | None
    at: str | None
    payload: str | None
    first_payload: str | None
    event: str | None


def quarantined(connection: Connection, run_id: int) -> tuple[SetAside, ...]:
    """Results that contradict an earlier one of their attempt, the newest first."""
    return _read(connection, _QUARANTINED, run_id)


def late(connection: Connection, run_id: int) -> tuple[SetAside, ...]:
    """Results that came when their lease was not in force any more, the newest first."""
    return _read(connection, _LATE, run_id)


def render(conflicts: Sequence[SetAside], late_ones: Sequence[SetAside], run_id: int) -> str:
    """Both lists as text."""
    if not conflicts and not late_ones:
        return f"Run {run_id}: nothing in quarantine, and no late results.\n"
    lines = [
        f"Run {run_id}: {counted(len(conflicts), 'result')} in quarantine, {len(late_ones)} late."
    ]
    conflict_rows = [
        (_when(one), one.attempt, _digits(one.first_payload), _digits(one.payload), one.url)
        for one in conflicts
    ]
    late_rows = [
        (
            _when(one),
            one.attempt,
            one.event or "-",
            one.outcome or "-",
            _digits(one.payload),
            one.url,
        )
        for one in late_ones
    ]
    headings = ["at", "attempt", "first payload", "conflicting payload", "URL"]
    late_headings = ["at", "attempt", "event", "outcome", "payload", "URL"]
    if conflict_rows:
        lines += layout.section("Quarantine", layout.table(headings, conflict_rows, is_cut=False))
    if late_rows:
        lines += layout.section("Late", layout.table(late_headings, late_rows, is_cut=False))
    return "\n".join(lines) + "\n"


def _read(connection: Connection, query: str, run_id: int) -> tuple[SetAside, ...]:
    rows = connection.execute(text(query), {"run": run_id, "limit": LISTED})
    return tuple(_one(row) for row in rows)


def _one(row: Any) -> SetAside:
    return SetAside(
        url=row.url,
        method=row.method,
        attempt=row.attempt_id,
        generation=row.generation,
        worker=row.worker,
        outcome=row.code,
        status=row.status,
        size=row.size,
        at=iso(row.at_ms),
        payload=None if row.payload is None else bytes(row.payload).hex(),
        first_payload=None if row.first_payload is None else bytes(row.first_payload).hex(),
        event=label(Event, row.event) if row.event else None,
    )


def _when(one: SetAside) -> str:
    return clock(one.at) if one.at else "-"


def _digits(digest: str | None) -> str:
    return "-" if digest is None else digest[:SHOWN_DIGITS]
