"""Whether a run's account adds up: numbers counted in one place held against those of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy_frontier.states import UNRESOLVED, Event, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_frontier.report.figures import Figures

Term = tuple[str, int]

TERMINAL: Final = frozenset({State.TERMINAL})
SUPPRESSED: Final = frozenset({State.SUPPRESSED})
DEFERRED: Final = frozenset({State.DEFERRED})
FETCHING: Final = frozenset({State.FETCHING})
ADMITTED: Final = UNRESOLVED | TERMINAL
"""The states of an identity that is neither suppressed nor deferred."""


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation, written out with its numbers."""

    text: str
    holds: bool

    @classmethod
    def of(cls, *sides: tuple[Term, ...]) -> Equation:
        """All sides, each a sum of named numbers, must be equal."""
        written = " = ".join(
            " + ".join(f"{number} {name}" for name, number in side) for side in sides
        )
        sums = {sum(number for _, number in side) for side in sides}
        return cls(written, holds=len(sums) == 1)


def equations(figures: Figures, run_state: str) -> tuple[Equation, ...]:
    """All equations that must hold for a run in this state (design, section 4: invariants 1, 9)."""
    return (
        *_identities(figures),
        *_states(figures),
        *_references(figures),
        *_attempts(figures, run_state),
        *(_ending(figures) if run_state == "finished" else ()),
    )


def _identities(figures: Figures) -> Iterator[Equation]:
    admitted = ("admitted", figures.flow(ADMITTED))
    yield Equation.of(
        (("identities", figures.identities),),
        (("discover events", figures.events(Event.DISCOVER)),),
        (("rows of the projection", figures.standing_in(frozenset(State))),),
    )
    yield Equation.of(
        (("discovered", figures.identities),),
        (
            admitted,
            ("suppressed", figures.standing_in(SUPPRESSED)),
            ("deferred", figures.standing_in(DEFERRED)),
        ),
    )
    yield Equation.of(
        (admitted,),
        (
            ("terminal", figures.standing_in(TERMINAL)),
            ("unresolved", figures.standing_in(UNRESOLVED)),
        ),
    )


def _states(figures: Figures) -> Iterator[Equation]:
    """The moves into and out of each state leave what the projection shows there."""
    for state in State:
        if state is State.ABSENT:
            continue
        only = frozenset({state})
        flow, standing = figures.flow(only), figures.standing_in(only)
        if flow or standing:
            yield Equation.of(
                ((f"{state} by the ledger", flow),), ((f"{state} by the projection", standing),)
            )


def _references(figures: Figures) -> Iterator[Equation]:
    fresh = ("fresh", figures.referred("fresh"))
    rejected = ("rejected", figures.referred("rejected"))
    yield Equation.of(
        (("references", figures.referred("total")),),
        (
            fresh,
            ("duplicates", figures.referred("duplicates")),
            ("excluded", figures.referred("excluded")),
            rejected,
        ),
    )
    yield Equation.of((fresh,), (("identities", figures.identities),))
    yield Equation.of((rejected,), (("rejections on record", figures.rejections()),))


def _attempts(figures: Figures, run_state: str) -> Iterator[Equation]:
    yield Equation.of(
        (("attempts", figures.attempted()),),
        (("dispatch events", figures.events(Event.DISPATCH)),),
    )
    # A run that is open may be between the two halves of taking back what a dead process held.
    if run_state != "running":
        yield Equation.of(
            (("attempts without an outcome", figures.attempts_without_outcome()),),
            (("fetching", figures.standing_in(FETCHING)),),
        )


def _ending(figures: Figures) -> Iterator[Equation]:
    yield Equation.of(
        (
            ("unresolved", figures.standing_in(UNRESOLVED)),
            ("further requests in waiting", figures.visits_waiting),
        ),
        (("left over in a finished run", 0),),
    )
