"""The audit of a store: the ledger replayed, the projection compared, every invariant checked.

What is only ever appended is read in short snapshots, so that a crawl is not held up; the rest, and
what was appended meanwhile, in one snapshot at the end. Invariants as in the design, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.errors import StoreError
from scrapy_frontier.report.columns import Columns, columns
from scrapy_frontier.report.equations import equations
from scrapy_frontier.report.evidence import check_evidence
from scrapy_frontier.report.figures import read_figures
from scrapy_frontier.report.findings import Finding, Findings
from scrapy_frontier.report.names import pairs, urls
from scrapy_frontier.report.projection import compare_projection
from scrapy_frontier.report.replay import MOVE, Replay
from scrapy_frontier.report.soundness import check_dangling, check_file, check_triggers
from scrapy_frontier.report.unapplied import check_unapplied
from scrapy_frontier.store.edges import unpack
from scrapy_frontier.store.progress import Progress, silent
from scrapy_frontier.store.rows import cursor_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from scrapy_frontier.store.artifacts import Artifacts
    from scrapy_frontier.store.opening import Store

PAGE: Final = 20_000
"""Rows read in one short snapshot."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification looked at, and what it found."""

    is_sound: bool
    identities: int
    transitions: int
    attempts: int
    findings: tuple[Finding, ...]
    omitted: int


def verify(
    store: Store,
    *,
    run_id: int | None = None,
    progress: Progress = silent,
    artifacts: Artifacts | None = None,
) -> Verification:
    """Verify a store, or one run of it. Needs a temporary file of some 60 bytes an identity.

    With `artifacts`, all evidence that the ledger names is read too.
    """
    findings = Findings()
    progress("Checking the file", 0, 0)
    if not _is_readable(store, findings):
        progress("", 0, 0)
        return Verification(False, 0, 0, 0, tuple(findings.kept), findings.omitted)
    with columns() as slots:
        audit = _Audit(store, run_id, slots, findings, progress)
        audit.run()
        replay = audit.replay
    if artifacts is not None:
        check_evidence(store, artifacts, run_id, findings, progress)
    progress("", 0, 0)
    return Verification(
        is_sound=not findings.kept,
        identities=replay.identities,
        transitions=replay.transitions,
        attempts=replay.attempts,
        findings=_with_urls(store, findings),
        omitted=findings.omitted,
    )


def _is_readable(store: Store, findings: Findings) -> bool:
    """Whether SQLite finds the file whole; what it finds wrong is noted."""
    try:
        with store.reader() as connection:
            return check_file(connection, findings)
    except StoreError as error:
        findings.add(0, 0, str(error))
        return False


def _with_urls(store: Store, findings: Findings) -> tuple[Finding, ...]:
    with store.reader() as connection:
        known = urls(connection, {finding.identity for finding in findings.kept})
    return tuple(
        Finding(
            finding.invariant,
            finding.identity,
            f"identity {finding.identity} ({known.get(finding.identity, 'unknown')}):"
            f" {finding.text}",
        )
        if finding.identity
        else finding
        for finding in findings.kept
    )


_TABLES: Final = {
    "identity": "identity_id",
    "transition": "seq",
    "attempt": "attempt_id",
    "emission": "emission_id",
}
"""What is only ever appended, in the order in which it is replayed, and its id."""

_QUERIES: Final = {
    "identity": "SELECT identity_id, run_id, origin_id, source_id, kind FROM identity",
    "transition": f"SELECT seq, identity_id, prev_seq, attempt_id, {MOVE}, context_id, reason_id"
    " FROM transition",
    "attempt": "SELECT attempt_id, identity_id, session_id, generation FROM attempt",
    "emission": "SELECT emission_id, run_id, source_id, fresh + duplicates + excluded, targets"
    " FROM emission",
}

_ONLY: Final = {
    "identity": "run_id = {run}",
    "transition": "context_id IN (SELECT context_id FROM context WHERE run_id = {run})",
    "attempt": "session_id IN (SELECT session_id FROM session WHERE run_id = {run})",
    "emission": "run_id = {run}",
}


class _Audit:
    """One verification under way."""

    def __init__(
        self,
        store: Store,
        run_id: int | None,
        slots: Columns,
        findings: Findings,
        progress: Progress,
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._slots = slots
        self._findings = findings
        self._progress = progress
        self._read_to = dict.fromkeys(_TABLES, 0)
        self._contexts: dict[int, int] = {}
        self._sessions: dict[int, int] = {}
        self.replay = Replay(slots, findings, self._contexts, self._sessions)

    def run(self) -> None:
        """Read what is there in short snapshots, then what is new and the rest in one."""
        with self._store.reader() as connection:
            bounds = self._look(connection)
        self._advance(bounds, None)
        with self._store.reader() as connection:
            self._advance(self._look(connection), connection)
            self._progress("Comparing the projection", 0, 0)
            compare_projection(connection, self._run_id, self._slots, self._findings)
            self._check_equations(connection)
            check_dangling(connection, self._findings)
            check_triggers(connection, self._findings)
            check_unapplied(connection, self._findings)

    def _look(self, connection: Connection) -> dict[str, int]:
        """The highest id of each table, and to which runs contexts and sessions belong."""
        for known, query in (
            (self._contexts, "SELECT context_id, run_id FROM context"),
            (self._sessions, "SELECT session_id, run_id FROM session"),
        ):
            known.update(pairs(connection, query))
        return {
            table: int(connection.scalar(text(f"SELECT max({key}) FROM {table}")) or 0)
            for table, key in _TABLES.items()
        }

    def _advance(self, bounds: dict[str, int], connection: Connection | None) -> None:
        """Replay up to the bounds; in snapshots of its own where no connection is given."""
        self._slots.make_room(bounds["identity"])
        take: dict[str, Callable[[Any], None]] = {
            "identity": self.replay.identify,
            "transition": self.replay.apply,
            "attempt": self.replay.try_attempts,
            "emission": self._emissions,
        }
        for table, handler in take.items():
            for rows in self._pages(table, bounds[table], connection):
                handler(rows)

    def _pages(
        self, table: str, highest: int, connection: Connection | None
    ) -> Iterator[list[tuple[Any, ...]]]:
        key = _TABLES[table]
        only = "" if self._run_id is None else _ONLY[table].format(run=self._run_id) + " AND"
        query = f"{_QUERIES[table]} WHERE {only} {key} > ? AND {key} <= ? ORDER BY {key} LIMIT ?"
        while True:
            with self._snapshot(connection) as snapshot:
                # Past SQLAlchemy's rows, which cost more than the replay of one.
                cursor = cursor_of(snapshot)
                cursor.execute(query, (self._read_to[table], highest, PAGE))
                rows = list(cursor.fetchall())
            if not rows:
                return
            yield rows
            self._read_to[table] = rows[-1][0]
            self._progress(f"Reading table {table}", min(rows[-1][0], highest), highest)

    def _snapshot(self, connection: Connection | None) -> AbstractContextManager[Connection]:
        return self._store.reader() if connection is None else nullcontext(connection)

    def _emissions(self, rows: list[tuple[int, int, int, int, bytes]]) -> None:
        """Every packed target is an identity of the run, and there are as many as were counted."""
        runs, size = self._slots.run.view, self._slots.size
        for emission, run, source, expected, packed in rows:
            try:
                targets = unpack(packed)
            except StoreError as error:
                self._findings.add(1, source, f"emission {emission}: {error}")
                continue
            if len(targets) != expected:
                self._findings.add(
                    9, source, f"emission {emission} counts {expected} targets, has {len(targets)}"
                )
            for target in targets if source == 0 else (source, *targets):
                if not 0 < target < size or runs[target] != run:
                    self._findings.add(
                        1, target, f"emission {emission} names it, but run {run} has it not"
                    )

    def _check_equations(self, connection: Connection) -> None:
        self._progress("Adding up the account", 0, 0)
        states = pairs(connection, "SELECT run_id, state FROM run")
        for run, figures in read_figures(connection, self._run_id).items():
            for equation in equations(figures, states.get(run, "unknown")):
                if not equation.holds:
                    self._findings.add(9, 0, f"run {run} does not add up: {equation.text}")
