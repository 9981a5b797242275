"""The fold of the ledger: every transition applied in the order of `seq`, and each one checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.names import label
from scrapy_frontier.states import Disposition, Event, State, advance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy_frontier.report.columns import Columns
    from scrapy_frontier.report.findings import Findings

MOVE: Final = "event * 65536 + from_to * 256 + disposition"
"""A transition's event, both states and disposition as one integer, in SQL."""


def _legal_moves() -> frozenset[int]:
    """Every `MOVE` that the transition table allows."""
    moves = set()
    for source in State:
        for event in Event:
            for disposition in (None, *Disposition):
                try:
                    target = advance(source, event, disposition)
                except (IllegalTransition, KeyError):
                    continue
                moves.add(event << 16 | source << 12 | target << 8 | (disposition or 0))
    return frozenset(moves)


LEGAL_MOVES: Final = _legal_moves()

ISSUED_BESIDE: Final = frozenset({ReferenceKind.ENGINE, ReferenceKind.ROBOTS, ReferenceKind.DIRECT})
"""Kinds of references that are no part of what a page's callback yields, though it may be their source."""


class Replay:
    """Folds identities, transitions and attempts, in this order, into `columns`.

    `contexts`: the run of each context. `sessions`: the run of each session.
    """

    def __init__(
        self,
        columns: Columns,
        findings: Findings,
        contexts: Mapping[int, int],
        sessions: Mapping[int, int],
    ) -> None:
        self._columns = columns
        self._findings = findings
        self._contexts = contexts
        self._sessions = sessions
        self.identities = 0
        self.transitions = 0
        self.attempts = 0

    def identify(self, rows: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Take identities: (identity id, run id, origin id, source id, kind)."""
        runs, origins = self._columns.run.view, self._columns.origin.view
        sources = self._columns.source.view
        for identity, run, origin, source, kind in rows:
            self.identities += 1
            runs[identity] = run
            origins[identity] = origin
            # What the engine fetches on a page's account is not yielded by its callback.
            sources[identity] = 0 if kind in ISSUED_BESIDE else source

    def apply(self, rows: Iterable[tuple[int, int, int, int, int, int, int]]) -> None:
        """Take transitions: (seq, identity id, prev_seq, attempt id, `MOVE`, context id, reason id)."""
        columns, contexts, legal = self._columns, self._contexts, LEGAL_MOVES
        runs, last_seqs, states = columns.run.view, columns.last_seq.view, columns.state.view
        attempts, sources = columns.attempt.view, columns.source.view
        dispositions, reasons = columns.disposition.view, columns.reason.view
        dispatches, size = columns.dispatches.view, columns.size
        dispatch, discover = int(Event.DISPATCH), int(Event.DISCOVER)
        terminal, succeeded = int(State.TERMINAL), int(Disposition.SUCCEEDED)
        count = 0
        for row in rows:
            seq, identity, prev_seq, attempt, move, context, reason = row
            count += 1
            if not 0 < identity < size:
                self._findings.add(2, identity, f"transition {seq} is of no identity")
                continue
            event = move >> 16
            if (
                last_seqs[identity] != prev_seq
                or states[identity] != move >> 12 & 15
                or move not in legal
                or runs[identity] != contexts.get(context)
                or (
                    attempt <= attempts[identity]
                    if event == dispatch
                    else attempt != attempts[identity]
                )
            ):
                self._blame(*row)
            if event == discover:
                source = sources[identity]
                if 0 < source < size and (states[source], dispositions[source]) == (
                    terminal,
                    succeeded,
                ):
                    self._blame_parent(seq, identity, source)
            elif event == dispatch:
                attempts[identity] = attempt
                dispatches[identity] += 1
            last_seqs[identity] = seq
            states[identity] = move >> 8 & 15
            dispositions[identity] = move & 255
            reasons[identity] = reason
        self.transitions += count

    def try_attempts(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Take attempts: (attempt id, identity id, session id, generation)."""
        columns, sessions, size = self._columns, self._sessions, self._columns.size
        runs, generations = columns.run.view, columns.generation.view
        dispatches = columns.dispatches.view
        for attempt, identity, session, generation in rows:
            self.attempts += 1
            if not 0 < identity < size or not runs[identity]:
                self._findings.add(3, identity, f"attempt {attempt} is of no identity")
                continue
            if (
                generation <= generations[identity]
                or generation >> 32 < session
                or sessions.get(generation >> 32) != runs[identity]
                or sessions.get(session) != runs[identity]
            ):
                self._blame_attempt(attempt, identity, session, generation)
            generations[identity] = generation
            dispatches[identity] -= 1

    def _blame(
        self,
        seq: int,
        identity: int,
        prev_seq: int,
        attempt: int,
        move: int,
        context: int,
        reason: int,
    ) -> None:
        """Say what is wrong with a transition; more than one thing can be."""
        columns, add = self._columns, self._findings.add
        event, source = move >> 16, move >> 12 & 15
        run, state = columns.run.view[identity], columns.state.view[identity]
        known = columns.attempt.view[identity]
        if not run:
            add(2, identity, f"transition {seq} is of no identity")
        elif self._contexts.get(context) != run:
            add(2, identity, f"transition {seq} has context {context}, which is not of run {run}")
        if columns.last_seq.view[identity] != prev_seq:
            last = columns.last_seq.view[identity]
            add(2, identity, f"transition {seq} follows {prev_seq}, but the last one was {last}")
        if state != source:
            was, begins = label(State, state), label(State, source)
            add(2, identity, f"transition {seq} begins in {begins}, but the state was {was}")
        if move not in LEGAL_MOVES:
            add(2, identity, f"transition {seq} is not allowed: {describe(move)}")
        if event == Event.DISPATCH and attempt <= known:
            add(3, identity, f"transition {seq} dispatches attempt {attempt}, after {known}")
        if event != Event.DISPATCH and attempt != known:
            add(3, identity, f"transition {seq} is of attempt {attempt}, but the last was {known}")

    def _blame_parent(self, seq: int, identity: int, source: int) -> None:
        self._findings.add(
            4,
            identity,
            f"transition {seq} discovers it on identity {source}, which had succeeded before, at"
            f" transition {self._columns.last_seq.view[source]}",
        )

    def _blame_attempt(self, attempt: int, identity: int, session: int, generation: int) -> None:
        last = self._columns.generation.view[identity]
        run = self._columns.run.view[identity]
        if generation <= last:
            text = f"attempt {attempt} has generation {generation:#x}, not above {last:#x}"
        elif self._sessions.get(session) != run:
            text = f"attempt {attempt} is of session {session}, which is not of run {run}"
        else:
            text = f"attempt {attempt} of session {session} has generation {generation:#x}"
        self._findings.add(3, identity, text)


def describe(move: int) -> str:
    """A `MOVE` in words."""
    event, source, target = label(Event, move >> 16), move >> 12 & 15, move >> 8 & 15
    ended = f" as {label(Disposition, move & 255)}" if move & 255 else ""
    return f"{event} from {label(State, source)} to {label(State, target)}{ended}"
