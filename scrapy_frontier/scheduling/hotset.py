"""The hot set: which origins and gates are in memory, which have to make room, and what they leave
behind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_frontier.scheduling.flows import Flow, Origin
from scrapy_frontier.scheduling.gates import Gate, GateSnapshot

if TYPE_CHECKING:
    from scrapy_frontier.policy.politeness import OriginPolicy
    from scrapy_frontier.scheduling.lanes import Key

LOOKS: Final = 8
"""How many origins one call looks at for one that could leave; the next call looks at others."""


class Rotated(NamedTuple):
    """An origin that had to leave memory to make room for others; its gate is open again."""

    origin_id: int
    gate_key: str
    gate: GateSnapshot


class Pending:
    """What came to an origin, or left it, while the store is asked for its heads."""

    __slots__ = ("discarded", "left")

    def __init__(self) -> None:
        self.left: dict[int, Key] = {}
        self.discarded: set[int] = set()

    def leave(self, band: int, key: Key) -> None:
        """Note a head that is in the store only."""
        self.left[band] = min(key, self.left.get(band, key))


class HotSet:
    """Origins and their flows by key.

    An origin without work is kept for a while, since it often gets some more; it is dropped when
    room is wanted or more than `idle_origins` are kept. A flow without an origin (made for a
    permit, or left by its origins) is kept until its gate has nothing to remember.
    """

    def __init__(
        self,
        *,
        bands: int,
        next_ticket: Callable[[], int],
        max_origins: int,
        idle_origins: int,
        patience_s: float,
        longest_hold_s: float,
    ) -> None:
        self.origins: OrderedDict[int, Origin] = OrderedDict()
        self.flows: dict[str, Flow] = {}
        self.activating: dict[int, Pending] = {}
        self.cold_waiting = 0
        self.max_origins = max_origins
        self._bands = bands
        self._next_ticket = next_ticket
        self._idle_origins = idle_origins
        self._patience_s = patience_s
        self._longest_hold_s = longest_hold_s
        self._idle: OrderedDict[int, Origin] = OrderedDict()
        self._orphans: OrderedDict[str, Flow] = OrderedDict()
        self._leaving: set[int] = set()
        self._reports: list[tuple[float, int, Flow]] = []
        self._serial = 0

    @property
    def leaving(self) -> int:
        """Origins taken out and not reported yet."""
        return len(self._leaving)

    def knows(self, origin_id: int) -> bool:
        """Whether an origin is hot, on its way to be, or taken out and not reported yet."""
        return (
            origin_id in self.origins or origin_id in self.activating or origin_id in self._leaving
        )

    @property
    def room(self) -> int:
        """Origins that can be taken in; those without work make room for them."""
        busy = len(self.origins) - len(self._idle) + len(self.activating)
        return max(0, self.max_origins - busy)

    @property
    def is_pressed(self) -> bool:
        """Whether origins wait in the store for which there is no room."""
        return self.cold_waiting > self.room

    def ensure_flow(
        self, key: str, policy: OriginPolicy, now: float, next_eligible_at: float
    ) -> Flow:
        """The flow of this key; its gate is made where it is not in memory."""
        flow = self.flows.get(key)
        if flow is None:
            self._drop_orphans(now)
            gate = Gate(
                policy, now, next_eligible_at=next_eligible_at, longest_hold_s=self._longest_hold_s
            )
            flow = self.flows[key] = self._orphans[key] = Flow(key, gate, self._next_ticket())
        return flow

    def begin(self, origin_id: int) -> None:
        """The store is being asked for the heads of an origin; its place is taken."""
        self._make_room()
        self.activating[origin_id] = Pending()

    def put(self, origin_id: int, flow: Flow) -> Origin:
        """Make an origin hot. It counts as idle until it has a lane."""
        self._make_room()
        origin = Origin(origin_id, flow, self._bands, self._next_ticket())
        flow.attach(origin)
        self._orphans.pop(flow.key, None)
        self.origins[origin_id] = self._idle[origin_id] = origin
        return origin

    def wake(self, origin: Origin) -> None:
        """The origin gets work."""
        self._idle.pop(origin.origin_id, None)

    def idle(self, origin: Origin, now: float) -> None:
        """The origin has no heads, and none in the store."""
        self._idle[origin.origin_id] = origin
        self.trim(now)

    def trim(self, now: float) -> None:
        """Drop idle origins beyond the number that is kept, and flows nobody needs."""
        while len(self._idle) > self._idle_origins:
            self._drop_idle()
        self._drop_orphans(now)

    def stuck(self, now: float) -> Origin | None:
        """An origin that could leave to make room: nothing in flight, and its gate stays shut for a
        good while.
        """
        for _ in range(min(LOOKS, len(self.origins))):
            origin = next(iter(self.origins.values()))
            self.origins.move_to_end(origin.origin_id)
            gate = origin.flow.gate
            if origin.stocked and not gate.in_flight and not origin.flow.waiters:
                opens_at = gate.opens_at(now)
                if opens_at is None or opens_at > now + self._patience_s:
                    return origin
        return None

    def rotate(self, origin: Origin, now: float) -> None:
        """Take an origin out of memory, its lanes being dropped already."""
        flow = origin.flow
        self._remove(origin)
        self._leaving.add(origin.origin_id)
        if flow.leaving is None:
            flow.leaving = []
        flow.leaving.append(origin.origin_id)
        self.rest(flow, now)

    def rest(self, flow: Flow, now: float) -> None:
        """Something changed at a gate where origins wait to be reported: see when that can be."""
        if not flow.leaving:
            return
        at = now if flow.origins else flow.gate.opens_at(now)
        if at is not None:
            self._serial += 1
            heappush(self._reports, (at, self._serial, flow))

    def next_report_at(self, now: float) -> float | None:
        """The earliest time at which `rotated` has something to report."""
        reports = self._reports
        while reports:
            at, _, flow = reports[0]
            if flow.leaving and (flow.origins or flow.gate.opens_at(now) == max(at, now)):
                return at
            heappop(reports)
            self.rest(flow, now)
        return None

    def rotated(self, now: float) -> list[Rotated]:
        """The origins taken out whose gates are open again."""
        left: list[Rotated] = []
        while (at := self.next_report_at(now)) is not None and at <= now:
            flow = heappop(self._reports)[2]
            snapshot = flow.gate.snapshot(now)
            left += [Rotated(origin_id, flow.key, snapshot) for origin_id in flow.leaving or ()]
            self._leaving.difference_update(flow.leaving or ())
            flow.leaving = None
        return left

    def _make_room(self) -> None:
        while self._idle and len(self.origins) + len(self.activating) >= self.max_origins:
            self._drop_idle()

    def _drop_idle(self) -> None:
        _, origin = self._idle.popitem(last=False)
        self._remove(origin)

    def _drop_orphans(self, now: float) -> None:
        for _ in range(min(2, len(self._orphans))):
            key, flow = self._orphans.popitem(last=False)
            if self._is_forgettable(flow, now):
                self._forget(flow)
            else:
                self._orphans[key] = flow

    def _remove(self, origin: Origin) -> None:
        flow = origin.flow
        flow.detach(origin)
        del self.origins[origin.origin_id]
        if not flow.origins:
            self._orphans[flow.key] = flow

    def _forget(self, flow: Flow) -> None:
        flow.wake = flow.ready = 0
        self._orphans.pop(flow.key, None)
        del self.flows[flow.key]

    def _is_forgettable(self, flow: Flow, now: float) -> bool:
        return not flow.waiters and not flow.leaving and flow.gate.is_idle(now)
