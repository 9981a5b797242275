"""Where the time comes from."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time; handed to everything that needs it, so that tests can move it."""

    def now(self) -> float:
        """Seconds since the epoch."""


class SystemClock:
    """Wall-clock time at construction, carried on by the monotonic clock: it never steps back within a process."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.monotonic() + self._offset

    def tell_none_before(self, at: float) -> None:
        """Go on from `at`, in seconds since the epoch, where the time is earlier."""
        self._offset = max(self._offset, at - time.monotonic())


def milliseconds(seconds: float) -> int:
    """A time as the store keeps it, rounded up so that nothing becomes due early."""
    return int(-(-seconds * 1000 // 1))
