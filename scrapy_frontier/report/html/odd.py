"""The URLs of a run that somebody may ask about: those that did not end well, or took more than one attempt."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.html.facts import AttemptFacts, Odd
from scrapy_frontier.report.names import label, select_in, urls
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.names import Codes

ODD_LISTED: Final = 1000
ATTEMPTS_LISTED: Final = 8
"""Of one URL."""

_WELL: Final = (Disposition.SUCCEEDED, Disposition.REDIRECTED, Disposition.NOT_MODIFIED)
_NEVER_TRIED: Final = (
    State.DISCOVERED,
    State.ADMITTED,
    State.SCHEDULED,
    State.DEFERRED,
    State.SUPPRESSED,
)

_ENDED_BADLY: Final = (
    " FROM current WHERE run_id = :run"
    f" AND disposition NOT IN ({', '.join(f'{end:d}' for end in _WELL)})"
    f" AND state NOT IN ({', '.join(f'{state:d}' for state in _NEVER_TRIED)})"
)
_REPEATED: Final = (
    "SELECT a.identity_id FROM attempt AS a JOIN session AS s ON s.session_id = a.session_id"
    " WHERE s.run_id = :run GROUP BY a.identity_id HAVING count(*) > 1"
)
_STANDING: Final = (
    "SELECT identity_id, state, disposition, reason_id FROM current WHERE identity_id IN :ids"
)
_ATTEMPTS: Final = (
    "SELECT identity_id, dispatched_ms, finished_ms, status, size, outcome_id FROM attempt"
    " WHERE identity_id IN :ids ORDER BY attempt_id"
)


def odd_urls(connection: Connection, run_id: int, codes: Codes) -> tuple[int, tuple[Odd, ...]]:
    """How many there are, and the first of them with their first attempts."""
    run = {"run": run_id}
    badly = set(connection.scalars(text(f"SELECT identity_id{_ENDED_BADLY}"), run))
    repeated = set(connection.scalars(text(_REPEATED), run)) - badly
    listed = [*sorted(badly), *sorted(repeated)][:ODD_LISTED]
    attempts: defaultdict[int, list[AttemptFacts]] = defaultdict(list)
    for row in select_in(connection, _ATTEMPTS, listed):
        attempts[row.identity_id].append(_attempt(row, codes))
    names = urls(connection, listed)
    standing = {row.identity_id: row for row in select_in(connection, _STANDING, listed)}
    return len(badly) + len(repeated), tuple(
        Odd(
            url=names.get(number, f"identity {number}"),
            state=_state(standing[number]),
            reason=codes.get(standing[number].reason_id, ""),
            attempts=len(attempts[number]),
            first=tuple(attempts[number][:ATTEMPTS_LISTED]),
        )
        for number in listed
    )


def _state(row: Any) -> str:
    return label(Disposition, row.disposition) if row.disposition else label(State, row.state)


def _attempt(row: Any, codes: Codes) -> AttemptFacts:
    took = None if row.finished_ms is None else (row.finished_ms - row.dispatched_ms) / 1000
    outcome = codes[row.outcome_id] if row.outcome_id else "no outcome"
    return AttemptFacts(row.dispatched_ms, took, row.status, row.size, outcome)
