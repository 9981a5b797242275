"""What the fetch of a robots.txt means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.policy.robots import (
    REDIRECT_LOOP,
    REDIRECT_REFUSED,
    REDIRECT_UNUSABLE,
    TOO_MANY_REDIRECTS,
    Hop,
    Meaning,
    RobotsFetch,
    classify,
    hop_refusal,
)
from scrapy_frontier.policy.robots.lines import read_text

TEXT = b"User-agent: *\nDisallow: /p\n"
ROBOTS = "http://a.example/robots.txt"
HOPS = tuple(Hop(301, f"http://{number}.example/robots.txt") for number in range(5))


@pytest.mark.parametrize(
    ("fetch", "meaning", "reason"),
    [
        (RobotsFetch(200, TEXT), Meaning.RULES, "fetched"),
        (RobotsFetch(200, b"Sitemap: /s.xml"), Meaning.ALLOW_ALL, "no_groups"),
        (RobotsFetch(203, TEXT), Meaning.RULES, "fetched"),
        (RobotsFetch(404, TEXT), Meaning.ALLOW_ALL, "http.404"),
        (RobotsFetch(404, failure="truncated"), Meaning.ALLOW_ALL, "http.404"),
        (RobotsFetch(429, TEXT), Meaning.DISALLOW_ALL, "http.429"),
        (RobotsFetch(503, TEXT), Meaning.DISALLOW_ALL, "http.503"),
        (RobotsFetch(999), Meaning.DISALLOW_ALL, "http.999"),
        (RobotsFetch(304), Meaning.DISALLOW_ALL, "http.304"),
        (RobotsFetch(300), Meaning.DISALLOW_ALL, "http.300"),
        (RobotsFetch(301), Meaning.DISALLOW_ALL, "http.301"),
        (RobotsFetch(301, hops=HOPS), Meaning.ALLOW_ALL, "redirect.too_many"),
        (RobotsFetch(301, stop=TOO_MANY_REDIRECTS), Meaning.ALLOW_ALL, "redirect.too_many"),
        (RobotsFetch(301, stop=REDIRECT_LOOP), Meaning.ALLOW_ALL, "redirect.loop"),
        (RobotsFetch(301, stop=REDIRECT_UNUSABLE), Meaning.ALLOW_ALL, "redirect.unusable"),
        (RobotsFetch(301, stop=REDIRECT_REFUSED), Meaning.DISALLOW_ALL, "redirect.refused"),
        (RobotsFetch(failure="dns"), Meaning.DISALLOW_ALL, "download.dns"),
        (RobotsFetch(), Meaning.DISALLOW_ALL, "download.failed"),
        (RobotsFetch(200, TEXT, failure="truncated"), Meaning.DISALLOW_ALL, "download.truncated"),
        (RobotsFetch(200, TEXT, HOPS), Meaning.RULES, "fetched"),
        (RobotsFetch(404, TEXT, HOPS), Meaning.ALLOW_ALL, "http.404"),
        (RobotsFetch(500, TEXT, HOPS), Meaning.DISALLOW_ALL, "http.500"),
    ],
    ids=repr,
)
def test_meanings(fetch, meaning, reason):
    """RFC 9309, section 2.3.1, and where it is silent what is safe for the origin."""
    outcome = classify(fetch)
    assert (outcome.meaning, outcome.reason) == (meaning, reason)
    assert outcome.is_unreachable == (meaning is Meaning.DISALLOW_ALL)


def test_304_confirms_a_copy_only_where_there_is_one():
    """To a request without conditions it is no answer."""
    assert classify(RobotsFetch(304), has_copy=True).meaning is Meaning.UNCHANGED


@settings(deadline=None)
@given(st.none() | st.integers(100, 999), st.sampled_from(["", "reset"]), st.binary(max_size=50))
def test_only_a_whole_body_of_a_2xx_is_read(status, failure, body):
    """No other body has any say, and what was no success allows nothing but by a 4xx."""
    outcome = classify(RobotsFetch(status, body, failure=failure))
    is_success = status is not None and 200 <= status < 300 and not failure
    if is_success:
        assert outcome.text == read_text(body).text
    else:
        assert not outcome.text
        is_unavailable = status is not None and 400 <= status < 500 and status != 429
        assert outcome.meaning is (Meaning.ALLOW_ALL if is_unavailable else Meaning.DISALLOW_ALL)


def test_five_redirects_are_followed():
    """To anywhere, but in no circle and not a sixth time."""
    for count in range(5):
        assert hop_refusal(ROBOTS, HOPS[:count], "http://b.example/robots.txt") is None
    assert hop_refusal(ROBOTS, HOPS, "http://b.example/robots.txt") == TOO_MANY_REDIRECTS
    assert hop_refusal(ROBOTS, HOPS[:1], ROBOTS) == REDIRECT_LOOP
    assert hop_refusal(ROBOTS, HOPS[:2], HOPS[0].target) == REDIRECT_LOOP
