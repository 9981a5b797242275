"""The health of an origin is decided within its bounds, reproducibly, and less is asked for after trouble."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier.policy.health import (
    BACK_OFF,
    CLOSE,
    EASE,
    GROW,
    HOLD,
    MEANINGS,
    Bounds,
    HealthState,
    Kind,
    Outcome,
    Sample,
    SampleUnreadable,
    Summary,
    Window,
    decide,
    dump,
    initial,
    kind_of_failure,
    kind_of_status,
    load,
    recompute,
    resumed,
)

T0 = 1_700_000_000.0
GENTLE = Bounds(8, 0.0, 60.0, None, 180.0)


def origins_at(draw: st.DrawFn) -> tuple[Bounds, list[Outcome]]:
    floor_s = draw(st.sampled_from([0.0, 0.1, 2.0]))
    bounds = Bounds(
        draw(st.integers(1, 32)),
        floor_s,
        floor_s + draw(st.sampled_from([0.0, 1.0, 60.0])),
        draw(st.sampled_from([None, 0.5, 4.0])),
        draw(st.sampled_from([None, 10.0, 180.0])),
    )
    now, outcomes = T0, []
    for _ in range(draw(st.integers(1, 80))):
        now += draw(st.floats(0.0, 20.0))
        taken_s = draw(st.floats(0.0, 30.0))
        outcomes.append(Outcome(draw(st.sampled_from(Kind)), now - taken_s, now))
    return bounds, outcomes


histories = st.composite(origins_at)()


def samples_of(bounds: Bounds, outcomes: list[Outcome]) -> list[Sample]:
    state, window, samples = initial(bounds), Window(), []
    for outcome in outcomes:
        summary = window.add(outcome, state)
        if summary is not None:
            samples.append(decide(state, summary, bounds))
            state = samples[-1].after
    return samples


def steady(
    kind: Kind, count: int, *, start: int = 0, every_s: float = 0.1, taken_s: float = 0.05
) -> list[Outcome]:
    """One outcome after the other, number `start` and following."""
    times = [T0 + every_s * number for number in range(start + 1, start + count + 1)]
    return [Outcome(kind, at - taken_s, at) for at in times]


@given(histories)
def test_bounds_always_hold(history: tuple[Bounds, list[Outcome]]) -> None:
    bounds, outcomes = history
    for sample in samples_of(bounds, outcomes):
        assert 1 <= sample.after.concurrency <= bounds.limit
        assert bounds.floor_s <= sample.after.interval_s <= bounds.ceiling_s


@given(histories)
def test_trouble_never_asks_for_more(history: tuple[Bounds, list[Outcome]]) -> None:
    """After trouble or slower answers: no more in flight, no shorter interval; less of one of them where the bounds
    leave room."""
    bounds, outcomes = history
    for sample in samples_of(bounds, outcomes):
        before, after = sample.before, sample.after
        if sample.window.trouble or sample.code == EASE:
            assert after.concurrency <= before.concurrency
            assert after.interval_s >= before.interval_s
        if sample.code == BACK_OFF and before.concurrency > 1:
            assert after.concurrency < before.concurrency
        elif sample.code == BACK_OFF and before.interval_s < bounds.ceiling_s:
            assert after.interval_s > before.interval_s


@given(histories)
def test_each_sample_is_recomputed_from_its_stored_inputs(
    history: tuple[Bounds, list[Outcome]],
) -> None:
    """Same inputs, same sample: also after they went through JSON."""
    bounds, outcomes = history
    samples = samples_of(bounds, outcomes)
    assert samples == samples_of(bounds, outcomes)
    for sample in samples:
        inputs, after = json.loads(json.dumps([sample.inputs(), dump(sample.after)]))
        assert recompute(Sample.from_data(sample.code, inputs, after)) == sample


@given(histories)
def test_an_origin_is_closed_only_after_its_time_of_nothing_but_failures(
    history: tuple[Bounds, list[Outcome]],
) -> None:
    bounds, outcomes = history
    for count in range(1, len(outcomes) + 1):
        codes = [sample.code for sample in samples_of(bounds, outcomes[:count])]
        if CLOSE not in codes:
            continue
        assert bounds.close_after_s is not None
        recent = outcomes[:count]
        ended_at = recent[-1].ended_at
        alive = [n for n, o in enumerate(recent) if o.kind in (Kind.ANSWERED, Kind.ERROR)]
        failed = recent[alive[-1] + 1 if alive else 0 :]
        assert len(failed) >= 2
        assert ended_at - failed[0].started_at >= bounds.close_after_s
        break


@given(histories, st.integers(1, 32))
def test_what_left_before_a_back_off_does_not_ask_for_another(
    history: tuple[Bounds, list[Outcome]], in_flight: int
) -> None:
    """All that is in flight when a server goes down fails with it; that is one failure of the server."""
    bounds, outcomes = history
    state, window = initial(bounds), Window()
    for outcome in outcomes:
        summary = window.add(outcome, state)
        if summary is not None:
            state = decide(state, summary, bounds).after
    if state.changed_at:
        for _ in range(in_flight):
            assert (
                window.add(Outcome(Kind.TIMEOUT, state.changed_at - 1, state.changed_at + 9), state)
                is None
            )


def test_back_off_is_exponential_up_to_the_ceiling() -> None:
    """Refused at every turn, each interval is at least 1.4 times the one before, up to the ceiling."""
    bounds = Bounds(8, 0.2, 60.0)
    state, intervals, now = initial(bounds), [], T0
    for _ in range(20):
        now += max(state.interval_s, 0.01)
        summary = Window().add(Outcome(Kind.REFUSED, now, now + 0.01), state)
        assert summary is not None
        state = decide(state, summary, bounds).after
        intervals.append(state.interval_s)
    for shorter, longer in pairwise(intervals):
        assert longer >= min(1.4 * shorter, 60.0)
    assert intervals[-1] == 60.0
    assert state.concurrency == 1


def test_one_failed_page_is_not_the_server_s_failure() -> None:
    """A single 500 changes nothing; three in a row do."""
    for count, expected in ((2, 0), (3, 1)):
        outcomes = steady(Kind.ANSWERED, 4) + steady(Kind.ERROR, count, start=4)
        codes = [sample.code for sample in samples_of(GENTLE, outcomes)]
        assert codes.count(BACK_OFF) == expected


def test_one_broken_connection_is_not_the_server_s_failure() -> None:
    """Some always break: a second one among the same few answers is trouble, and one alone lets nothing grow."""
    for count, expected in ((1, 0), (2, 1)):
        outcomes = steady(Kind.ANSWERED, 4) + steady(Kind.BROKEN, count, start=4)
        codes = [sample.code for sample in samples_of(GENTLE, outcomes)]
        assert codes.count(BACK_OFF) == expected
    held = HealthState(2, 0.0)
    window = Summary(0.0, 1.0, answered=8, broken=1, latency_s=0.1, mean_s=0.1, has_life=True)
    assert decide(held, window, GENTLE).after.concurrency == 2


def test_pages_that_fail_show_a_server_that_lives() -> None:
    """An origin that answers 500 for ever is asked less, and never closed."""
    samples = samples_of(GENTLE, steady(Kind.ERROR, 200, every_s=10.0))
    assert {sample.code for sample in samples} == {BACK_OFF}


def test_growth_is_slow_and_reaches_the_limit_again() -> None:
    """After one time-out in flight is halved, and grows by one a window."""
    answers = steady(Kind.ANSWERED, 300, start=5)
    outcomes = [*steady(Kind.ANSWERED, 4), *steady(Kind.TIMEOUT, 1, start=4), *answers]
    samples = samples_of(GENTLE, outcomes)
    first, *rest = [s.after.concurrency for s in samples]
    assert first == 4
    for fewer, more in pairwise([first, *rest]):
        assert more - fewer in (0, 1)
    assert rest[-1] == 8
    assert samples[-1].code == HOLD


def test_rate_grows_by_steps_beyond_what_was_well() -> None:
    """Up to the threshold the rate doubles, beyond it grows by a twentieth of it a window."""
    state = HealthState(8, 1.0, threshold=4.0)
    rates = [1.0]
    for _ in range(8):
        window = Summary(T0, T0 + 8 * state.interval_s, answered=8, latency_s=0.01, mean_s=0.01)
        sample = decide(state, window, GENTLE)
        assert sample.code == GROW
        state = sample.after
        rates.append(1 / state.interval_s)
    assert rates == pytest.approx([1, 2, 4, 4.2, 4.4, 4.6, 4.8, 5.0, 5.2])


def test_an_allowance_that_is_not_used_does_not_grow() -> None:
    state = HealthState(1, 1.0, threshold=4.0)
    window = Summary(T0, T0 + 80, answered=8, latency_s=0.01, mean_s=0.01)
    sample = decide(state, window, GENTLE)
    assert sample.code == HOLD
    assert sample.after.interval_s == 1.0


def test_slower_answers_ease_it_before_the_server_complains() -> None:
    quick = Summary(T0, T0 + 1, answered=16, latency_s=0.05, mean_s=0.05)
    slow = Summary(T0 + 1, T0 + 4, answered=16, latency_s=0.5, mean_s=0.5)
    calm = decide(initial(GENTLE), quick, GENTLE).after
    sample = decide(calm, slow, GENTLE)
    assert sample.code == EASE
    assert sample.after.concurrency == 6


def test_jitter_of_fast_answers_changes_nothing() -> None:
    """Ten times a millisecond is still quick."""
    quick = Summary(T0, T0 + 1, answered=16, latency_s=0.001, mean_s=0.001)
    slow = Summary(T0 + 1, T0 + 4, answered=16, latency_s=0.01, mean_s=0.01)
    sample = decide(decide(initial(GENTLE), quick, GENTLE).after, slow, GENTLE)
    assert sample.code == HOLD
    assert sample.after.is_calm(GENTLE)


def test_target_keeps_fewer_in_flight() -> None:
    """An interval of latency / target keeps `target` requests in flight on average, as AutoThrottle does."""
    bounds = Bounds(8, 0.0, 60.0, target=2.0)
    state = initial(bounds, 5.0)
    for number in range(20):
        start = T0 + 100 * number
        window = Summary(start, start + 8 * state.interval_s, answered=8, latency_s=1.0, mean_s=1.0)
        state = decide(state, window, bounds).after
    assert state.interval_s == pytest.approx(0.5)


def test_a_dead_origin_is_closed_and_a_resumed_run_asks_it_again() -> None:
    state, window, now = initial(GENTLE), Window(), T0
    codes: list[str] = []
    while not state.is_closed:
        summary = window.add(Outcome(Kind.UNREACHED, now, now + 0.01), state)
        if summary is not None:
            sample = decide(state, summary, GENTLE)
            state = sample.after
            codes.append(sample.code)
        now += max(state.interval_s, 0.02)
    assert codes[-1] == CLOSE
    assert 180 <= now - T0 <= 400
    assert len(codes) <= 12, "a dead origin costs few attempts"
    again = resumed(state, now)
    assert (again.is_closed, again.concurrency, again.failing_since) == (False, 1, None)
    assert again.interval_s == state.interval_s


def test_a_calm_state_is_resumed_as_it_was() -> None:
    state = HealthState(3, 0.5, threshold=2.0)
    assert resumed(state, T0) is state


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, Kind.ANSWERED),
        (304, Kind.ANSWERED),
        (403, Kind.ANSWERED),
        (404, Kind.ANSWERED),
        (408, Kind.ERROR),
        (429, Kind.REFUSED),
        (500, Kind.ERROR),
        (502, Kind.DOWN),
        (503, Kind.REFUSED),
        (504, Kind.DOWN),
        (522, Kind.DOWN),
    ],
)
def test_status(status: int, kind: Kind) -> None:
    assert kind_of_status(status) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("timeout", Kind.TIMEOUT),
        ("connect_timeout", Kind.UNREACHED),
        ("dns", Kind.UNREACHED),
        ("dns.timeout", Kind.UNREACHED),
        ("refused", Kind.UNREACHED),
        ("reset", Kind.BROKEN),
        ("SomethingNew", Kind.BROKEN),
        ("cancelled", None),
        ("unsupported", None),
    ],
)
def test_failure(name: str, kind: Kind | None) -> None:
    assert kind_of_failure(name) is kind


def test_every_kind_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Kind)


def test_bounds_name_what_they_must_be() -> None:
    for wrong in ({"limit": 0}, {"floor_s": 61.0}, {"target": 0.0}, {"ceiling_s": float("inf")}):
        with pytest.raises(ValueError, match=next(iter(wrong)).partition("_")[0]):
            replace(GENTLE, **wrong)


def test_a_sample_of_another_version_is_refused_by_name() -> None:
    with pytest.raises(SampleUnreadable, match="no HealthState of this version"):
        load(HealthState, {"speed": 3})
