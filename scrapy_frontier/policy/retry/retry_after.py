"""`Retry-After` in both its forms (RFC 9110, section 10.2.3), within local limits.

===========================  =======================================================================
note                         what it says
===========================  =======================================================================
`seconds`, `date`            obeyed as it stands
`past`                       a date that has passed, or 0 seconds: nothing to wait for
`malformed`                  neither form: ignored
`capped`                     more than the local limit: the limit is obeyed
===========================  =======================================================================

A date is counted from the response's own `Date`, so that a server whose clock is wrong asks for
what it means; without a readable `Date` it is counted from the local clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Final

SECONDS: Final = "seconds"
DATE: Final = "date"
PAST: Final = "past"
MALFORMED: Final = "malformed"
CAPPED: Final = "capped"

_MAX_DIGITS: Final = 15
"""More digits than any wait can have."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """What a `Retry-After` comes to: seconds to wait (None: nothing to obey), how it was read, and
    by how many seconds the server's clock is ahead of ours where a date was counted from its own.
    """

    wait_s: float | None
    note: str
    skew_s: float | None = None


def read_retry_after(value: str, date: str, now_s: float, cap_s: float) -> RetryAfter | None:
    """Read the header `value` of a response with the header `date`; None where there is none.

    `now_s`: the local clock, seconds since the epoch. `cap_s`: the longest wait that is obeyed.
    """
    value = value.strip()
    if not value:
        return None
    skew_s: float | None = None
    note = SECONDS
    if value.isascii() and value.isdigit():
        wait_s = float(value) if len(value) <= _MAX_DIGITS else cap_s + 1
    else:
        until = _instant(value)
        if until is None:
            return RetryAfter(None, MALFORMED)
        said = _instant(date)
        if said is not None:
            skew_s = round(said - now_s, 3)
        wait_s, note = until - (now_s if said is None else said), DATE
    if wait_s <= 0:
        return RetryAfter(None, PAST, skew_s)
    if wait_s > cap_s:
        return RetryAfter(cap_s, CAPPED, skew_s)
    return RetryAfter(wait_s, note, skew_s)


def _instant(text: str) -> float | None:
    """The instant of an HTTP date in seconds since the epoch; None for anything else."""
    try:
        found = parsedate_to_datetime(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
        return (found - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
