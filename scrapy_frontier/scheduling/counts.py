"""The schedule in numbers, for statistics and for explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_frontier.scheduling.gates import GateState
    from scrapy_frontier.scheduling.hotset import HotSet
    from scrapy_frontier.scheduling.permits import Permits
    from scrapy_frontier.scheduling.window import Window


@dataclass(frozen=True, slots=True)
class Counts:
    """What is in memory. `ready` and `gates_by_state` count the gates that something waits at."""

    hot_origins: int
    activating: int
    leaving: int
    cold_waiting: int
    gates: int
    heads: int
    lanes: int
    ready: int
    in_flight: int
    permits_waiting: int
    gates_by_state: Mapping[GateState, int]


def count(hot: HotSet, window: Window, permits: Permits, now: float) -> Counts:
    """Count everything; takes time in proportion to the gates in memory."""
    flows = hot.flows.values()
    return Counts(
        hot_origins=len(hot.origins),
        activating=len(hot.activating),
        leaving=hot.leaving,
        cold_waiting=hot.cold_waiting,
        gates=len(flows),
        heads=len(window),
        lanes=window.lanes,
        ready=sum(1 for flow in flows if flow.ready),
        in_flight=sum(flow.gate.in_flight for flow in flows),
        permits_waiting=len(permits),
        gates_by_state=Counter(flow.gate.state(now) for flow in flows if flow.has_work),
    )
