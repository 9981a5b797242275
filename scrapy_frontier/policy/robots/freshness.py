"""How long a fetched robots.txt may be used: Cache-Control within bounds (RFC 9309, section 2.4;
RFC 9111, section 4.2).
"""

from __future__ import annotations

from typing import Final

_MOST_DIGITS: Final = 9


def lifetime_s(cache_control: str, age: str, min_age_s: float, max_age_s: float) -> float:
    """Return for how many seconds a response of now is fresh, by its headers Cache-Control and Age,
    within the bounds; the upper one where it does not say.
    """
    asked_s = read_max_age(cache_control)
    if asked_s is None:
        return max_age_s
    return min(max(asked_s - (_seconds(age) or 0), min_age_s), max_age_s)


def read_max_age(cache_control: str) -> int | None:
    """Return the seconds of `max-age`, 0 for `no-cache` and `no-store`, None where neither is said.

    What only concerns shared caches (`s-maxage`) does not matter here. Of several the least counts.
    """
    ages = [age for directive in cache_control.split(",") if (age := _read(directive)) is not None]
    return min(ages, default=None)


def _read(directive: str) -> int | None:
    name, _, value = directive.partition("=")
    name = name.strip().lower()
    if name in ("no-cache", "no-store"):
        return 0
    return _seconds(value) if name == "max-age" else None


def _seconds(value: str) -> int | None:
    digits = value.strip().strip('"')
    if not digits.isascii() or not digits.isdigit():
        return None
    return int(digits[:_MOST_DIGITS]) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
