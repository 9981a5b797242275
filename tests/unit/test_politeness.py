"""Scrapy's settings for concurrency and delay, read with Scrapy's meaning, as policies of origins."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.core.downloader import Slot

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.politeness import (
    OriginPolicy,
    PolitenessRules,
    Ranked,
    draw_interval,
)


def rules(**values: Any) -> PolitenessRules:
    return PolitenessRules.from_values(**{"download_delay_jitter": Ranked(0.5), **values})


def test_scrapys_defaults() -> None:
    """Without any setting: 8 in flight, no interval, as Scrapy's own slots."""
    policy = PolitenessRules.from_values().for_origin("http://a.example", "a.example")
    assert policy == OriginPolicy(8, 0.0, (0.5, 1.5))


def test_limit_and_delay_are_per_origin() -> None:
    """CONCURRENT_REQUESTS_PER_DOMAIN and DOWNLOAD_DELAY hold for every origin alike."""
    policy = rules(concurrent_requests_per_domain="3", download_delay="2.5").for_origin(
        "https://a.example:8443", "a.example"
    )
    assert (policy.limit, policy.interval_s) == (3, 2.5)


@pytest.mark.parametrize(
    ("key", "host"),
    [
        ("http://a.example", "a.example"),
        ("https://a.example:8443", "a.example"),
        ("a.example", ""),
    ],
)
def test_a_slot_for_a_host_holds_for_each_of_its_origins(key: str, host: str) -> None:
    """DOWNLOAD_SLOTS names hosts, as in Scrapy."""
    found = rules(download_slots={"a.example": {"concurrency": 1, "delay": 5}})
    assert found.for_origin(key, host) == OriginPolicy(1, 5.0, (0.5, 1.5))
    assert found.for_origin("http://b.example", "b.example") == found.default


def test_a_slot_for_an_origin_goes_before_the_one_for_its_host() -> None:
    """The narrower entry of DOWNLOAD_SLOTS wins."""
    found = rules(
        download_slots={"a.example": {"delay": 5}, "https://a.example:8443": {"delay": 1}}
    )
    assert found.for_origin("https://a.example:8443", "a.example").interval_s == 1
    assert found.for_origin("https://a.example", "a.example").interval_s == 5


def test_a_download_slot_of_the_users_does_not_fall_back_to_the_host() -> None:
    """A name that DOWNLOAD_SLOTS does not know has the defaults, as in Scrapy."""
    found = rules(download_slots={"a.example": {"delay": 5}, "slow": {"delay": 9}})
    assert found.for_origin("slow").interval_s == 9
    assert found.for_origin("other") == found.default


def test_an_entry_takes_from_the_defaults_what_it_does_not_say() -> None:
    """Each key of an entry of DOWNLOAD_SLOTS stands for itself."""
    found = rules(
        concurrent_requests_per_domain=4,
        download_delay=2,
        download_slots={
            "c": {"concurrency": 1},
            "d": {"delay": 0},
            "j": {"jitter": 0},
            "r": {"randomize_delay": True},
            "s": {"randomize_delay": False},
            "both": {"jitter": 0.1, "randomize_delay": True},
        },
        download_delay_jitter=Ranked(0.25),
    )
    assert found.for_origin("c") == OriginPolicy(1, 2.0, (0.75, 1.25))
    assert found.for_origin("d") == OriginPolicy(4, 0.0, (0.75, 1.25))
    assert found.for_origin("j") == OriginPolicy(4, 2.0, (1.0, 1.0))
    assert found.for_origin("r") == OriginPolicy(4, 2.0, (0.5, 1.5))
    assert found.for_origin("s") == OriginPolicy(4, 2.0, (1.0, 1.0))
    assert found.for_origin("both") == OriginPolicy(4, 2.0, (0.9, 1.1))


@pytest.mark.parametrize(
    ("jitter", "randomize", "expected"),
    [
        (Ranked(0.5, 0), Ranked(True, 0), 0.5),
        (Ranked(0.2, 20), Ranked(True, 0), 0.2),
        (Ranked(0.2, 20), Ranked(False, 20), 0.2),
        (Ranked(0.2, 20), Ranked(False, 30), 0.0),
        (Ranked(0.5, 0), Ranked(False, 20), 0.0),
        (Ranked(0.2, 20), Ranked("True", 40), 0.5),
        (Ranked(0, 20), Ranked(True, 0), 0.0),
        (None, Ranked(True, 0), 0.5),
        (None, Ranked(False, 20), 0.0),
        (None, Ranked("0", 20), 0.0),
    ],
)
def test_the_old_switch_counts_where_it_was_set_at_a_higher_priority(
    jitter: Ranked | None, randomize: Ranked, expected: float
) -> None:
    """RANDOMIZE_DOWNLOAD_DELAY against DOWNLOAD_DELAY_JITTER, as Scrapy 2.19 decides it; before, the
    switch alone."""
    found = PolitenessRules.from_values(
        download_delay_jitter=jitter, randomize_download_delay=randomize
    )
    assert found.default.jitter == (1 - expected, 1 + expected)


def test_spider_attributes_go_before_settings_and_after_slots() -> None:
    """`download_delay` and `max_concurrent_requests` of a spider are deprecated but honoured."""
    found = rules(
        concurrent_requests_per_domain=8,
        download_delay=1,
        download_slots={"a.example": {"concurrency": 5, "delay": 0.5}},
        spider_download_delay=3,
        spider_max_concurrent_requests=2,
    )
    assert found.default == OriginPolicy(2, 3.0, (0.5, 1.5))
    assert found.for_origin("http://a.example", "a.example") == OriginPolicy(5, 0.5, (0.5, 1.5))


def test_the_limit_per_ip_replaces_the_limit_per_domain() -> None:
    """CONCURRENT_REQUESTS_PER_IP is deprecated; 0 means that it is not used."""
    assert rules(concurrent_requests_per_ip=2).default.limit == 2
    assert rules(concurrent_requests_per_ip=0).default.limit == 8


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"concurrent_requests_per_domain": 0}, "CONCURRENT_REQUESTS_PER_DOMAIN = 0"),
        ({"concurrent_requests_per_domain": "many"}, "CONCURRENT_REQUESTS_PER_DOMAIN = 'many'"),
        ({"concurrent_requests_per_domain": 1.5}, "CONCURRENT_REQUESTS_PER_DOMAIN = 1.5"),
        ({"concurrent_requests_per_ip": -1}, "CONCURRENT_REQUESTS_PER_IP = -1"),
        ({"download_delay": -1}, "DOWNLOAD_DELAY = -1"),
        ({"download_delay": None}, "DOWNLOAD_DELAY = None"),
        ({"download_delay": "nan"}, "DOWNLOAD_DELAY = 'nan'"),
        ({"download_delay_jitter": Ranked(-0.5)}, "DOWNLOAD_DELAY_JITTER = -0.5"),
        ({"randomize_download_delay": Ranked("perhaps")}, "RANDOMIZE_DOWNLOAD_DELAY = 'perhaps'"),
        ({"spider_download_delay": "soon"}, "spider.download_delay = 'soon'"),
        ({"spider_max_concurrent_requests": 0}, "spider.max_concurrent_requests = 0"),
        ({"download_slots": {"a": 3}}, "DOWNLOAD_SLOTS['a'] = 3"),
        ({"download_slots": {"a": {"concurrency": 0}}}, "DOWNLOAD_SLOTS['a']['concurrency'] = 0"),
        ({"download_slots": {"a": {"delay": "x"}}}, "DOWNLOAD_SLOTS['a']['delay'] = 'x'"),
        ({"download_slots": {"a": {"jitter": -1}}}, "DOWNLOAD_SLOTS['a']['jitter'] = -1"),
        (
            {"download_slots": {"a": {"randomize_delay": 7}}},
            "DOWNLOAD_SLOTS['a']['randomize_delay'] = 7",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    """The message names the setting and shows the value."""
    with pytest.raises(ConfigError) as caught:
        rules(**values)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [(0,), (1, -1.0), (1, float("nan")), (1, 1.0, (1.5, 0.5)), (1, 1.0, (-1.0, 0.0))],
)
def test_an_impossible_policy_is_refused(arguments: tuple[Any, ...]) -> None:
    """A policy that would let nothing through, or cannot be drawn from, cannot be made."""
    with pytest.raises(ValueError, match=r"limit|interval_s|jitter"):
        OriginPolicy(*arguments)


@given(
    delay=st.floats(0, 1000),
    jitter=st.floats(0, 3),
    seed=st.integers(0, 2**32),
)
def test_intervals_are_drawn_as_scrapy_draws_them(delay: float, jitter: float, seed: int) -> None:
    """Same delay, same jitter, same random numbers: the interval is the delay of Scrapy's slot."""
    policy = rules(download_delay=delay, download_delay_jitter=Ranked(jitter)).default
    drawn = draw_interval(policy, random.Random(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slot = Slot(8, delay, jitter)
    random.seed(seed)
    assert drawn == pytest.approx(slot.download_delay(), abs=1e-9)
    assert 0 <= drawn <= policy.longest_interval_s


def test_no_jitter_means_no_draw() -> None:
    """A steady interval uses no randomness."""
    policy = OriginPolicy(1, 2.0)
    source = random.Random(1)
    state = source.getstate()
    assert draw_interval(policy, source) == 2.0
    assert draw_interval(OriginPolicy(1, 0.0, (0.5, 1.5)), source) == 0.0
    assert source.getstate() == state
