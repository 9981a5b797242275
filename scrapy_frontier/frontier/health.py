"""The health of origins in a crawl: what came of requests goes in, the pace of their gates comes out.

Each decision is a sample in the store. What was not at ease when a process ended is known to the next one before it
dispatches anything.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.health import (
    BACK_OFF,
    CLOSE,
    HOLD,
    Bounds,
    HealthRules,
    HealthState,
    Kind,
    Outcome,
    Sample,
    SampleUnreadable,
    Window,
    adapted,
    bounds_of,
    decide,
    dump,
    initial,
    load,
    resumed,
)
from scrapy_frontier.policy.health.outcomes import SIGNS_OF_LIFE
from scrapy_frontier.scheduling import GateState
from scrapy_frontier.store.messages import HealthSampled

if TYPE_CHECKING:
    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.policy.politeness import OriginPolicy
    from scrapy_frontier.scheduling import Schedule
    from scrapy_frontier.store.messages import Message

logger = get_logger(__name__)

KEPT: Final = 20_000
"""Gates whose windows are held in memory; of the others those at ease are forgotten."""

SAMPLE_EVERY_S: Final = 60.0
"""A sample that changes nothing is kept once in so many seconds."""

FAILING: Final = "health"
"""Why an origin is closed that did nothing but fail."""


class _Kept:
    """What is known of one gate. `excused_at`: when a failed connection was blamed on an old address."""

    __slots__ = ("excused_at", "sampled_at", "state", "window")

    def __init__(self, state: HealthState) -> None:
        self.state = state
        self.window = Window()
        self.sampled_at = 0.0
        self.excused_at: float | None = None


class Health:
    """Adapts the gates. Without rules it does nothing, and every gate keeps its policy.

    `base_policy` is what a gate keeps at ease. `close` is told of an origin that is closed, and why; `keep_timing`
    keeps an instant before which an origin is not asked.
    """

    def __init__(
        self,
        rules: HealthRules | None,
        schedule: Schedule,
        send: Callable[[Message], None],
        clock: Clock,
        base_policy: Callable[[str], OriginPolicy],
        close: Callable[[int, str], None],
        keep_timing: Callable[[int, float, float], None],
    ) -> None:
        self.rules = rules
        self._schedule = schedule
        self._send = send
        self._clock = clock
        self._base_policy = base_policy
        self._close_origin = close
        self._keep_timing = keep_timing
        self._gates: OrderedDict[str, _Kept] = OrderedDict()
        self.codes: Counter[str] = Counter()
        """How many decisions of each kind were made in this process."""

    def __repr__(self) -> str:
        return f"<Health of {len(self._gates)} gates, {self.held_back} held back>"

    @property
    def held_back(self) -> int:
        """Gates whose origins are asked for less than they might be."""
        return sum(
            1 for key, kept in self._gates.items() if not kept.state.is_calm(self._bounds(key))
        )

    def load(self, rows: Iterable[tuple[str, str]]) -> None:
        """Take over from an earlier process: (gate, its state). To be called before anything is dispatched."""
        if self.rules is None:
            return
        now = self._clock.now()
        for gate_key, text in rows:
            try:
                state = resumed(load(HealthState, json.loads(text)), now)
            except (SampleUnreadable, ValueError) as error:
                logger.error(
                    "The stored health of %s is not used: %s",
                    gate_key,
                    error,
                    extra={"action": "health_unreadable"},
                )
                continue
            self._gates[gate_key] = _Kept(state)

    def state(self, gate_key: str) -> HealthState | None:
        """How the origin behind a gate stands, None where nothing is known of it."""
        kept = self._gates.get(gate_key)
        return None if kept is None else kept.state

    def policy(self, gate_key: str) -> OriginPolicy:
        """What a gate keeps now."""
        policy = self._base_policy(gate_key)
        kept = self._gates.get(gate_key)
        if kept is not None:
            return adapted(policy, kept.state)
        if self.rules is not None and self.rules.start_s > policy.interval_s:
            return adapted(policy, initial(bounds_of(policy, self.rules), self.rules.start_s))
        return policy

    def refresh(self, gate_key: str) -> None:
        """What a gate keeps at ease has changed."""
        self._schedule.set_policy(gate_key, self.policy(gate_key), self._clock.now())

    def note(self, attempt: Attempt, kind: Kind | None, *, was_cached: bool = False) -> None:
        """What came of an attempt tells something of its origin, once, if it was on the wire. `kind` None: nothing."""
        if kind is not None and attempt.is_charged and not attempt.is_observed:
            attempt.is_observed = True
            outcome = Outcome(kind, attempt.charged_at, self._clock.now())
            self.observe(attempt.gate_key, attempt.origin_id, outcome, was_cached=was_cached)

    def observe(
        self, gate_key: str, origin_id: int, outcome: Outcome, *, was_cached: bool = False
    ) -> None:
        """A request has left the wire. `was_cached`: the address that could not be reached came out of a cache, and is
        looked up again for the next request.
        """
        if self.rules is None:
            return
        kept = self._gates.get(gate_key)
        if kept is None:
            kept = self._meet(gate_key)
        if outcome.kind in SIGNS_OF_LIFE:
            kept.excused_at = None
        elif outcome.kind is Kind.UNREACHED and self._is_excused(kept, outcome, was_cached):
            return
        summary = kept.window.add(outcome, kept.state)
        if summary is not None:
            bounds = self._bounds(gate_key)
            self._follow(gate_key, origin_id, kept, decide(kept.state, summary, bounds), bounds)

    def _is_excused(self, kept: _Kept, outcome: Outcome, was_cached: bool) -> bool:
        """Whether an old address is to blame and not the origin: once, until it has answered again."""
        if kept.excused_at is None and was_cached:
            kept.excused_at = outcome.ended_at
        return kept.excused_at is not None and outcome.started_at < kept.excused_at

    def _meet(self, gate_key: str) -> _Kept:
        assert self.rules is not None
        kept = self._gates[gate_key] = _Kept(initial(self._bounds(gate_key), self.rules.start_s))
        for _ in range(min(2, len(self._gates) - KEPT)):
            oldest, its = self._gates.popitem(last=False)
            if not its.state.is_calm(self._bounds(oldest)):
                self._gates[oldest] = its
        return kept

    def _bounds(self, gate_key: str) -> Bounds:
        assert self.rules is not None
        bounds = bounds_of(self._base_policy(gate_key), self.rules)
        return bounds if _is_own(gate_key) else _never_closed(bounds)

    def _follow(
        self, gate_key: str, origin_id: int, kept: _Kept, sample: Sample, bounds: Bounds
    ) -> None:
        before, after = kept.state, sample.after
        kept.state = after
        self.codes[sample.code] += 1
        now = self._clock.now()
        if _is_news(sample) or now - kept.sampled_at >= SAMPLE_EVERY_S:
            kept.sampled_at = now
            self._keep(gate_key, sample, bounds)
        if (before.concurrency, before.interval_s) != (after.concurrency, after.interval_s):
            self._schedule.set_policy(gate_key, self.policy(gate_key), now)
        if sample.code == BACK_OFF and after.interval_s:
            until = now + after.interval_s
            self._schedule.hold(gate_key, until, GateState.BACKOFF, now)
            self._keep_timing(origin_id, until, now)
        elif sample.code == CLOSE:
            self._close(gate_key, origin_id, after, now)

    def _close(self, gate_key: str, origin_id: int, state: HealthState, now: float) -> None:
        logger.warning(
            "%s is closed for this run: nothing but failures for %d s, the last one %s; its URLs stay unresolved, and a"
            " resumed run tries again",
            gate_key,
            round(now - (state.failing_since or now)),
            state.cause,
            extra={"action": "origin_closed"},
        )
        self._schedule.close(gate_key, GateState.CLOSED, now)
        self._close_origin(origin_id, FAILING)

    def _keep(self, gate_key: str, sample: Sample, bounds: Bounds) -> None:
        after = sample.after
        self._send(
            HealthSampled(
                gate_key,
                milliseconds(sample.window.ended_at),
                sample.code,
                after.concurrency,
                milliseconds(after.interval_s),
                json.dumps(sample.inputs()),
                json.dumps(dump(after)),
                after.is_calm(bounds),
            )
        )


def _is_own(gate_key: str) -> bool:
    """Whether a gate belongs to one origin. One that a `download_slot` names may be shared."""
    return "://" in gate_key


def _never_closed(bounds: Bounds) -> Bounds:
    return Bounds(bounds.limit, bounds.floor_s, bounds.ceiling_s, bounds.target, None)


def _is_news(sample: Sample) -> bool:
    before, after = sample.before, sample.after
    return sample.code != HOLD or (before.failing_since, before.rounds) != (
        after.failing_since,
        after.rounds,
    )
