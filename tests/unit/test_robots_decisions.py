"""Decisions on URLs: the answer of robots.txt and the operator's, side by side."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from scrapy_frontier.errors import IdentityError
from scrapy_frontier.policy.robots import (
    NO_POLICY,
    IntervalFloor,
    Judge,
    OperatorPolicy,
    RobotsFetch,
    RobotsPolicy,
    RobotsRecord,
    Rules,
    Ruling,
    TextMissing,
    Verdict,
    after_fetch,
    classify,
    decide,
    dump,
    interval_floor,
    load,
    robots_url,
    target_of,
)

ORIGIN = "http://a.example"
NOW = 1_800_000_000.0
DAY = 86_400.0
TEXT = b"User-agent: spindle\nCrawl-delay: 30\nDisallow: /p\nAllow: /p/ok\n"
STRICTER = Rules.parse(b"User-agent: *\nDisallow: /s\nAllow: /s/ok\n").for_agent("spindle")


def after(*fetches, now=NOW):
    record = RobotsRecord(ORIGIN)
    for fetch in fetches:
        outcome = classify(fetch, has_copy=record.has_copy)
        policy = RobotsPolicy(max_tries=2)
        record = after_fetch(record, outcome, now, policy, random.Random(1))
    return record


GOOD = after(RobotsFetch(200, TEXT))
RECORDS = {
    "none": None,
    "pending": RobotsRecord(ORIGIN),
    "good": GOOD,
    "gone": after(RobotsFetch(404)),
    "unreachable": after(RobotsFetch(503)),
    "closed": after(RobotsFetch(503), RobotsFetch(503)),
    "standing in": after(RobotsFetch(200, TEXT), RobotsFetch(503)),
    "expired": after(RobotsFetch(200, TEXT), now=NOW - 2 * DAY),
}


def ask(record, path, operator=NO_POLICY, token="Spindle"):
    return decide(record, token, f"{ORIGIN}{path}", operator, NOW)


@pytest.mark.parametrize(
    ("name", "ruling", "rule"),
    [
        ("none", Ruling.WAITING, "robots.pending"),
        ("pending", Ruling.WAITING, "robots.pending"),
        ("good", Ruling.FORBIDDEN, "robots.disallow"),
        ("gone", Ruling.ALLOWED, "robots.allow"),
        ("unreachable", Ruling.WAITING, "robots.unreachable"),
        ("closed", Ruling.WAITING, "robots.closed"),
        ("standing in", Ruling.FORBIDDEN, "robots.disallow"),
        ("expired", Ruling.WAITING, "robots.pending"),
    ],
)
def test_the_protocol(name, ruling, rule):
    """What is known of the robots.txt decides; where nothing is known, a URL waits and is not
    excluded."""
    decision = ask(RECORDS[name], "/p/x")
    assert (decision.ruling, decision.rule) == (ruling, rule)
    assert decision.record is RECORDS[name]


def test_a_decision_shows_the_line_and_whose_group_it_is_in():
    """So that `explain` can quote it."""
    protocol = ask(GOOD, "/p/x").protocol
    assert protocol.verdict == Verdict(False, 3, "Disallow: /p")
    assert protocol.group == "spindle"
    assert ask(GOOD, "/p/ok").protocol.verdict == Verdict(True, 4, "Allow: /p/ok")
    assert ask(GOOD, "/p/x", token="loom").protocol.verdict == Verdict(True)


@pytest.mark.parametrize("name", RECORDS)
def test_robots_txt_itself_is_always_allowed(name):
    """RFC 9309, 2.2.2: without it nothing could begin."""
    assert ask(RECORDS[name], "/robots.txt").ruling is Ruling.ALLOWED


@pytest.mark.parametrize("name", RECORDS)
def test_a_waiver_lets_through_and_hides_nothing(name):
    """The protocol's answer is the same with it and without it."""
    plain = ask(RECORDS[name], "/p/x")
    waived = ask(RECORDS[name], "/p/x", OperatorPolicy(waiver="dont_obey_robotstxt"))
    assert waived.ruling is Ruling.ALLOWED
    assert waived.protocol == plain.protocol
    assert waived.operator.waiver == "dont_obey_robotstxt"
    is_needed = plain.ruling is not Ruling.ALLOWED
    assert waived.rule == ("robots.waived" if is_needed else "robots.allow")


@pytest.mark.parametrize("name", RECORDS)
def test_a_stricter_rule_holds_back_and_hides_nothing(name):
    """Also against a waiver; its allow is an exception to itself, never to robots.txt."""
    for waiver in ("", "dont_obey_robotstxt"):
        operator = OperatorPolicy(waiver, STRICTER)
        decision = ask(RECORDS[name], "/s/x", operator)
        assert (decision.ruling, decision.rule) == (Ruling.FORBIDDEN, "robots.operator")
        assert decision.operator.verdict == Verdict(False, 2, "Disallow: /s")
        assert decision.protocol == ask(RECORDS[name], "/s/x").protocol
    for path in ("/s/ok", "/p/x"):
        operator = OperatorPolicy(rules=STRICTER)
        assert ask(RECORDS[name], path, operator) == ask(RECORDS[name], path)


def test_the_data_of_a_decision_name_what_it_rests_on():
    """Line, copy and operator: enough to see later why."""
    record = RECORDS["standing in"]
    operator = OperatorPolicy("ROBOTSTXT_OBEY", STRICTER)
    assert ask(record, "/p/x", operator).as_data() == {
        "protocol": {
            "rule": "robots.disallow",
            "line": 3,
            "text": "Disallow: /p",
            "group": "spindle",
            "state": "rules",
            "reason": "fetched",
            "fetched_at": NOW,
            "parser_version": 1,
            "digest": record.digest,
            "trouble": "http.503",
            "unreachable_since": NOW,
        },
        "operator": {"waiver": "ROBOTSTXT_OBEY"},
    }
    assert ask(None, "/s/x", OperatorPolicy(rules=STRICTER)).as_data() == {
        "protocol": {"rule": "robots.pending"},
        "operator": {"line": 2, "text": "Disallow: /s"},
    }


def test_a_judge_decides_as_one_by_one():
    """Parsing once changes no answer."""
    operators = (NO_POLICY, OperatorPolicy("x"), OperatorPolicy(rules=STRICTER))
    for record, path, operator in product(RECORDS.values(), ("/", "/p", "/s?q"), operators):
        if record is not None:
            judged = Judge(record).decide("spindle", f"{ORIGIN}{path}", NOW, operator)
            assert judged == ask(record, path, operator)


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/",
        "http://a.example:8080/",
        "http://a.example.org/",
        "http://www.a.example/",
    ],
)
def test_no_record_judges_another_origin(url):
    """RFC 9309, 2.3: a robots.txt holds for its scheme, host and port."""
    with pytest.raises(ValueError, match=f"is no request URL of {re.escape(ORIGIN)}"):
        Judge(GOOD).decide("spindle", url, NOW)


def test_nothing_is_judged_by_rules_that_are_not_there():
    """A record that was read without its text would allow everything."""
    with pytest.raises(TextMissing, match=ORIGIN):
        Judge(load(dump(GOOD)))


def test_crawl_delay_is_a_floor_within_a_cap():
    """It shows what was asked for, so that the cap can be reported."""
    assert interval_floor(GOOD, "spindle", 60) == IntervalFloor(30.0, 60, 2)
    assert (IntervalFloor(30.0, 60).floor_s, IntervalFloor(30.0, 60).is_capped) == (30.0, False)
    assert (IntervalFloor(90.0, 60).floor_s, IntervalFloor(90.0, 60).is_capped) == (60, True)
    assert interval_floor(GOOD, "loom", 60) is None
    for name in ("pending", "gone", "unreachable"):
        assert interval_floor(RECORDS[name], "spindle", 60) is None
    assert interval_floor(RECORDS["standing in"], "spindle", 60) == IntervalFloor(30.0, 60, 2)


@pytest.mark.parametrize(
    ("url", "robots"),
    [
        ("https://a.example:443/x?y#z", "https://a.example/robots.txt"),
        ("http://me:secret@a.example:81", "http://a.example:81/robots.txt"),
        ("http://[0:0::1]/x@y", "http://[::1]/robots.txt"),
    ],
)
def test_where_a_robots_txt_is(url, robots):
    """At the root of the authority, whatever the URL."""
    assert robots_url(url) == robots


def test_other_schemes_have_none():
    """The error shows the URL and why."""
    with pytest.raises(IdentityError, match=r"mailto:me.*scheme\.unsupported"):
        robots_url("mailto:me@a.example")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://a.example", "/"),
        ("http://a.example/#x/y", "/"),
        ("http://a.example?x=/y", "?x=/y"),
        ("http://a.example/x?u=http://b/", "/x?u=http://b/"),
    ],
)
def test_what_rules_are_matched_with(url, target):
    """Path and query, without a fragment."""
    assert target_of(url) == target
