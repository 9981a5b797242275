"""The schedule: the one object that decides, in memory, which URL goes out next and when."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from scrapy_frontier.scheduling.counts import Counts, count
from scrapy_frontier.scheduling.gates import GateSnapshot, GateState, SchedulingError
from scrapy_frontier.scheduling.hotset import HotSet, Pending, Rotated
from scrapy_frontier.scheduling.permits import Permits
from scrapy_frontier.scheduling.selector import BandTable, Selector
from scrapy_frontier.scheduling.window import Window

if TYPE_CHECKING:
    from scrapy_frontier.policy.politeness import OriginPolicy
    from scrapy_frontier.scheduling.flows import Flow, Origin
    from scrapy_frontier.scheduling.lanes import Head, Refill


class Pick(NamedTuple):
    """A head that is handed out. Its gate is reserved: `charge` and `release`, or `cancel`, must
    follow.
    """

    origin_id: int
    gate_key: str
    head: Head


class Schedule:
    """Which URL next, and when. No I/O, no clock, not thread-safe: one thread drives it and hands
    in the time.

    `now` is in seconds since the epoch and must not step back between calls; across restarts it may
    (`Gate`).

    *Heads.* The store holds every scheduled identity; memory holds a window of them. `add` takes in
    what has become scheduled, `next` hands out. `refills()` are questions to the store (see
    `Refill`), each to be answered by `refilled()`; meanwhile nothing is lost or handed out twice,
    however old the answer is, provided that each answer shows all that was `add`ed before its
    question was asked. Heads may be left to the store at any time, with their payloads.

    *Wire.* A pick's gate is reserved. `charge` it when the request reaches the wire and `release`
    it when it has left; `cancel` it when it never gets there.

    *Permits.* Requests from elsewhere ask by `want_permit` for a place at a gate. After every event
    (charge, release, cancel, a refused `want_permit`, the time `next_at` tells) let first `next` be
    asked for all that can be taken, then collect `grants`: in this order URLs and waiters
    alternate, and nobody waits for a URL that nobody asks for. A granted permit is charged and
    released, or cancelled, as a pick is.

    *Hot and cold.* At most `max_hot_origins` are in memory ("hot"). An origin of which the store
    has work, but that the schedule does not know, is cold. The caller knows the cold ones and keeps
    `cold_waiting` at their number:

    - `add` returns False for an origin the schedule does not know. Call `ensure_origin` for one
      that has nothing else in the store, and `add` again; where that returns False too, the origin
      is cold.
    - `wants_activation` tells how many cold origins should be loaded now. For each, take it off the
      cold ones, call `activating`, ask the store for its first heads per band (`bands.ranks`), and
      hand them to `activate`.
    - `rotated`, to be asked before `wants_activation`, names origins that had to leave, because
      they had a `quantum` of hand-outs, or their gate stays shut for more than `patience_s`, while
      cold origins wait: they are cold from now on. Each is named only when its gate is open again,
      so that no cold origin is loaded in vain; until then the schedule remembers what holds it.

    An origin without work leaves by itself, and without notice; its gate stays until it has nothing
    to remember.
    """

    def __init__(
        self,
        bands: BandTable | None = None,
        *,
        window: int = 10_000,
        lane_heads: int = 256,
        max_hot_origins: int = 2_000,
        idle_origins: int = 256,
        quantum: int = 64,
        patience_s: float = 5.0,
        longest_hold_s: float = 0.0,
    ) -> None:
        """`window`: heads in memory at the most; `lane_heads`: of one origin in one band.
        `longest_hold_s`: the longest back-off in use, which bounds what is believed of an instant
        out of an earlier process.
        """
        sizes = {
            "window": window,
            "lane_heads": lane_heads,
            "max_hot_origins": max_hot_origins,
            "quantum": quantum,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} = {size!r}: must be at least 1")
        self.bands = BandTable() if bands is None else bands
        self._quantum = quantum
        self._selector = Selector(self.bands)
        self._permits = Permits()
        self._hot = HotSet(
            bands=len(self.bands),
            next_ticket=self._selector.next_ticket,
            max_origins=max_hot_origins,
            idle_origins=min(idle_origins, max_hot_origins),
            patience_s=patience_s,
            longest_hold_s=longest_hold_s,
        )
        self._origins = self._hot.origins
        self._flows = self._hot.flows
        self._window = Window(self.bands, self._origins, window, lane_heads)

    def __repr__(self) -> str:
        flows = self._flows.values()
        return (
            f"<Schedule heads={len(self._window)}/{self._window.size}"
            f" hot={len(self._origins)}/{self._hot.max_origins} cold={self.cold_waiting}"
            f" ready={sum(1 for flow in flows if flow.ready)}"
            f" in_flight={sum(flow.gate.in_flight for flow in flows)}"
            f" permits_waiting={len(self._permits)}>"
        )

    # Heads

    def ensure_origin(
        self,
        origin_id: int,
        gate_key: str,
        policy: OriginPolicy,
        now: float,
        *,
        next_eligible_at: float = 0.0,
    ) -> bool:
        """Make an origin hot that has nothing in the store; False where there is no room for it.

        Several origins may name one gate. `policy` and `next_eligible_at` matter where the gate is
        not in memory.
        """
        if self._hot.knows(origin_id):
            return True
        if self._hot.room <= self.cold_waiting:
            return False
        flow = self._hot.ensure_flow(gate_key, policy, now, next_eligible_at)
        self._hot.put(origin_id, flow)
        return True

    def add(self, origin_id: int, head: Head, now: float) -> bool:
        """Take in an identity that has become scheduled; False where its origin is not known.

        A head that is in memory already changes nothing.
        """
        origin = self._origins.get(origin_id)
        if origin is None:
            return self._leave_to_store(origin_id, head)
        if not origin.stocked:
            self._hot.wake(origin)
        flow = origin.flow
        had = flow.bands
        self._window.add(origin, head)
        if flow.bands != had:
            self._stocked(flow, had, now)
        return True

    def discard(self, origin_id: int, identity_id: int, now: float) -> bool:
        """Forget an identity that is scheduled no more and was not handed out; whether it was in
        memory.
        """
        origin = self._origins.get(origin_id)
        if origin is None:
            pending = self._hot.activating.get(origin_id)
            if pending is not None:
                pending.discarded.add(identity_id)
            return False
        was_there = self._window.discard(origin, identity_id)
        self._note_idle(origin, now)
        return was_there

    def next(self, now: float) -> Pick | None:
        """Hand out the next head, or None where nothing may go out now."""
        self._wake(now)
        taken = self._selector.take()
        if taken is None:
            return None
        band, flow = taken
        origin = flow.turn(band)
        assert origin is not None
        is_open = flow.gate.reserve(now)
        head = self._window.pop(origin, band)
        flow.was_permit = False
        origin.ticket = flow.ticket
        origin.handed += 1
        if not origin.stocked:
            self._hot.idle(origin, now)
        elif origin.handed >= self._quantum and self._hot.is_pressed:
            self._rotate(origin, now)
        if flow.waiters:
            self._settle(flow, now)
        elif not is_open:
            self._selector.shut(flow)
        return Pick(origin.origin_id, flow.key, head)

    def next_at(self, now: float) -> float | None:
        """The earliest time at which `next`, `grants` or `rotated` could give something without any
        other event; `now` where they could at once, None where only an event can help.
        """
        self._wake(now)
        if self._permits.has_grants or self._selector.is_ready():
            return now
        times = (self._selector.next_time(), self._hot.next_report_at(now))
        return min((max(at, now) for at in times if at is not None), default=None)

    def refills(self) -> list[Refill]:
        """Questions to the store that are due. Each is asked once and must be answered by
        `refilled`.
        """
        return self._window.refills()

    def refilled(
        self, refill: Refill, heads: Iterable[Head], more_in_store: bool, now: float
    ) -> None:
        """Answer a refill. `more_in_store`: whether there are heads beyond these; without heads,
        that nothing was learned. An answer nobody waits for any more changes nothing.
        """
        origin = self._origins.get(refill.origin_id)
        if origin is None:
            return
        flow = origin.flow
        had = flow.bands
        self._window.refilled(refill, heads, more_in_store)
        if flow.bands != had:
            self._stocked(flow, had, now)
        self._note_idle(origin, now)

    # The wire

    def charge(self, gate_key: str, now: float, interval_s: float = 0.0) -> float:
        """The request handed out reaches the wire; `interval_s` is what was drawn from the gate's
        policy for it.

        Returns the instant before which the interval lets nothing follow; it must outlive the
        process.
        """
        flow = self._flow(gate_key)
        flow.gate.charge(now, interval_s)
        if interval_s and flow.has_work:
            self._settle(flow, now)
        self._hot.rest(flow, now)
        return flow.gate.next_at

    def release(self, gate_key: str, now: float) -> float:
        """The request has left the wire. Returns an instant as `charge` does."""
        flow = self._flow(gate_key)
        flow.gate.release(now)
        self._freed(flow, now)
        return flow.gate.next_at

    def cancel(self, gate_key: str, now: float) -> None:
        """The request handed out will not reach the wire."""
        flow = self._flow(gate_key)
        flow.gate.cancel(now)
        self._freed(flow, now)

    def hold(self, gate_key: str, until: float, state: GateState, now: float) -> bool:
        """Keep a gate shut until a time (`Gate.hold`); False where it is not in memory."""
        flow = self._flows.get(gate_key)
        if flow is not None:
            flow.gate.hold(until, state)
            self._settle(flow, now)
        return flow is not None

    def close(self, gate_key: str, state: GateState, now: float) -> bool:
        """Keep a gate shut until `reopen`; False where it is not in memory."""
        return self.hold(gate_key, float("inf"), state, now)

    def reopen(self, gate_key: str, now: float, state: GateState | None = None) -> bool:
        """End a hold or close, or all of them; False where the gate is not in memory."""
        flow = self._flows.get(gate_key)
        if flow is not None:
            flow.gate.reopen(state)
            self._hot.rest(flow, now)
            self._settle(flow, now)
        return flow is not None

    def set_policy(self, gate_key: str, policy: OriginPolicy, now: float) -> bool:
        """Let a gate keep another policy from now on; False where it is not in memory."""
        flow = self._flows.get(gate_key)
        if flow is not None:
            flow.gate.policy = policy
            self._hot.rest(flow, now)
            self._settle(flow, now)
        return flow is not None

    # Permits

    def want_permit(
        self,
        gate_key: str,
        token: Hashable,
        now: float,
        *,
        policy: OriginPolicy,
        next_eligible_at: float = 0.0,
        past_robots: bool = False,
    ) -> bool:
        """Ask for a place at a gate: True where it is granted at once, else the token comes by
        `grants`.

        `policy` and `next_eligible_at` matter where the gate is not in memory. `past_robots` is for
        the fetch of robots.txt. Raises `SchedulingError` for a token that waits already.
        """
        if token in self._permits:
            raise SchedulingError(f"want_permit: {token!r} waits already")
        flow = self._hot.ensure_flow(gate_key, policy, now, next_eligible_at)
        self._permits.wait(flow, token, past_robots)
        self._settle(flow, now)
        return self._permits.collect_one(token)

    def grants(self, now: float) -> list[Hashable]:
        """The permits granted since the last call, each once."""
        self._wake(now)
        for flow in self._permits.serve_left(now):
            self._settle(flow, now)
        return self._permits.collect()

    def forget_permit(self, token: Hashable, now: float) -> bool:
        """Somebody does not want his permit any more; False where it was collected already, or is
        not known.

        A permit that was collected is given back by `cancel`.
        """
        flow = self._permits.forget(token, now)
        if flow is not None:
            self._hot.rest(flow, now)
            self._settle(flow, now)
        return flow is not None

    # Hot and cold

    @property
    def cold_waiting(self) -> int:
        """How many cold origins have work, told by the caller; those that are being activated not
        counted.
        """
        return self._hot.cold_waiting

    @cold_waiting.setter
    def cold_waiting(self, count: int) -> None:
        self._hot.cold_waiting = count

    def wants_activation(self, now: float) -> int:
        """How many of the cold origins should be loaded now."""
        return min(self.cold_waiting, self._hot.room)

    def activating(self, origin_id: int) -> None:
        """The store is asked for an origin's heads; what is added or discarded until the answer is
        not lost.
        """
        if self._hot.knows(origin_id):
            raise SchedulingError(f"activating: origin {origin_id} is known already: {self!r}")
        self._hot.begin(origin_id)

    def activate(
        self,
        origin_id: int,
        gate_key: str,
        policy: OriginPolicy,
        lanes: Iterable[tuple[int, Iterable[Head], bool]],
        now: float,
        *,
        next_eligible_at: float = 0.0,
    ) -> None:
        """Make a cold origin hot with its first heads: (band, heads, more_in_store) for each band
        that has some.

        A band of which only is known that it has some is given as (band, (), True).
        """
        pending = self._hot.activating.pop(origin_id, None) or Pending()
        if self._hot.knows(origin_id):
            raise SchedulingError(f"activate: origin {origin_id} is known already: {self!r}")
        flow = self._hot.ensure_flow(gate_key, policy, now, next_eligible_at)
        origin = self._hot.put(origin_id, flow)
        had = flow.bands
        parts = {band: (heads, more) for band, heads, more in lanes}
        for band in sorted({*parts, *pending.left}):
            heads, more = parts.get(band, ((), False))
            left = pending.left.get(band)
            self._window.load(origin, band, heads, more, left, pending.discarded)
        if origin.stocked:
            self._hot.wake(origin)
        if flow.bands != had:
            self._stocked(flow, had, now)

    def rotated(self, now: float) -> list[Rotated]:
        """The origins that have become cold since the last call."""
        while self._hot.is_pressed:
            origin = self._hot.stuck(now)
            if origin is None:
                break
            self._rotate(origin, now)
        return self._hot.rotated(now)

    # What it looks like

    def is_hot(self, origin_id: int) -> bool:
        """Whether an origin is in memory, on its way there, or about to be named by `rotated`."""
        return self._hot.knows(origin_id)

    def gate_state(self, gate_key: str, now: float) -> GateState | None:
        """What a gate says, None where it is not in memory."""
        flow = self._flows.get(gate_key)
        return None if flow is None else flow.gate.state(now)

    def gate_snapshot(self, gate_key: str, now: float) -> GateSnapshot | None:
        """What to keep of a gate, None where it is not in memory: nothing holds it then."""
        flow = self._flows.get(gate_key)
        return None if flow is None else flow.gate.snapshot(now)

    @property
    def heads(self) -> int:
        """Heads in memory."""
        return len(self._window)

    @property
    def hot_origins(self) -> int:
        """Origins in memory."""
        return len(self._origins)

    def counts(self, now: float) -> Counts:
        """The schedule in numbers; takes time in proportion to the gates in memory."""
        self._wake(now)
        return count(self._hot, self._window, self._permits, now)

    # Within

    def _flow(self, gate_key: str) -> Flow:
        try:
            return self._flows[gate_key]
        except KeyError as exc:
            raise SchedulingError(
                f"gate {gate_key!r} is not in memory: nothing is reserved there"
            ) from exc

    def _leave_to_store(self, origin_id: int, head: Head) -> bool:
        pending = self._hot.activating.get(origin_id)
        if pending is not None:
            pending.leave(self.bands.band_of(head.rank), head[:2])
        return self._hot.knows(origin_id)

    def _wake(self, now: float) -> None:
        """Look again at the gates whose time has come."""
        while (flow := self._selector.pop_due(now)) is not None:
            self._settle(flow, now)

    def _stocked(self, flow: Flow, had: int, now: float) -> None:
        """A flow has got heads in further bands."""
        if flow.ready:
            self._selector.open(flow)
        elif not had:
            self._settle(flow, now)

    def _freed(self, flow: Flow, now: float) -> None:
        """A place at a gate has become free."""
        self._hot.rest(flow, now)
        if flow.waiters or (flow.bands and not flow.ready):
            self._settle(flow, now)
        elif not flow.bands:
            self._hot.trim(now)

    def _settle(self, flow: Flow, now: float) -> None:
        """Put a flow where its gate says: among the ready, among those a time will open, or
        nowhere.
        """
        if flow.waiters:
            self._permits.serve(flow, now)
        opens_at = flow.gate.opens_at(now) if flow.bands else None
        if opens_at == now:
            self._selector.open(flow)
            return
        if flow.waiters:
            waiter_at = flow.gate.opens_at(now, flow.waiters[0].past_robots)
            if opens_at is None or (waiter_at is not None and waiter_at < opens_at):
                opens_at = waiter_at
        self._selector.shut(flow, opens_at)

    def _note_idle(self, origin: Origin, now: float) -> None:
        if not origin.stocked:
            self._hot.idle(origin, now)

    def _rotate(self, origin: Origin, now: float) -> None:
        """Let an origin leave memory; its heads stay in the store."""
        self._window.drop(origin)
        self._hot.rotate(origin, now)
