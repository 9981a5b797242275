"""How long to wait: doubled each time, varied within bounds by a recorded seed."""

from __future__ import annotations

from random import Random
from typing import Final

JITTER: Final = 0.25
"""A wait is varied by a quarter up or down."""

LATENESS: Final = 0.1
"""A wait that a server has asked for is lengthened by up to a tenth, and never shortened."""

LATENESS_MAX_S: Final = 10.0

_DOUBLINGS: Final = 60


def backoff_s(base_s: float, count: int, max_s: float, seed: int) -> float:
    """The wait in seconds before the next attempt after `count` earlier ones of its kind.

    It lies within `JITTER` of `base_s` doubled `count` times, and never above `max_s`.
    """
    nominal_s = min(max_s, base_s * 2.0 ** min(count, _DOUBLINGS))
    factor = 1 - JITTER + 2 * JITTER * Random(seed).random()
    return round(min(max_s, nominal_s * factor), 3)


def asked_s(wait_s: float, seed: int) -> float:
    """The wait in seconds where a server asked for `wait_s`: a little longer, so that not all come
    back at the same instant.
    """
    late_s = min(LATENESS_MAX_S, wait_s * LATENESS)
    return round(wait_s + late_s * Random(seed).random(), 3)
