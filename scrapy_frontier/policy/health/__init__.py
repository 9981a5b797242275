"""The health of an origin: how much it may be asked for, from what came of the last requests.

Pure: a `Window` collects outcomes, `decide` makes a `Sample` of each window - the state before, the
window, the bounds, the state after - and `recompute` makes the same decision again. Health says how
often an origin is asked; it says nothing about its pages.
"""

from __future__ import annotations

from scrapy_frontier.policy.health.controller import (
    BACK_OFF,
    CLOSE,
    CODES,
    EASE,
    GROW,
    HOLD,
    bounded,
    decide,
    initial,
    recompute,
    resumed,
)
from scrapy_frontier.policy.health.limits import HealthRules, adapted, bounds_of
from scrapy_frontier.policy.health.outcomes import (
    MEANINGS,
    Kind,
    Outcome,
    kind_of_failure,
    kind_of_status,
)
from scrapy_frontier.policy.health.records import (
    Bounds,
    HealthState,
    Sample,
    SampleUnreadable,
    Summary,
    dump,
    load,
)
from scrapy_frontier.policy.health.window import Window

__all__ = [
    "BACK_OFF",
    "CLOSE",
    "CODES",
    "EASE",
    "GROW",
    "HOLD",
    "MEANINGS",
    "Bounds",
    "HealthRules",
    "HealthState",
    "Kind",
    "Outcome",
    "Sample",
    "SampleUnreadable",
    "Summary",
    "Window",
    "adapted",
    "bounded",
    "bounds_of",
    "decide",
    "dump",
    "initial",
    "kind_of_failure",
    "kind_of_status",
    "load",
    "recompute",
    "resumed",
]
