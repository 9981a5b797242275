"""How long a lease holds, and what becomes of a URL whose lease has expired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scrapy_frontier.states import Disposition, Event

EXPIRED: Final = "lease.expired"
"""Reason: the worker showed no sign of work for the whole length of its lease; another attempt follows."""

EXHAUSTED: Final = "lease.exhausted"
"""Reason: that has happened so often that no further attempt follows."""


NOT_REPEATED: Final = "lease.not_repeated"
"""Reason: whether the server has acted on a request that must not be sent twice is not known (RFC 9110, 9.2.2)."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """What follows from an expired lease: the event, with its disposition, and the code of the reason."""

    event: Event
    disposition: Disposition | None
    code: str


RECLAIM: Final = Expiry(Event.RECLAIM, None, EXPIRED)
GIVE_UP: Final = Expiry(Event.GIVE_UP, Disposition.FAILED, EXHAUSTED)

UNSAFE: Final = Expiry(Event.GIVE_UP, Disposition.FAILED, NOT_REPEATED)


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """A lease holds for `length_s` seconds after the last sign of work; the `max_expiries`-th to expire is the last."""

    length_s: float = 600.0
    max_expiries: int = 3

    @property
    def length_ms(self) -> int:
        """The length of a lease in milliseconds."""
        return round(self.length_s * 1000)

    def on_expiry(self, expiries: int, *, may_repeat: bool = True) -> Expiry:
        """`expiries`: how many leases of the URL have expired since it was last done with, this one included.

        A URL that hangs its worker each time would otherwise be asked for again for ever. `may_repeat`: whether its
        request may be sent twice.
        """
        if not may_repeat:
            return UNSAFE
        return RECLAIM if expiries < self.max_expiries else GIVE_UP
