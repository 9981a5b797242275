"""The figures of a run, each counted where it is written: ledger, projection, emissions, ...

Every number is read from one table only, so that `report.equations` can hold one against another.
Tables are read in ranges of their ids: grouping a whole one would sort all of it in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import text

from scrapy_frontier.report.names import pairs
from scrapy_frontier.states import Event, State
from scrapy_frontier.store.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

RANGE: Final = 200_000
"""Rows grouped in one query."""


class Standing(NamedTuple):
    """Where identities of one origin stand in the projection."""

    origin_id: int
    state: int
    disposition: int
    reason_id: int


@dataclass(slots=True)
class StandingCount:
    """How many identities stand so; `example` is the first of them."""

    count: int
    example: int


class AttemptKind(NamedTuple):
    """Attempts of one origin and session that ended alike.

    `status_class` is 2 for 200 to 299 and so on, 0 without a status; `outcome_id` 0 without one.
    """

    origin_id: int
    session_id: int
    status_class: int
    outcome_id: int


@dataclass(slots=True)
class AttemptCount:
    """How many attempts, the bytes they brought, the first and the last dispatch."""

    count: int
    size: int
    first_ms: int
    last_ms: int


@dataclass(slots=True)
class RejectedCount:
    """How many references; `example` is the id of the first rejection."""

    count: int
    example: int


@dataclass(slots=True)
class Figures:
    """The figures of one run."""

    identities: int = 0
    """Rows of the table of identities."""
    moves: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Transitions in the ledger by (event, from * 16 + to)."""
    standing: dict[Standing, StandingCount] = field(default_factory=dict)
    attempts: dict[AttemptKind, AttemptCount] = field(default_factory=dict)
    references: Counter[tuple[int, str]] = field(default_factory=Counter)
    """References in the emissions by (kind, one of `REFERENCE_COUNTS`)."""
    rejected: dict[tuple[int, int], RejectedCount] = field(default_factory=dict)
    """Rejections by (kind, reason id)."""
    visits_waiting: int = 0
    """Further requests that wait for their identity's running one to end."""
    late: Counter[int] = field(default_factory=Counter)
    """Results that came when their lease was not in force any more, by event."""
    quarantined: int = 0
    """Results that contradict an earlier one of their attempt."""

    def events(self, event: Event) -> int:
        """How often the ledger has this event."""
        return sum(count for (happened, _), count in self.moves.items() if happened == event)

    def flow(self, states: frozenset[State]) -> int:
        """Identities that the ledger's moves have brought into these states and not out again."""
        return sum(
            count * ((move & 15 in states) - (move >> 4 in states))
            for (_, move), count in self.moves.items()
        )

    def standing_in(self, states: frozenset[State]) -> int:
        """Identities that the projection shows in these states."""
        return sum(
            found.count for standing, found in self.standing.items() if standing.state in states
        )

    def referred(self, name: str) -> int:
        """References of all kinds that one of `REFERENCE_COUNTS` counts."""
        return sum(count for (_, counted), count in self.references.items() if counted == name)

    def attempted(self) -> int:
        """Attempts of identities of this run."""
        return sum(found.count for found in self.attempts.values())

    def attempts_without_outcome(self) -> int:
        """Attempts under way, and those of a process that died, until the run is resumed."""
        return sum(found.count for kind, found in self.attempts.items() if not kind.outcome_id)

    def rejections(self) -> int:
        """Rejected references by their own rows."""
        return sum(found.count for found in self.rejected.values())


REFERENCE_COUNTS: Final = ("total", "fresh", "duplicates", "excluded", "rejected")


def read_figures(
    connection: Connection, run_id: int | None = None, progress: Progress = silent
) -> Mapping[int, Figures]:
    """Read the figures of one run, or of all, by run id. All from the connection's one snapshot."""
    runs: defaultdict[int, Figures] = defaultdict(Figures)
    for run in connection.scalars(text("SELECT run_id FROM run")):
        if run_id in (None, run):
            runs[run] = Figures()
    for done, reader in enumerate(READERS):
        progress("Adding up the account", done, len(READERS))
        reader(connection, run_id, runs)
    return runs


_IDENTITIES: Final = "SELECT run_id, count(*) FROM identity {where} GROUP BY run_id"
_MOVES: Final = (
    "SELECT context_id, event, from_to, count(*) FROM transition {where}"
    " GROUP BY context_id, event, from_to"
)
_STANDING: Final = (
    "SELECT run_id, origin_id, state, disposition, reason_id, count(*), min(identity_id)"
    " FROM current {where} GROUP BY run_id, origin_id, state, disposition, reason_id"
)
_ATTEMPTS: Final = (
    "SELECT c.run_id, c.origin_id, attempt.session_id,"
    " coalesce(attempt.status / 100, 0) AS status_class,"
    " coalesce(attempt.outcome_id, 0) AS outcome, count(*), coalesce(sum(attempt.size), 0),"
    " min(attempt.dispatched_ms), max(attempt.dispatched_ms)"
    " FROM attempt JOIN current AS c ON c.identity_id = attempt.identity_id {where}"
    " GROUP BY c.run_id, c.origin_id, attempt.session_id, status_class, outcome"
)
_REFERENCES: Final = (
    "SELECT run_id, kind, sum(total), sum(fresh), sum(duplicates), sum(excluded), sum(rejected)"
    " FROM emission {where} GROUP BY run_id, kind"
)
_REJECTED: Final = (
    "SELECT run_id, kind, reason_id, count(*), min(rejection_id)"
    " FROM rejection {where} GROUP BY run_id, kind, reason_id"
)
_VISITS: Final = (
    "SELECT c.run_id, count(*) FROM visit AS v JOIN current AS c ON c.identity_id = v.identity_id"
    f" {{where}} AND v.is_waiting = 1 AND c.state NOT IN ({State.DEFERRED:d}, {State.SUPPRESSED:d})"
    " GROUP BY c.run_id"
)

_LATE: Final = "SELECT run_id, event, count(*) FROM late {where} GROUP BY run_id, event"
_QUARANTINED: Final = "SELECT run_id, count(*) FROM quarantine {where} GROUP BY run_id"

Runs = defaultdict[int, Figures]


def _identities(connection: Connection, run_id: int | None, runs: Runs) -> None:
    where = "" if run_id is None else f"WHERE run_id = {run_id:d}"
    for run, count in connection.execute(text(_IDENTITIES.format(where=where))):
        runs[run].identities = count


def _moves(connection: Connection, run_id: int | None, runs: Runs) -> None:
    contexts = pairs(connection, "SELECT context_id, run_id FROM context")
    own = ", ".join(str(context) for context, run in contexts.items() if run == run_id)
    only = None if run_id is None else f"context_id IN ({own})"
    for context, event, move, count in ranges(connection, _MOVES, "transition.seq", only):
        runs[contexts.get(context, 0)].moves[event, move] += count


def _standing(connection: Connection, run_id: int | None, runs: Runs) -> None:
    only = None if run_id is None else f"run_id = {run_id:d}"
    rows = ranges(connection, _STANDING, "current.identity_id", only)
    for run, *group, count, example in rows:
        groups = runs[run].standing
        known = groups.setdefault(Standing(*group), StandingCount(0, example))
        known.count += count
        known.example = min(known.example, example)


def _attempts(connection: Connection, run_id: int | None, runs: Runs) -> None:
    only = None if run_id is None else f"c.run_id = {run_id:d}"
    rows = ranges(connection, _ATTEMPTS, "attempt.attempt_id", only)
    for run, *group, count, size, first_ms, last_ms in rows:
        groups = runs[run].attempts
        known = groups.setdefault(AttemptKind(*group), AttemptCount(0, 0, first_ms, last_ms))
        known.count += count
        known.size += int(size)
        known.first_ms = min(known.first_ms, first_ms)
        known.last_ms = max(known.last_ms, last_ms)


def _references(connection: Connection, run_id: int | None, runs: Runs) -> None:
    only = None if run_id is None else f"run_id = {run_id:d}"
    for run, kind, *sums in ranges(connection, _REFERENCES, "emission.emission_id", only):
        for name, count in zip(REFERENCE_COUNTS, sums, strict=True):
            runs[run].references[kind, name] += int(count)


def _rejected(connection: Connection, run_id: int | None, runs: Runs) -> None:
    only = None if run_id is None else f"run_id = {run_id:d}"
    rows = ranges(connection, _REJECTED, "rejection.rejection_id", only)
    for run, kind, reason_id, count, example in rows:
        known = runs[run].rejected.setdefault((kind, reason_id), RejectedCount(0, example))
        known.count += count


def _visits(connection: Connection, run_id: int | None, runs: Runs) -> None:
    where = "WHERE 1 = 1" if run_id is None else f"WHERE c.run_id = {run_id:d}"
    for run, count in connection.execute(text(_VISITS.format(where=where))):
        runs[run].visits_waiting = count


def _late(connection: Connection, run_id: int | None, runs: Runs) -> None:
    where = "" if run_id is None else f"WHERE run_id = {run_id:d}"
    for run, happened, count in connection.execute(text(_LATE.format(where=where))):
        runs[run].late[happened] += count


def _quarantined(connection: Connection, run_id: int | None, runs: Runs) -> None:
    where = "" if run_id is None else f"WHERE run_id = {run_id:d}"
    for run, count in connection.execute(text(_QUARANTINED.format(where=where))):
        runs[run].quarantined = count


READERS: Final = (
    _identities,
    _moves,
    _standing,
    _attempts,
    _references,
    _rejected,
    _visits,
    _late,
    _quarantined,
)


def ranges(connection: Connection, query: str, column: str, only: str | None) -> Iterator[Any]:
    """The groups of each range of ids, one range after the other."""
    table = column.partition(".")[0]
    bounds = text(f"SELECT coalesce(min({column}), 0), coalesce(max({column}), -1) FROM {table}")
    lowest, highest = connection.execute(bounds).one()
    where = f"WHERE {column} BETWEEN :low AND :high"
    statement = text(query.format(where=where if only is None else f"{where} AND {only}"))
    for low in range(lowest, highest + 1, RANGE):
        yield from connection.execute(statement, {"low": low, "high": low + RANGE - 1})
