"""A stand-in for what drives the schedule in a crawl: a store that answers late, a wire that takes time, and a book of
everything that happened, which is checked at each step.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import GateState, Head, Pick, Refill, Schedule

Key = tuple[int, int]


@dataclass
class Server:
    """What an origin's server sees, and what it must not see."""

    policy: OriginPolicy
    in_flight: int = 0
    most: int = 0
    earliest: float = 0.0
    dispatches: list[float] = field(default_factory=list)

    def start(self, now: float) -> None:
        assert now >= self.earliest - 1e-6, f"{self.earliest - now} s too early"
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        assert self.in_flight <= self.policy.limit, "more in flight than the limit"
        self.earliest = now + self.policy.interval_s
        self.dispatches.append(now)

    def end(self, now: float) -> None:
        self.in_flight -= 1
        if self.policy.limit == 1:
            self.earliest = now + self.policy.interval_s


@dataclass
class Question:
    """A question on its way to the store; `rows` once it was read there."""

    origin_id: int
    refill: Refill | None
    rows: list[tuple[int, list[Head], bool]] | None = None


class Driver:
    """Drives a `Schedule` by its contract. `policies[origin_id]` names the origins there are; `gates` those that share
    one.
    """

    def __init__(
        self,
        schedule: Schedule,
        policies: dict[int, OriginPolicy],
        gates: dict[int, str] | None = None,
        now: float = 1_700_000_000.0,
    ) -> None:
        self.schedule = schedule
        self.policies = policies
        self.gates = {origin_id: f"gate{origin_id}" for origin_id in policies} | (gates or {})
        self.servers = {key: Server(policies[origin_id]) for origin_id, key in self.gates.items()}
        self.now = now
        self.store: dict[int, dict[Key, int]] = {origin_id: {} for origin_id in policies}
        self.waiting: dict[int, int] = {}
        self.cold: dict[int, None] = {}
        self.kept: dict[str, float] = {}
        self.questions: deque[Question] = deque()
        self.reserved: list[Pick | str] = []
        self.on_wire: list[Pick | str] = []
        self.handed: list[int] = []
        self.braked: dict[str, float] = {}
        self.last_id = 0

    # What becomes known

    def admit(self, origin_id: int, rank: int = 0, identity_id: int | None = None) -> int:
        """An identity becomes scheduled: in the store first, then in the schedule."""
        if identity_id is None:
            self.last_id += 1
            identity_id = self.last_id
        self.store[origin_id][rank, identity_id] = origin_id
        self.waiting[identity_id] = origin_id
        if origin_id not in self.cold and not self.offer(origin_id, rank, identity_id):
            self.cold[origin_id] = None
        self.schedule.cold_waiting = len(self.cold)
        return identity_id

    def offer(self, origin_id: int, rank: int, identity_id: int) -> bool:
        head = Head(rank, identity_id, f"payload {identity_id}")
        if self.schedule.add(origin_id, head, self.now):
            return True
        is_hot = self.schedule.ensure_origin(
            origin_id,
            self.gates[origin_id],
            self.policies[origin_id],
            self.now,
            next_eligible_at=self.kept.get(self.gates[origin_id], 0.0),
        )
        return is_hot and self.schedule.add(origin_id, head, self.now)

    def exclude(self, identity_id: int) -> None:
        """A scheduled identity is excluded by a rule."""
        origin_id = self.waiting.pop(identity_id)
        self.store[origin_id] = {
            key: value for key, value in self.store[origin_id].items() if key[1] != identity_id
        }
        self.schedule.discard(origin_id, identity_id, self.now)

    # Hand-outs and the wire

    def hand_out(self) -> Pick | None:
        pick = self.schedule.next(self.now)
        if pick is None:
            return None
        key = pick.head[:2]
        assert pick.gate_key == self.gates[pick.origin_id]
        assert pick.head.payload == f"payload {key[1]}"
        band = self.schedule.bands.band_of(key[0])
        assert key == min(
            own for own in self.store[pick.origin_id] if self.schedule.bands.band_of(own[0]) == band
        ), "handed out of turn, or twice"
        assert self.braked.get(pick.gate_key, 0.0) <= self.now, "past a brake"
        del self.store[pick.origin_id][key]
        del self.waiting[key[1]]
        self.handed.append(key[1])
        self.reserved.append(pick)
        self.note_rotated()
        return pick

    def gate_of(self, what: Pick | str) -> str:
        return what.gate_key if isinstance(what, Pick) else what

    def dispatch(self, index: int = 0) -> None:
        what = self.reserved.pop(index)
        key = self.gate_of(what)
        self.servers[key].start(self.now)
        self.kept[key] = self.schedule.charge(key, self.now, self.servers[key].policy.interval_s)
        self.on_wire.append(what)

    def cancel(self, index: int = 0) -> Pick | str:
        what = self.reserved.pop(index)
        self.schedule.cancel(self.gate_of(what), self.now)
        return what

    def end(self, index: int = 0) -> None:
        key = self.gate_of(self.on_wire.pop(index))
        self.servers[key].end(self.now)
        self.kept[key] = self.schedule.release(key, self.now)

    def want_permit(self, key: str, token: str) -> None:
        server = self.servers[key]
        granted = self.schedule.want_permit(
            key, token, self.now, policy=server.policy, next_eligible_at=self.kept.get(key, 0.0)
        )
        if granted:
            self.reserved.append(key)

    def collect(self) -> list[str]:
        """Grants; a token starts with the key of its gate."""
        tokens = [str(token) for token in self.schedule.grants(self.now)]
        self.reserved += [token.partition(" ")[0] for token in tokens]
        return tokens

    # Brakes

    def brake(self, key: str, until: float) -> None:
        if self.schedule.hold(key, until, GateState.BACKOFF, self.now):
            self.braked[key] = max(until, self.braked.get(key, 0.0))

    # The store

    def ask(self) -> None:
        """Send the questions that are due on their way."""
        self.note_rotated()
        for refill in self.schedule.refills():
            self.questions.append(Question(refill.origin_id, refill))
        for _ in range(self.schedule.wants_activation(self.now)):
            origin_id = next(iter(self.cold))
            del self.cold[origin_id]
            self.schedule.cold_waiting = len(self.cold)
            self.schedule.activating(origin_id)
            self.questions.append(Question(origin_id, None))

    def read(self) -> None:
        """The store reads what the first unread question asks for."""
        for question in self.questions:
            if question.rows is None:
                question.rows = (
                    self._read_first(question.origin_id)
                    if question.refill is None
                    else [self._read_refill(question.refill)]
                )
                return

    def _read_refill(self, refill: Refill) -> tuple[int, list[Head], bool]:
        keys = sorted(
            key
            for key in self.store[refill.origin_id]
            if key >= refill.first and key[0] <= refill.rank_max
        )
        heads = [Head(*key, f"payload {key[1]}") for key in keys[: refill.limit]]
        return refill.band, heads, len(keys) > refill.limit

    def _read_first(self, origin_id: int) -> list[tuple[int, list[Head], bool]]:
        bands = self.schedule.bands
        found = []
        for band in range(len(bands)):
            least, greatest = bands.ranks(band)
            refill = Refill(origin_id, band, (least, 0), greatest, 2)
            lane = self._read_refill(refill)
            if lane[1]:
                found.append(lane)
        return found

    def answer(self) -> None:
        """The answer to the first question arrives."""
        if not self.questions or self.questions[0].rows is None:
            return
        question = self.questions.popleft()
        assert question.rows is not None
        if question.refill is not None:
            (_, heads, more) = question.rows[0]
            self.schedule.refilled(question.refill, heads, more, self.now)
            return
        key = self.gates[question.origin_id]
        self.schedule.activate(
            question.origin_id,
            key,
            self.policies[question.origin_id],
            question.rows,
            self.now,
            next_eligible_at=self.kept.get(key, 0.0),
        )

    def pump(self) -> None:
        """Let the store answer everything at once."""
        self.ask()
        while self.questions:
            self.read()
            self.answer()

    def note_rotated(self) -> bool:
        """Whether any origin has become cold."""
        found = self.schedule.rotated(self.now)
        for rotated in found:
            key = rotated.gate_key
            self.kept[key] = max(self.kept.get(key, 0.0), rotated.gate.next_eligible_at)
            assert rotated.origin_id not in self.cold
            if self.store[rotated.origin_id]:
                self.cold[rotated.origin_id] = None
        self.schedule.cold_waiting = len(self.cold)
        return bool(found)

    def settle(self) -> None:
        """Until nothing is under way: everything dispatched, ended, asked and answered."""
        while self.reserved:
            self.dispatch()
        while self.on_wire:
            self.end()
        self.collect()
        self.pump()

    def drain(self, limit: int = 3_000) -> None:
        """Crawl until the store is empty."""
        for _ in range(limit):
            self.settle()
            if not self.waiting and not self.reserved:
                return
            if self.hand_out() is None and not self.reserved:
                next_at = self.schedule.next_at(self.now)
                if next_at is not None:
                    self.now = max(self.now, next_at)
        raise AssertionError(
            f"{len(self.waiting)} identities are never handed out: {self.schedule}"
        )
