"""The controller: from one window of outcomes to what an origin may be asked for next.

It raises by steps and lowers by factors, as TCP does (RFC 5681, section 3.1), in two figures at
once: how many requests may be in flight, and the interval between them. What the origin took well
before its last trouble is remembered as a threshold: up to it the rate doubles, beyond it grows by a
fixed share of it for each window.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.health.outcomes import Kind
from scrapy_frontier.policy.health.records import HealthState, Sample

if TYPE_CHECKING:
    from scrapy_frontier.policy.health.records import Bounds, Summary

BACK_OFF: Final = "health.back_off"
EASE: Final = "health.ease"
GROW: Final = "health.grow"
HOLD: Final = "health.hold"
CLOSE: Final = "health.close"

CODES: Final = {
    BACK_OFF: "trouble: half as many in flight; where that is one already, or the origin refuses or"
    " has not answered since it was last asked for less, a longer interval too",
    EASE: "answers take longer than they did: a quarter less in flight",
    GROW: "a window of answers without trouble: one more in flight, a shorter interval",
    HOLD: "nothing is changed: all that is allowed, or less asked for than is allowed",
    CLOSE: "nothing but failures for too long: not asked again in this run",
}

REFUSED_FACTOR: Final = 0.7
"""The share of its rate that a refusing origin is asked for next, where it answers others."""

FAILED_FACTOR: Final = 0.5
"""The share of its rate that a failing origin, or one that refuses all, is asked for next."""

GROWTH: Final = 0.05
"""The share of the threshold by which the rate grows with each window beyond it."""

OUTGROWN: Final = 2.0
"""A rate of so many thresholds without trouble: the threshold tells nothing any more."""

FIRST_REFUSED_S: Final = 0.1
FIRST_FAILED_S: Final = 1.0
"""The shortest interval that is begun with after a refusal, and after repeated failures alone."""

SLOWER_FACTOR: Final = 2.0
SLOWER_S: Final = 0.2
"""By what factor, and by how many seconds at least, answers are slower than at ease."""

EASED_FACTOR: Final = 0.75

BASELINE_RISE: Final = 1.02
BASELINE_WEIGHT: Final = 0.3
"""The baseline follows shorter answers by this weight, and rises by this factor a window at most."""

LEAST_ROUNDS: Final = 2
"""An origin is closed only after it failed again when it had been asked for less."""


def initial(bounds: Bounds, start_s: float = 0.0) -> HealthState:
    """The state of an origin of which nothing is known: all in flight that is allowed, `start_s`
    between requests.
    """
    return HealthState(bounds.limit, _within(start_s, bounds))


def bounded(state: HealthState, bounds: Bounds) -> HealthState:
    """The state within bounds that may have changed since it was made."""
    concurrency = min(max(1, state.concurrency), bounds.limit)
    interval_s = _within(state.interval_s, bounds)
    if (concurrency, interval_s) == (state.concurrency, state.interval_s):
        return state
    return replace(state, concurrency=concurrency, interval_s=interval_s)


def resumed(state: HealthState, now: float) -> HealthState:
    """The state with which another process goes on. An origin that was failing is asked with one
    request first, and given all its time again.
    """
    if not state.is_closed and state.failing_since is None:
        return state
    return replace(
        state,
        concurrency=1,
        changed_at=now,
        failing_since=None,
        rounds=0,
        has_answered=False,
        is_closed=False,
    )


def decide(state: HealthState, window: Summary, bounds: Bounds) -> Sample:
    """What follows from a window. Pure: the same three inputs give the same sample."""
    before = bounded(state, bounds)
    after = _with_life(before, window)
    if before.is_closed:
        code, after = HOLD, before
    elif window.trouble:
        code, after = _back_off(after, window, bounds)
    elif _is_slower(before, window):
        code, after = EASE, _ease(after, window, bounds)
    else:
        after = _grow(after, window, bounds)
        same = (after.concurrency, after.interval_s) == (before.concurrency, before.interval_s)
        code = HOLD if same else GROW
    after = bounded(_with_baseline(after, before, window), bounds)
    return Sample(code, bounds, state, window, after)


def recompute(sample: Sample) -> Sample:
    """The same decision, made again from the inputs of a sample."""
    return decide(sample.before, sample.window, sample.bounds)


def _within(interval_s: float, bounds: Bounds) -> float:
    return min(max(interval_s, bounds.floor_s), bounds.ceiling_s)


def _with_life(state: HealthState, window: Summary) -> HealthState:
    if window.answered or window.error:
        # Answers to what was asked before the last change prove nothing about that.
        state = replace(state, has_answered=True)
    if window.has_life:
        return replace(state, failing_since=window.failing_since, rounds=0)
    if state.failing_since is None and window.failing_since is not None:
        return replace(state, failing_since=window.failing_since)
    return state


def _back_off(state: HealthState, window: Summary, bounds: Bounds) -> tuple[str, HealthState]:
    is_refused = window.trouble == Kind.REFUSED.label
    has_answers = window.answered > 0
    is_silent = not state.has_answered
    after = replace(
        state,
        concurrency=max(1, state.concurrency // 2),
        changed_at=window.ended_at,
        rounds=state.rounds + 1,
        has_answered=False,
        cause=window.trouble,
    )
    if _is_lost(after, window.ended_at, bounds):
        return CLOSE, replace(after, is_closed=True)
    if is_refused or is_silent or state.concurrency == 1:
        pace_s = max(state.interval_s, window.pace_s)
        factor = REFUSED_FACTOR if is_refused and has_answers else FAILED_FACTOR
        first_s = FIRST_REFUSED_S if is_refused else FIRST_FAILED_S if is_silent else 0.0
        threshold: float | None = factor / max(pace_s, 1e-6)
        if is_silent and not is_refused:
            # How often a dead origin was asked tells nothing of what it takes when it is back.
            threshold = state.threshold
        elif is_silent and state.threshold is not None:
            threshold = state.threshold * factor
        after = replace(
            after, interval_s=_within(max(first_s, pace_s / factor), bounds), threshold=threshold
        )
    return BACK_OFF, after


def _is_lost(state: HealthState, now: float, bounds: Bounds) -> bool:
    return (
        bounds.close_after_s is not None
        and state.failing_since is not None
        and state.rounds >= LEAST_ROUNDS
        and now - state.failing_since >= bounds.close_after_s
    )


def _is_slower(state: HealthState, window: Summary) -> bool:
    """Whether answers wait in the server: slower than at ease while more than one is in flight."""
    if state.baseline_s is None or window.latency_s is None or state.concurrency == 1:
        return False
    slower_s = max(SLOWER_FACTOR * state.baseline_s, state.baseline_s + SLOWER_S)
    return window.latency_s > slower_s


def _ease(state: HealthState, window: Summary, bounds: Bounds) -> HealthState:
    interval_s = state.interval_s
    if interval_s > bounds.floor_s:
        interval_s = _within(interval_s / EASED_FACTOR, bounds)
    return replace(
        state,
        concurrency=max(1, int(state.concurrency * EASED_FACTOR)),
        interval_s=max(interval_s, _target_s(window, bounds)),
        changed_at=window.ended_at,
    )


def _grow(state: HealthState, window: Summary, bounds: Bounds) -> HealthState:
    if not window.answered or window.broken:
        return state
    target_s = _target_s(window, bounds)
    if state.interval_s > bounds.floor_s and not _is_used(state, window):
        return replace(state, interval_s=max(state.interval_s, target_s))
    interval_s, threshold = _shortened(state, window, bounds)
    return replace(
        state,
        concurrency=min(bounds.limit, state.concurrency + 1),
        interval_s=max(interval_s, target_s),
        threshold=threshold,
    )


def _is_used(state: HealthState, window: Summary) -> bool:
    """Whether the origin was asked for about as much as it is allowed: else a window proves
    nothing.
    """
    return window.pace_s <= 2 * (state.interval_s + (window.mean_s or 0.0))


def _shortened(state: HealthState, window: Summary, bounds: Bounds) -> tuple[float, float | None]:
    """The next interval and threshold after a good window."""
    threshold = state.threshold
    if state.interval_s <= bounds.floor_s:
        return bounds.floor_s, threshold
    rate = 1 / state.interval_s
    if threshold is not None and rate >= OUTGROWN * threshold:
        threshold = None
    if threshold is None:
        rate *= 2
    elif rate < threshold:
        rate = min(2 * rate, threshold)
    else:
        rate += GROWTH * threshold
    interval_s = 1 / rate
    if interval_s * bounds.limit < (window.latency_s or 0.0):
        # The number in flight keeps it longer than this interval would.
        interval_s = 0.0
    return _within(interval_s, bounds), threshold


def _target_s(window: Summary, bounds: Bounds) -> float:
    """The interval at which `target` requests are in flight on average."""
    if bounds.target is None or window.mean_s is None:
        return 0.0
    return _within(window.mean_s / bounds.target, bounds)


def _with_baseline(state: HealthState, before: HealthState, window: Summary) -> HealthState:
    taken_s, known_s = window.latency_s, before.baseline_s
    if taken_s is None:
        return state
    if known_s is None:
        baseline_s = taken_s
    elif before.concurrency == 1:
        # Alone with the server, nothing waits there: what it takes is what it takes.
        baseline_s = (known_s + taken_s) / 2
    elif taken_s < known_s:
        baseline_s = known_s + BASELINE_WEIGHT * (taken_s - known_s)
    else:
        baseline_s = min(known_s * BASELINE_RISE, taken_s)
    return replace(state, baseline_s=baseline_s)
