"""Gates: when an origin may be asked for the next thing, and why not yet.

A gate knows numbers and instants only. Its owner hands it the time, the interval that was drawn,
and tells it what happened on the wire; the gate answers whether one more request may leave now, and
otherwise when.

The life of one request at its gate:

    reserve   it is handed out: the place is taken, and where an interval is kept nothing else is
    handed out charge    it reaches the wire: this instant is what the interval is counted from
    release   it has left the wire; with a limit of 1 the interval is counted from here cancel
    instead of the last two: it never reached the wire and costs no interval

So no two requests can come closer on the wire than the interval, however long a request is under
way between hand-out and wire (design, invariant 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from scrapy_frontier.errors import FrontierError

if TYPE_CHECKING:
    from scrapy_frontier.policy.politeness import OriginPolicy


class SchedulingError(FrontierError):
    """The schedule was driven in an order that its contract does not allow; nothing was changed."""


class GateState(Enum):
    """What an origin's gate says (design, section 3)."""

    OPEN = "open"
    BUSY = "busy"
    INTERVAL = "interval"
    BACKOFF = "backoff"
    ROBOTS_PENDING = "robots_pending"
    ROBOTS_UNAVAILABLE = "robots_unavailable"
    OWNED_ELSEWHERE = "owned_elsewhere"
    CLOSED = "closed"

    @property
    def label(self) -> str:
        """The name used in reports and documentation."""
        return self.value


BRAKES: Final = (
    GateState.CLOSED,
    GateState.OWNED_ELSEWHERE,
    GateState.ROBOTS_UNAVAILABLE,
    GateState.ROBOTS_PENDING,
    GateState.BACKOFF,
)
"""States that a decision puts a gate into, the one that is named first where several hold."""

ROBOTS_BRAKES: Final = frozenset({GateState.ROBOTS_PENDING, GateState.ROBOTS_UNAVAILABLE})
"""Brakes that do not hold the fetch of robots.txt itself."""


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """What is worth keeping of a gate.

    `next_eligible_at`: the instant before which nothing may be dispatched, also after a restart; 0
    where nothing is known. `opens_at`: None where an event, not a time, opens the gate.
    """

    state: GateState
    next_eligible_at: float
    opens_at: float | None


class Gate:
    """One origin's gate, or the one that several origins share."""

    __slots__ = ("_brakes", "_interval_s", "_uncharged", "in_flight", "next_at", "policy")

    def __init__(
        self,
        policy: OriginPolicy,
        now: float,
        *,
        next_eligible_at: float = 0.0,
        longest_hold_s: float = 0.0,
    ) -> None:
        """Make a gate that opens at `next_eligible_at`, an instant out of a snapshot of an earlier
        process.

        The clock may have been moved since. An instant later than now plus the longest interval
        plus `longest_hold_s` (the longest back-off in use) cannot have been meant: it is cut to
        that sum. What is past is past.
        """
        self.policy = policy
        self.in_flight = 0
        self.next_at = min(next_eligible_at, now + policy.longest_interval_s + longest_hold_s)
        self._uncharged = 0
        self._interval_s = 0.0
        self._brakes: dict[GateState, float] | None = None

    def __repr__(self) -> str:
        brakes = "".join(
            f" {brake.label} until {until}" for brake, until in (self._brakes or {}).items()
        )
        return (
            f"<Gate {self.in_flight}/{self.policy.limit} in flight, {self._uncharged} off the wire"
            f" next_at={self.next_at}{brakes}>"
        )

    def opens_at(self, now: float, past_robots: bool = False) -> float | None:
        """The earliest instant for one more request, `now` where that is at once; None where only
        an event can tell.

        `past_robots` asks for robots.txt itself, which no robots brake holds.
        """
        if self.in_flight >= self.policy.limit or (self._uncharged and self.policy.interval_s):
            return None
        opens_at = self.next_at
        if self._brakes:
            opens_at = max(opens_at, self._braked_until(past_robots))
            if opens_at == inf:
                return None
        return max(opens_at, now)

    def is_open(self, now: float, past_robots: bool = False) -> bool:
        """Whether one more request may be handed out now."""
        return self.opens_at(now, past_robots) == now

    def state(self, now: float) -> GateState:
        """What the gate says now; a brake is named before `busy`, and `busy` before `interval`."""
        for brake in BRAKES if self._brakes else ():
            if self._brakes.get(brake, 0.0) > now:  # type: ignore[union-attr]
                return brake
        if self.opens_at(now) is None:
            return GateState.BUSY
        return GateState.INTERVAL if self.next_at > now else GateState.OPEN

    def reserve(self, now: float, past_robots: bool = False) -> bool:
        """Take a place for a request that is handed out; whether one more might follow at once.

        Raises `SchedulingError` where the gate is not open.
        """
        if self.opens_at(now, past_robots) != now:
            raise SchedulingError(
                f"reserve: the gate is {self.state(now).label} at {now}: {self!r}"
            )
        self.in_flight += 1
        self._uncharged += 1
        return not self.policy.interval_s and self.in_flight < self.policy.limit

    def charge(self, now: float, interval_s: float) -> None:
        """A reserved request reaches the wire; `interval_s` is the interval that is kept after it.

        The instant counts from here also where the limit is 1, until `release` corrects it: a
        process that dies in between has kept at least this.
        """
        if not self._uncharged:
            raise SchedulingError(f"charge: nothing is reserved: {self!r}")
        self._uncharged -= 1
        self._interval_s = interval_s
        if interval_s:
            self.next_at = max(self.next_at, now + interval_s)

    def release(self, now: float) -> None:
        """A charged request has left the wire, with or without a response."""
        if self.in_flight <= self._uncharged:
            raise SchedulingError(f"release: nothing is on the wire: {self!r}")
        self.in_flight -= 1
        if self.policy.limit == 1 and self._interval_s:
            self.next_at = max(self.next_at, now + self._interval_s)

    def cancel(self, now: float) -> None:
        """A reserved request will not reach the wire; it leaves no trace."""
        if not self._uncharged:
            raise SchedulingError(f"cancel at {now}: nothing is reserved: {self!r}")
        self._uncharged -= 1
        self.in_flight -= 1

    def hold(self, until: float, state: GateState) -> None:
        """Keep the gate shut until an instant. A hold is never shortened by a later one: `reopen`
        ends it early.

        `state` is one of `BRAKES`. Holds for different reasons stand side by side.
        """
        if state not in BRAKES:
            raise ValueError(f"state {state.label!r} follows from the traffic and cannot be set")
        if self._brakes is None:
            self._brakes = {}
        self._brakes[state] = max(until, self._brakes.get(state, 0.0))

    def close(self, state: GateState) -> None:
        """Keep the gate shut until `reopen`. `state` is one of `BRAKES`."""
        self.hold(inf, state)

    def reopen(self, state: GateState | None = None) -> None:
        """End the hold or close of one reason, or all of them. Limit and interval are kept as
        before.
        """
        if self._brakes is not None and state is not None:
            self._brakes.pop(state, None)
        if state is None or not self._brakes:
            self._brakes = None

    def is_idle(self, now: float) -> bool:
        """Whether forgetting this gate would lose nothing: no request, interval or brake is
        running.
        """
        return not self.in_flight and self.next_at <= now and self._braked_until(False) <= now

    def snapshot(self, now: float) -> GateSnapshot:
        """What to keep of the gate. A request between hand-out and wire counts as one that reaches
        the wire now.
        """
        next_eligible_at = self.next_at
        if self._uncharged:
            next_eligible_at = max(next_eligible_at, now + self.policy.longest_interval_s)
        holds = [until for until in (self._brakes or {}).values() if until != inf]
        return GateSnapshot(self.state(now), max([next_eligible_at, *holds]), self.opens_at(now))

    def _braked_until(self, past_robots: bool) -> float:
        return max(
            (
                until
                for brake, until in (self._brakes or {}).items()
                if not (past_robots and brake in ROBOTS_BRAKES)
            ),
            default=0.0,
        )
