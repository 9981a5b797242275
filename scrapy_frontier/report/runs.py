"""The runs of a store, and which of them a command means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.report.equations import DEFERRED, SUPPRESSED, TERMINAL
from scrapy_frontier.report.instants import iso
from scrapy_frontier.states import UNRESOLVED, Disposition, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection

_NAMES_SHOWN: Final = 10


class RunNotFound(FrontierError):
    """No run of the store answers to the given name or id; the message lists those there are."""


class NoRuns(RunNotFound):
    """The store holds no run yet."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in a line. Counts are identities; `states` holds those that are not zero."""

    id: int
    name: str
    spider: str
    state: str
    started_at: str | None
    finished_at: str | None
    stop_reason: str | None
    policy_version: str
    sessions: int
    discovered: int
    succeeded: int
    terminal: int
    unresolved: int
    suppressed: int
    deferred: int
    states: Mapping[str, int]


_RUNS: Final = (
    "SELECT r.run_id, r.name, r.spider, r.state, r.started_ms, r.finished_ms, r.stop_reason,"
    " p.digest, (SELECT count(*) FROM session AS s WHERE s.run_id = r.run_id)"
    " FROM run AS r JOIN policy AS p ON p.policy_id = r.policy_id ORDER BY r.run_id"
)
_STATES: Final = (
    "SELECT run_id, state, disposition, count(*) FROM current GROUP BY run_id, state, disposition"
)
_CANDIDATES: Final = (
    "SELECT r.run_id, r.name FROM run AS r"
    " ORDER BY coalesce((SELECT max(s.session_id) FROM session AS s WHERE s.run_id = r.run_id), 0)"
    " DESC, r.run_id DESC"
)


def list_runs(connection: Connection) -> tuple[RunSummary, ...]:
    """All runs of the store, oldest first."""
    counts: dict[int, dict[tuple[State, int], int]] = {}
    for run_id, state, disposition, count in connection.execute(text(_STATES)):
        counts.setdefault(run_id, {})[State(state), disposition] = count
    return tuple(_summary(row, counts.get(row[0], {})) for row in connection.execute(text(_RUNS)))


def find_run(connection: Connection, wanted: str | None = None) -> int:
    """The run that `wanted` names by id or name, or the latest that was opened.

    Of several runs with one name the one opened last is meant; a number is first taken as an id.
    Raises `RunNotFound`.
    """
    runs = list(connection.execute(text(_CANDIDATES)))
    if not runs:
        raise NoRuns("the store holds no run yet: crawl first, or name another store with --store")
    if wanted is None:
        return int(runs[0].run_id)
    if wanted.isascii() and wanted.isdigit():
        for run in runs:
            if run.run_id == int(wanted):
                return int(run.run_id)
    for run in runs:
        if run.name == wanted:
            return int(run.run_id)
    raise RunNotFound(f"no run {wanted!r} in this store; there are {_names(runs)}")


def namesakes(connection: Connection, run_id: int, wanted: str) -> tuple[int, ...]:
    """Ids of the other runs that `wanted` could have meant."""
    query = text("SELECT run_id FROM run WHERE name = :name AND run_id <> :run ORDER BY run_id")
    return tuple(connection.scalars(query, {"name": wanted, "run": run_id}))


def _names(runs: Iterable[Any]) -> str:
    shown = [f"{run.run_id} ({run.name})" if run.name else str(run.run_id) for run in runs]
    more = len(shown) - _NAMES_SHOWN
    return ", ".join(shown[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _summary(row: Any, counts: Mapping[tuple[State, int], int]) -> RunSummary:
    def within(states: frozenset[State]) -> int:
        return sum(count for (state, _), count in counts.items() if state in states)

    return RunSummary(
        id=row.run_id,
        name=row.name,
        spider=row.spider,
        state=row.state,
        started_at=iso(row.started_ms),
        finished_at=iso(row.finished_ms),
        stop_reason=row.stop_reason,
        policy_version=row.digest,
        sessions=row[8],
        discovered=sum(counts.values()),
        succeeded=counts.get((State.TERMINAL, Disposition.SUCCEEDED), 0),
        terminal=within(TERMINAL),
        unresolved=within(UNRESOLVED),
        suppressed=within(SUPPRESSED),
        deferred=within(DEFERRED),
        states={state.label: found for state in State if (found := within(frozenset({state})))},
    )
