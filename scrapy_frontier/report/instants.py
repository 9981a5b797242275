"""Times of the store, as reports write them."""

from __future__ import annotations

from datetime import datetime, timezone

from scrapy_frontier.clock import milliseconds


def clock(at: str | None) -> str:
    """An instant of `iso` for people: to the second, or "an unknown time"."""
    return f"{at[:19].replace('T', ' ')} UTC" if at else "an unknown time"


def iso(at_ms: int | None) -> str | None:
    """An instant as ISO 8601 in UTC with milliseconds; None and 0, which mean "not", stay None."""
    if not at_ms:
        return None
    seconds, millis = divmod(at_ms, 1000)
    try:
        at = datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return f"{at_ms} ms"
    return f"{at:%Y-%m-%dT%H:%M:%S}.{millis:03d}Z"


def instant(at: float | None) -> str | None:
    """An instant in seconds since the epoch, as `iso` writes it."""
    return iso(milliseconds(at)) if at else None
