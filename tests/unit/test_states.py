"""The states, events and dispositions of an identity, and the one table that says which moves are legal."""

from __future__ import annotations

from itertools import product

import pytest

from scrapy_frontier.errors import IllegalTransition
from scrapy_frontier.states import (
    DISPOSITIONS,
    TRANSITIONS,
    UNRESOLVED,
    Disposition,
    Event,
    State,
    advance,
)

S, E, D = State, Event, Disposition

STATE_NUMBERS = {
    "absent": 0,
    "discovered": 1,
    "admitted": 2,
    "scheduled": 3,
    "fetching": 4,
    "fetched": 5,
    "terminal": 6,
    "retryable": 7,
    "deferred": 8,
    "suppressed": 9,
}

EVENT_NUMBERS = {
    "discover": 1,
    "admit": 2,
    "reject": 3,
    "exclude": 4,
    "defer": 5,
    "enqueue": 6,
    "dispatch": 7,
    "cancel": 8,
    "respond": 9,
    "fail": 10,
    "reclaim": 11,
    "give_up": 12,
    "process": 13,
    "redirect": 14,
    "not_modify": 15,
    "become_due": 16,
    "release": 17,
    "readmit": 18,
    "revisit": 19,
}

DISPOSITION_NUMBERS = {
    "succeeded": 1,
    "redirected": 2,
    "not_modified": 3,
    "gone": 4,
    "http_error": 5,
    "failed": 6,
    "callback_error": 7,
    "cancelled": 8,
}

LEGAL = {
    (S.ABSENT, E.DISCOVER): S.DISCOVERED,
    (S.DISCOVERED, E.ADMIT): S.ADMITTED,
    (S.DISCOVERED, E.REJECT): S.SUPPRESSED,
    (S.DISCOVERED, E.EXCLUDE): S.SUPPRESSED,
    (S.DISCOVERED, E.DEFER): S.DEFERRED,
    (S.ADMITTED, E.ENQUEUE): S.SCHEDULED,
    (S.ADMITTED, E.EXCLUDE): S.SUPPRESSED,
    (S.ADMITTED, E.DEFER): S.DEFERRED,
    (S.SCHEDULED, E.DISPATCH): S.FETCHING,
    (S.SCHEDULED, E.EXCLUDE): S.SUPPRESSED,
    (S.SCHEDULED, E.DEFER): S.DEFERRED,
    (S.SCHEDULED, E.CANCEL): S.TERMINAL,
    (S.FETCHING, E.RESPOND): S.FETCHED,
    (S.FETCHING, E.FAIL): S.RETRYABLE,
    (S.FETCHING, E.RECLAIM): S.SCHEDULED,
    (S.FETCHING, E.GIVE_UP): S.TERMINAL,
    (S.FETCHING, E.EXCLUDE): S.SUPPRESSED,
    (S.FETCHED, E.PROCESS): S.TERMINAL,
    (S.FETCHED, E.REDIRECT): S.TERMINAL,
    (S.FETCHED, E.NOT_MODIFY): S.TERMINAL,
    (S.FETCHED, E.GIVE_UP): S.TERMINAL,
    (S.FETCHED, E.FAIL): S.RETRYABLE,
    (S.FETCHED, E.RECLAIM): S.SCHEDULED,
    (S.RETRYABLE, E.BECOME_DUE): S.SCHEDULED,
    (S.RETRYABLE, E.GIVE_UP): S.TERMINAL,
    (S.RETRYABLE, E.EXCLUDE): S.SUPPRESSED,
    (S.DEFERRED, E.RELEASE): S.SCHEDULED,
    (S.DEFERRED, E.EXCLUDE): S.SUPPRESSED,
    (S.DEFERRED, E.CANCEL): S.TERMINAL,
    (S.SUPPRESSED, E.READMIT): S.ADMITTED,
    (S.TERMINAL, E.REVISIT): S.SCHEDULED,
}
"""The table of the design, section 3, written out once more by hand."""

ENDINGS = {
    E.PROCESS: {D.SUCCEEDED, D.GONE, D.HTTP_ERROR, D.CALLBACK_ERROR},
    E.REDIRECT: {D.REDIRECTED},
    E.NOT_MODIFY: {D.NOT_MODIFIED},
    E.GIVE_UP: {D.GONE, D.HTTP_ERROR, D.FAILED},
    E.CANCEL: {D.CANCELLED},
}

PAIRS = list(product(State, Event))


def _name(value: object) -> str:
    return str(value)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [(State, STATE_NUMBERS), (Event, EVENT_NUMBERS), (Disposition, DISPOSITION_NUMBERS)],
    ids=["states", "events", "dispositions"],
)
def test_numbers_and_labels_never_change(
    kind: type[State] | type[Event] | type[Disposition], numbers: dict[str, int]
) -> None:
    """They are written to stores: a name keeps its number for ever, and a number its name."""
    assert {member.label: int(member) for member in kind} == numbers
    assert {str(member) for member in kind} == set(numbers)


def test_the_table_covers_every_state() -> None:
    """Each state has its row, so that a lookup never fails for a reason other than an illegal move."""
    assert set(TRANSITIONS) == set(State)


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=_name)
def test_every_pair_of_state_and_event(state: State, event: Event) -> None:
    """A legal event leads where the design says; any other is refused and leads nowhere."""
    target = LEGAL.get((state, event))
    disposition = min(ENDINGS[event]) if target is S.TERMINAL else None
    if target is not None:
        assert advance(state, event, disposition) is target
        return
    for given in (None, *Disposition):
        with pytest.raises(IllegalTransition, match=f"{event} is not allowed in state {state}"):
            advance(state, event, given)


@pytest.mark.parametrize("state", State, ids=_name)
def test_a_refused_move_changes_nothing(state: State) -> None:
    """The table itself cannot be changed, neither by a refused move nor by a caller."""
    before = {source: dict(row) for source, row in TRANSITIONS.items()}
    for event in Event:
        if (state, event) not in LEGAL:
            with pytest.raises(IllegalTransition):
                advance(state, event)
    with pytest.raises(TypeError):
        TRANSITIONS[state] = {}  # type: ignore[index]
    with pytest.raises(TypeError):
        TRANSITIONS[state][E.DISCOVER] = S.TERMINAL  # type: ignore[index]
    assert {source: dict(row) for source, row in TRANSITIONS.items()} == before


ENDING_MOVES = [pair for pair, target in LEGAL.items() if target is S.TERMINAL]
OTHER_MOVES = [pair for pair, target in LEGAL.items() if target is not S.TERMINAL]


@pytest.mark.parametrize(("state", "event"), ENDING_MOVES, ids=_name)
def test_an_end_has_a_disposition_that_its_event_may_give(state: State, event: Event) -> None:
    """A terminal identity says why it is terminal, and an event cannot claim what it does not mean."""
    for disposition in Disposition:
        if disposition in ENDINGS[event]:
            assert advance(state, event, disposition) is S.TERMINAL
        else:
            with pytest.raises(IllegalTransition, match=f"{event} cannot end .* as {disposition}"):
                advance(state, event, disposition)
    with pytest.raises(IllegalTransition, match="disposition"):
        advance(state, event)


@pytest.mark.parametrize(("state", "event"), OTHER_MOVES, ids=_name)
def test_no_disposition_before_the_end(state: State, event: Event) -> None:
    """An identity that goes on has no disposition."""
    for disposition in Disposition:
        with pytest.raises(IllegalTransition, match="disposition"):
            advance(state, event, disposition)


def test_dispositions_belong_to_the_events_that_end_an_identity() -> None:
    """Each disposition can be given, and only by events that lead to terminal."""
    assert {event: set(given) for event, given in DISPOSITIONS.items()} == ENDINGS
    assert set().union(*ENDINGS.values()) == set(Disposition)
    assert set(ENDINGS) == {event for _, event in ENDING_MOVES}


def _reachable(start: State) -> set[State]:
    seen, edge = {start}, [start]
    while edge:
        for target in TRANSITIONS[edge.pop()].values():
            if target not in seen:
                seen.add(target)
                edge.append(target)
    return seen


@pytest.mark.parametrize("state", sorted(set(State) - {S.SUPPRESSED}), ids=_name)
def test_every_state_can_end(state: State) -> None:
    """From every state an identity can become terminal, or be suppressed: none is a trap."""
    assert {S.TERMINAL, S.SUPPRESSED} <= _reachable(state)


def test_suppressed_has_one_way_out() -> None:
    """What a rule excluded comes back by readmission alone."""
    assert set(TRANSITIONS[S.SUPPRESSED]) == {E.READMIT}


def test_every_state_can_be_reached_and_none_leads_back_to_absent() -> None:
    """The life of an identity begins once, and every state is part of some life."""
    assert _reachable(S.ABSENT) == set(State)
    assert all(S.ABSENT not in row.values() for row in TRANSITIONS.values())


def test_unresolved_is_what_still_owes_an_answer() -> None:
    """discovered = admitted + suppressed + deferred, admitted = terminal + unresolved (invariant 9)."""
    at_rest = set(State) - {S.ABSENT}
    assert at_rest == UNRESOLVED | {S.TERMINAL, S.DEFERRED, S.SUPPRESSED}
