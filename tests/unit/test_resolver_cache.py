"""Answers age: how long each is kept, and which make room."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from twisted.internet.address import IPv4Address

from scrapy_frontier.resolver.answers import Answer
from scrapy_frontier.resolver.cache import UNSURE_S, AddressCache, Entry, Lifetimes

LIFETIMES = Lifetimes(floor_s=10, ceiling_s=100, negative_s=30)


def answer(*hosts: str, ttl_s: float | None = None) -> Answer:
    """A good answer."""
    return Answer(tuple(IPv4Address("TCP", host, 0) for host in hosts), ttl_s)


NO_SUCH_NAME = Answer(failure="no such name", is_lasting=True)
UNSURE = Answer(failure="no answer")


@pytest.mark.parametrize(
    ("ttl_s", "lifetime_s"), [(0, 10), (9, 10), (10, 10), (42, 42), (100, 100), (86400, 100)]
)
def test_ttl_decides_between_floor_and_ceiling(ttl_s: float, lifetime_s: float) -> None:
    """The answer's own TTL counts, kept within the two bounds."""
    assert LIFETIMES.lifetime_s(answer("192.0.2.1", ttl_s=ttl_s), None) == lifetime_s


def test_what_stays_put_is_asked_for_ever_more_seldom() -> None:
    """Without a TTL an unchanged answer lives twice as long each time, up to the ceiling; its order is no change."""
    cache = AddressCache(10, LIFETIMES)
    lived = []
    now = 0.0
    for turn in range(6):
        order = ("192.0.2.1", "192.0.2.2")[:: 1 if turn % 2 else -1]
        entry = cache.put("www.test", answer(*order), now)
        lived.append(entry.lifetime_s)
        now = entry.expires_at
    assert lived == [10, 20, 40, 80, 100, 100]


def test_what_moves_is_asked_for_often() -> None:
    """Another answer starts again at the floor, and so does one that was forgotten."""
    cache = AddressCache(10, LIFETIMES)
    cache.put("www.test", answer("192.0.2.1"), 0)
    cache.put("www.test", answer("192.0.2.1"), 10)
    assert cache.put("www.test", answer("192.0.2.9"), 30).lifetime_s == 10
    assert cache.put("www.test", answer("192.0.2.9"), 40).lifetime_s == 20
    assert cache.forget("www.test")
    assert cache.put("www.test", answer("192.0.2.9"), 50).lifetime_s == 10


@pytest.mark.parametrize(
    ("bad", "lifetime_s"),
    [(NO_SUCH_NAME, 30), (UNSURE, UNSURE_S), (Answer(is_lasting=True, ttl_s=900), 30)],
)
def test_failures_are_remembered_for_a_short_time(bad: Answer, lifetime_s: float) -> None:
    """That there is no such name is remembered as the setting says; a failure to find out, for less."""
    cache = AddressCache(10, LIFETIMES)
    cache.put("gone.test", bad, 0)
    kept = cache.get("gone.test", lifetime_s - 0.1)
    assert kept == Entry((), lifetime_s, lifetime_s, is_lasting=bad.is_lasting)
    assert cache.get("gone.test", lifetime_s) is None


def test_short_negative_setting_holds_for_all_failures() -> None:
    """No failure is remembered for longer than the setting says."""
    assert Lifetimes(10, 100, 2).lifetime_s(UNSURE, None) == 2


def test_least_recently_used_makes_room() -> None:
    """The cache is bounded, and what is in use stays."""
    cache = AddressCache(2, LIFETIMES)
    cache.put("a.test", answer("192.0.2.1"), 0)
    cache.put("b.test", answer("192.0.2.2"), 0)
    assert cache.get("a.test", 1)
    cache.put("c.test", answer("192.0.2.3"), 1)
    assert cache.get("b.test", 1) is None
    assert cache.get("a.test", 1)
    assert cache.get("c.test", 1)


def test_limit_of_zero_keeps_nothing() -> None:
    """A cache that is switched off holds no name."""
    cache = AddressCache(0, LIFETIMES)
    cache.put("a.test", answer("192.0.2.1"), 0)
    assert cache.get("a.test", 0) is None
    assert len(cache) == 0


def test_remembered_failure_is_not_forgotten() -> None:
    """A failed connection says nothing of a name that has no address."""
    cache = AddressCache(2, LIFETIMES)
    cache.put("gone.test", NO_SUCH_NAME, 0)
    assert not cache.forget("gone.test")
    assert not cache.forget("never-asked.test")
    assert cache.get("gone.test", 29) is not None


NAMES = st.sampled_from(["a", "b", "c", "d"])
TTLS = st.one_of(st.none(), st.floats(0, 500))
ANSWERS = st.one_of(
    st.builds(lambda ttl_s, host: answer(host, ttl_s=ttl_s), TTLS, st.sampled_from("12")),
    st.sampled_from([NO_SUCH_NAME, UNSURE]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, ANSWERS),
        st.tuples(st.just("get"), NAMES),
        st.tuples(st.just("forget"), NAMES),
        st.tuples(st.just("wait"), st.floats(0, 60)),
    )
)


@settings(max_examples=200)
@given(STEPS)
def test_nothing_is_older_than_its_bound(steps: list[tuple[object, ...]]) -> None:
    """Whatever happens: what is got is the last answer, younger than the ceiling (a failure: than its own bound), at
    least as good as the floor, and the cache is never larger than its limit."""
    cache = AddressCache(3, LIFETIMES)
    last: dict[str, tuple[Answer, float]] = {}
    now = 0.0
    for kind, *rest in steps:
        if kind == "wait":
            now += float(str(rest[0]))
            continue
        name = str(rest[0])
        if kind == "put":
            given_answer = rest[1]
            assert isinstance(given_answer, Answer)
            cache.put(name, given_answer, now)
            last[name] = (given_answer, now)
        elif kind == "forget":
            if cache.forget(name):
                del last[name]
        else:
            entry = cache.get(name, now)
            if entry is not None:
                told, at = last[name]
                assert entry.addresses == told.addresses
                assert now - at < (100 if told.addresses else 30)
            elif name in last and len(last) <= 3 and last[name][0].addresses:
                assert now - last[name][1] >= 10
        assert len(cache) <= 3
