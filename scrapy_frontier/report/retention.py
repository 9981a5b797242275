"""Which runs of a store are to be dropped, and what each of them holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from scrapy_frontier.report.instants import iso

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run, when something last happened in it, and how much it holds."""

    run: int
    name: str
    state: str
    last_at: str | None
    last_ms: int
    identities: int
    is_live: bool

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed."""
        return self.state != "finished"


_RUNS = (
    "SELECT r.run_id, r.name, r.state, r.started_ms, coalesce(r.finished_ms, 0),"
    " (SELECT coalesce(max(s.started_ms), 0) FROM session AS s WHERE s.run_id = r.run_id),"
    " (SELECT count(*) FROM current AS c WHERE c.run_id = r.run_id)"
    " FROM run AS r ORDER BY r.run_id"
)


def candidates(connection: Connection, is_live: Callable[[int], bool]) -> tuple[Candidate, ...]:
    """All runs of the store, oldest first."""
    found = []
    for run_id, name, state, *instants, count in connection.execute(text(_RUNS)):
        last_ms = max(instants)
        live = is_live(run_id)
        found.append(Candidate(run_id, name, state, iso(last_ms), last_ms, count, live))
    return tuple(found)


def choose(
    runs: Sequence[Candidate],
    *,
    before_ms: int | None,
    keep_last: int,
    unfinished: bool,
) -> tuple[Candidate, ...]:
    """The runs in which nothing has happened since `before_ms`, without the last `keep_last` of all.

    A run that a process works on is never among them; one that can be resumed only if `unfinished`.
    """
    by_age = sorted(runs, key=lambda run: (run.last_ms, run.run))
    old = by_age[: max(len(by_age) - keep_last, 0)]
    return tuple(
        run
        for run in old
        if (before_ms is None or run.last_ms < before_ms)
        and not run.is_live
        and (unfinished or not run.is_unfinished)
    )
