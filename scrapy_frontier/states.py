"""The life of an identity, as data: states, events and the one transition table.

Rules of this file:

1. Everything that says which change of state is legal stands in `TRANSITIONS`. The writer enforces it, the SQL checks
   and the diagram in the documentation are made from it.
2. This file knows nothing of Scrapy, of the store or of time.
3. The numbers of states, events and dispositions are written to stores: they are never reused or renumbered.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import Final

from scrapy_frontier.errors import IllegalTransition


class _Named(IntEnum):
    """An integer for the store with a lower-case label for people."""

    @property
    def label(self) -> str:
        """The name used in reports, settings and documentation."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.label

    def __format__(self, spec: str) -> str:
        # Python 3.10 formats the label, also where a number is asked for.
        return int.__format__(self, spec)


class State(_Named):
    """Where an identity stands. `ABSENT` is the state before its first reference; it is never a state at rest."""

    ABSENT = 0
    DISCOVERED = 1
    ADMITTED = 2
    SCHEDULED = 3
    FETCHING = 4
    FETCHED = 5
    TERMINAL = 6
    RETRYABLE = 7
    DEFERRED = 8
    SUPPRESSED = 9


class Event(_Named):
    """What happened to an identity."""

    DISCOVER = 1
    ADMIT = 2
    REJECT = 3
    EXCLUDE = 4
    DEFER = 5
    ENQUEUE = 6
    DISPATCH = 7
    CANCEL = 8
    RESPOND = 9
    FAIL = 10
    RECLAIM = 11
    GIVE_UP = 12
    PROCESS = 13
    REDIRECT = 14
    NOT_MODIFY = 15
    BECOME_DUE = 16
    RELEASE = 17
    READMIT = 18
    REVISIT = 19


class Disposition(_Named):
    """Why a terminal identity is terminal."""

    SUCCEEDED = 1
    REDIRECTED = 2
    NOT_MODIFIED = 3
    GONE = 4
    HTTP_ERROR = 5
    FAILED = 6
    CALLBACK_ERROR = 7
    CANCELLED = 8


S, E, D = State, Event, Disposition

TRANSITIONS: Final = MappingProxyType(
    {
        S.ABSENT: MappingProxyType({E.DISCOVER: S.DISCOVERED}),
        S.DISCOVERED: MappingProxyType(
            {
                E.ADMIT: S.ADMITTED,
                E.REJECT: S.SUPPRESSED,
                E.EXCLUDE: S.SUPPRESSED,
                E.DEFER: S.DEFERRED,
            }
        ),
        S.ADMITTED: MappingProxyType(
            {E.ENQUEUE: S.SCHEDULED, E.EXCLUDE: S.SUPPRESSED, E.DEFER: S.DEFERRED}
        ),
        S.SCHEDULED: MappingProxyType(
            {
                E.DISPATCH: S.FETCHING,
                E.EXCLUDE: S.SUPPRESSED,
                E.DEFER: S.DEFERRED,
                E.CANCEL: S.TERMINAL,
            }
        ),
        S.FETCHING: MappingProxyType(
            {
                E.RESPOND: S.FETCHED,
                E.FAIL: S.RETRYABLE,
                E.RECLAIM: S.SCHEDULED,
                E.GIVE_UP: S.TERMINAL,
                E.EXCLUDE: S.SUPPRESSED,
            }
        ),
        S.FETCHED: MappingProxyType(
            {
                E.PROCESS: S.TERMINAL,
                E.REDIRECT: S.TERMINAL,
                E.NOT_MODIFY: S.TERMINAL,
                E.GIVE_UP: S.TERMINAL,
                E.FAIL: S.RETRYABLE,
                E.RECLAIM: S.SCHEDULED,
            }
        ),
        S.RETRYABLE: MappingProxyType(
            {E.BECOME_DUE: S.SCHEDULED, E.GIVE_UP: S.TERMINAL, E.EXCLUDE: S.SUPPRESSED}
        ),
        S.DEFERRED: MappingProxyType(
            {E.RELEASE: S.SCHEDULED, E.EXCLUDE: S.SUPPRESSED, E.CANCEL: S.TERMINAL}
        ),
        S.SUPPRESSED: MappingProxyType({E.READMIT: S.ADMITTED}),
        S.TERMINAL: MappingProxyType({E.REVISIT: S.SCHEDULED}),
    }
)
"""`TRANSITIONS[state][event]` is the next state; a missing entry is an illegal move (design, section 3)."""

DISPOSITIONS: Final = MappingProxyType(
    {
        E.PROCESS: frozenset({D.SUCCEEDED, D.GONE, D.HTTP_ERROR, D.CALLBACK_ERROR}),
        E.REDIRECT: frozenset({D.REDIRECTED}),
        E.NOT_MODIFY: frozenset({D.NOT_MODIFIED}),
        E.GIVE_UP: frozenset({D.GONE, D.HTTP_ERROR, D.FAILED}),
        E.CANCEL: frozenset({D.CANCELLED}),
    }
)
"""The dispositions each event may give to an identity that it makes terminal."""

UNRESOLVED: Final = frozenset(
    {S.DISCOVERED, S.ADMITTED, S.SCHEDULED, S.FETCHING, S.FETCHED, S.RETRYABLE}
)
"""States in which an admitted identity still owes an answer."""


def advance(state: State, event: Event, disposition: Disposition | None = None) -> State:
    """Return the state that `event` leads to from `state`.

    `disposition` must be given exactly when the next state is terminal, and be one that the event may give.
    Raises `IllegalTransition` otherwise; nothing is changed then.
    """
    following = TRANSITIONS[state].get(event)
    if following is None:
        raise IllegalTransition(f"event {event} is not allowed in state {state}")
    if (following is State.TERMINAL) != (disposition is not None):
        raise IllegalTransition(
            f"event {event} in state {state}: a disposition belongs to terminal states only, got {disposition}"
        )
    if disposition is not None and disposition not in DISPOSITIONS[event]:
        raise IllegalTransition(f"event {event} cannot end an identity as {disposition}")
    return following
