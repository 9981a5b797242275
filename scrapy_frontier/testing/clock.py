"""A clock that moves only when it is told to."""

from __future__ import annotations


class MovedClock:
    """A clock for tests: `now()` stands still until `advance()` or `set()` moves it.

    Times are seconds since the epoch as a float, as everywhere in this package. Pass `clock.now`
    where a plain function is wanted.
    """

    __slots__ = ("_now",)

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def __repr__(self) -> str:
        return f"MovedClock({self._now!r})"

    def now(self) -> float:
        """The instant the clock was last moved to."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Move the clock forward and return the new instant. Raises ValueError for a step back."""
        if seconds < 0:
            raise ValueError(
                f"cannot advance by {seconds!r} seconds: use set() to move a clock back"
            )
        self._now += seconds
        return self._now

    def set(self, now: float) -> None:
        """Move the clock to any instant, also an earlier one, as real wall clocks do at times."""
        self._now = now
