"""What the health of an origin consists of: its bounds, its state, and the window a decision is
made from.

All three are plain data and can be written as JSON: a sample holds them, and whoever reads it can
make the decision again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from scrapy_frontier.errors import FrontierError


class SampleUnreadable(FrontierError):
    """A stored sample or state does not have the form that this version writes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between what the controller may choose.

    `limit`: requests in flight at the most. `floor_s`: the shortest interval (the configured delay,
    Crawl-delay); `ceiling_s`: the longest. `target`: requests in flight on average at the most,
    None for no such bound. `close_after_s`: seconds of nothing but failures after which the origin
    is closed, None for never.
    """

    limit: int
    floor_s: float = 0.0
    ceiling_s: float = 60.0
    target: float | None = None
    close_after_s: float | None = None

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit {self.limit!r}: at least 1 request must be allowed in flight")
        if not (math.isfinite(self.ceiling_s) and 0 <= self.floor_s <= self.ceiling_s):
            raise ValueError(
                f"floor_s {self.floor_s!r}, ceiling_s {self.ceiling_s!r}: 0 <= floor <= ceiling"
            )
        if self.target is not None and not self.target > 0:
            raise ValueError(f"target {self.target!r}: must be above 0")


@dataclass(frozen=True, slots=True)
class HealthState:
    """What an origin may be asked for now, and what is remembered of it.

    `concurrency` and `interval_s` are what its gate keeps. `baseline_s`: what an answer takes when
    the origin is at ease. `threshold`: requests a second up to which the origin was well before its
    last trouble; None where that is unknown or long ago. `changed_at`: when it was last asked for
    less. `failing_since`: when the first request left that failed with nothing but failures after
    it; `rounds`: how often the origin was asked for less since. `has_answered`: whether it has
    answered what it was asked since the last change. `cause`: the last trouble.
    """

    concurrency: int
    interval_s: float
    baseline_s: float | None = None
    threshold: float | None = None
    changed_at: float = 0.0
    failing_since: float | None = None
    rounds: int = 0
    has_answered: bool = True
    is_closed: bool = False
    cause: str = ""

    @property
    def is_returning(self) -> bool:
        """Whether its rate is still below what the origin took well before its last trouble."""
        return self.interval_s > 0 and (
            self.threshold is None or self.interval_s * self.threshold > 1.001
        )

    def is_calm(self, bounds: Bounds) -> bool:
        """Whether the origin may be asked for all that its bounds allow, and nothing is failing."""
        return (
            self.concurrency == bounds.limit
            and self.interval_s <= bounds.floor_s
            and self.failing_since is None
            and not self.is_closed
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """One window of outcomes; times in seconds since the epoch.

    The counts hold outcomes of requests that left after the last change; `stale` are those that
    left before it and say nothing of what it did. `latency_s` is the lower quartile of what answers
    took, `mean_s` their mean. `trouble`: the outcome that ended the window, "" for none.
    `failing_since`: when the first request left that failed with nothing but failures after it in
    this window; `has_life`: whether anything in it came from a working server.
    """

    started_at: float
    ended_at: float
    answered: int = 0
    refused: int = 0
    error: int = 0
    down: int = 0
    timeout: int = 0
    broken: int = 0
    unreached: int = 0
    stale: int = 0
    latency_s: float | None = None
    mean_s: float | None = None
    trouble: str = ""
    failing_since: float | None = None
    has_life: bool = False

    @property
    def total(self) -> int:
        """Outcomes that count."""
        failed = self.refused + self.error + self.down
        return self.answered + failed + self.timeout + self.broken + self.unreached

    @property
    def pace_s(self) -> float:
        """Seconds between two outcomes on average."""
        return max(0.0, self.ended_at - self.started_at) / max(1, self.total)


@dataclass(frozen=True, slots=True)
class Sample:
    """One decision with all that it was made from."""

    code: str
    bounds: Bounds
    before: HealthState
    window: Summary
    after: HealthState

    def inputs(self) -> dict[str, Any]:
        """What the decision was made from, as plain data."""
        return {
            "bounds": dump(self.bounds),
            "state": dump(self.before),
            "window": dump(self.window),
        }

    @classmethod
    def from_data(cls, code: str, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> Sample:
        """Read a stored sample. Raises `SampleUnreadable`."""
        return cls(
            code,
            load(Bounds, inputs.get("bounds")),
            load(HealthState, inputs.get("state")),
            load(Summary, inputs.get("window")),
            load(HealthState, state),
        )


Part = Bounds | HealthState | Summary
P = TypeVar("P", Bounds, HealthState, Summary)


def dump(part: Part) -> dict[str, Any]:
    """A part as plain data; what has its default is left out."""
    defaults = {item.name: item.default for item in fields(part)}
    return {name: value for name, value in asdict(part).items() if value != defaults[name]}


def load(kind: type[P], data: Any) -> P:
    """Read what `dump` has written. Raises `SampleUnreadable`."""
    try:
        return kind(**data)
    except (TypeError, ValueError) as exc:
        raise SampleUnreadable(
            f"{data!r} is no {kind.__name__} of this version: {exc}; read it with the version of"
            " scrapy_frontier that wrote it"
        ) from exc
