"""The invariants, checked from the store alone and from what was promised (design, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from scrapy_frontier.report.equations import equations
from scrapy_frontier.report.figures import read_figures
from scrapy_frontier.report.verify import verify
from scrapy_frontier.states import Disposition, Event, State, advance
from scrapy_frontier.store.opening import Store

Row = tuple[Any, ...]


@dataclass
class Fold:
    """One identity as the ledger tells it."""

    state: State = State.ABSENT
    disposition: int = 0
    last_seq: int = 0
    attempt: int = 0


@dataclass
class Book:
    """What is known of the ledger, and what the store has acknowledged: both may only grow."""

    ledger: list[Row] = field(default_factory=list)
    folds: dict[int, Fold] = field(default_factory=dict)
    generations: dict[int, int] = field(default_factory=dict)
    payloads: dict[int, bytes] = field(default_factory=dict)
    promised: set[tuple[int, Event]] = field(default_factory=set)
    """(attempt, event) that were acknowledged: on disk, whatever happens next."""
    known: dict[str, int] = field(default_factory=dict)
    """URL to identity, acknowledged."""

    def promise(self, attempt_id: int, event: Event) -> None:
        """The store has said that this move of an attempt is on disk."""
        self.promised.add((attempt_id, event))

    def inspect(
        self, store: Store, run_id: int, *, adds_up: bool = True, wholly: bool = False
    ) -> None:
        """Read what is new, fold it, and hold everything against it.

        `adds_up`: with the equations of the account; `wholly`: with the package's own audit too.
        """
        with store.reader() as connection:
            self._read(connection)
            self._projection(connection)
            self._attempts(connection)
            if adds_up or wholly:
                for equation in equations(read_figures(connection, run_id)[run_id], "running"):
                    assert equation.holds, f"invariant 9: {equation.text}"
        if wholly:
            found = verify(store).findings
            assert found == (), found

    def reopened(self, store: Store) -> None:
        """After a crash: what had been committed and seen is there, unchanged and in its place (invariant 10)."""
        with store.reader() as connection:
            rows = _rows(connection, f"{_LEDGER} ORDER BY seq LIMIT {len(self.ledger)}")
        assert rows == self.ledger, (
            "invariant 10: the ledger has lost or changed what was committed"
        )

    def _read(self, connection: Connection) -> None:
        last = self.ledger[-1][0] if self.ledger else 0
        rows = _rows(connection, f"{_LEDGER} WHERE seq > {last} ORDER BY seq")
        for row in rows:
            _, identity, prev_seq, attempt, event, from_to, disposition, _ = row
            fold = self.folds.setdefault(identity, Fold())
            assert fold.last_seq == prev_seq, f"invariant 2: {row} follows {fold}"
            target = advance(
                fold.state, Event(event), Disposition(disposition) if disposition else None
            )
            assert from_to == fold.state * 16 + target, f"invariant 2: {row} follows {fold}"
            if event == Event.DISPATCH:
                assert attempt > fold.attempt, f"invariant 3: {row} follows {fold}"
            else:
                assert attempt == fold.attempt, f"invariant 3: {row} follows {fold}"
            self.folds[identity] = Fold(target, disposition, row[0], attempt)
        self.ledger.extend(rows)
        kept = {(row[3], row[4]) for row in self.ledger}
        broken = {one for one in self.promised if one not in kept}
        assert not broken, f"invariant 5: acknowledged, and not in the ledger: {broken}"

    def _projection(self, connection: Connection) -> None:
        rows = _rows(
            connection, "SELECT identity_id, state, disposition, last_seq, attempt_id FROM current"
        )
        shown = {row[0]: Fold(State(row[1]), *row[2:]) for row in rows}
        assert shown == self.folds, "invariant 1: the projection is not the fold of the ledger"
        urls = {
            url: number
            for number, url in _rows(connection, "SELECT identity_id, url FROM identity")
        }
        lost = self.known.items() - urls.items()
        assert not lost, f"promise 1: acknowledged references are gone: {lost}"

    def _attempts(self, connection: Connection) -> None:
        highest: dict[int, int] = {}
        rows = _rows(
            connection,
            "SELECT attempt_id, identity_id, generation, payload FROM attempt ORDER BY attempt_id",
        )
        for attempt, identity, generation, payload in rows:
            assert generation > highest.get(identity, 0), "invariant 3: generations only grow"
            highest[identity] = generation
            before = self.payloads.get(attempt)
            if before is not None:
                assert payload == before, "invariant 6: an applied result was replaced"
        lost = {
            identity
            for identity, generation in self.generations.items()
            if generation > highest.get(identity, 0)
        }
        assert not lost, f"invariant 3: granted generations are gone: {lost}"
        held = _rows(connection, _CONTRADICTIONS)
        assert held == [], f"invariant 6: {held}"


_LEDGER = (
    "SELECT seq, identity_id, prev_seq, attempt_id, event, from_to, disposition, reason_id"
    " FROM transition"
)
_CONTRADICTIONS = (
    "SELECT q.attempt_id FROM quarantine AS q JOIN attempt AS a ON a.attempt_id = q.attempt_id"
    " WHERE a.payload = q.payload UNION SELECT l.attempt_id FROM late AS l JOIN attempt AS a"
    " ON a.attempt_id = l.attempt_id WHERE a.generation <> l.generation"
)


def _rows(connection: Connection, query: str) -> list[Row]:
    # Past SQLAlchemy's rows: this is asked tens of thousands of times.
    cursor = connection.connection.cursor()
    cursor.execute(query)
    return [tuple(row) for row in cursor.fetchall()]
