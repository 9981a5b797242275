"""What the HTML report shows beside the account: read in the same snapshot, bounded, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """What the run was asked for: its first start URLs, and the settings of its policy that say something."""

    start_urls: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Slice:
    """Attempts that were dispatched in one slice of the run's time.

    `by_class`: how many, by status class ("2xx", "none"). Latencies run from dispatch to the end of the response, in
    seconds; None where no attempt of the slice has ended.
    """

    start_ms: int
    by_class: Mapping[str, int]
    median_s: float | None
    slowest_s: float | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The run in slices of `width_ms`. `slowest_s` of a slice is its 95th percentile."""

    width_ms: int
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One decision about the pace of an origin."""

    at_ms: int
    origin: str
    code: str
    concurrency: int
    interval_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """The decisions about those origins that had the most; `total` counts those of all origins."""

    total: int
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a family of URLs grew: what there was of it at the end of each slice of the timeline.

    `found`: its URLs; `fetched`: responses to them; `brought`: pages among these that were like no earlier one.
    """

    origin: str
    family: str
    found: tuple[int, ...]
    fetched: tuple[int, ...]
    brought: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """A URL that did not answer as it should, and the first pages that carry a link to it; `pages` counts all."""

    url: str
    end: str
    reason: str
    pages: int
    carried_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of redirects from its first URL to its last, and how the last one stands."""

    urls: tuple[str, ...]
    end: str


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """The web of the run: its URLs, and the references between them.

    `reachable`: URLs to which links and redirects lead from the start URLs; `by_depth`: how many links away, at least.
    `orphaned`: the others, which only a sitemap or the spider itself named; `orphans` are the first of them.
    """

    urls: int
    links: int
    reachable: int
    by_depth: Mapping[int, int]
    orphaned: int
    orphans: tuple[str, ...]
    broken_total: int
    broken: tuple[Broken, ...]
    chains_total: int
    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One attempt: when, how long it took, what came of it."""

    at_ms: int
    took_s: float | None
    status: int | None
    size: int | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Odd:
    """A URL that was attempted more than once, or did not end well, and its first attempts."""

    url: str
    state: str
    reason: str
    attempts: int
    first: tuple[AttemptFacts, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is read for the page. `odd_total`: how many URLs are odd, of which `odd` are the first."""

    asked: Asked
    timeline: Timeline
    pace: Pace
    growth: tuple[Growth, ...]
    graph: LinkGraph
    odd_total: int
    odd: tuple[Odd, ...]
