"""The record of a robots.txt: its age, its copy, its trouble, and how it is kept."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.policy.robots import (
    MAX_AGE_S,
    PARSER_VERSION,
    REDIRECT_REFUSED,
    Hop,
    RecordUnreadable,
    RobotsFetch,
    RobotsPolicy,
    RobotsRecord,
    RobotsState,
    after_fetch,
    changes_rulings,
    classify,
    digest_of,
    dump,
    load,
    reopen,
    reread,
)
from scrapy_frontier.policy.robots.freshness import lifetime_s, read_max_age

ORIGIN = "http://a.example"
NOW = 1_800_000_000.0
HOUR = 3600.0
DAY = 24 * HOUR
TEXT = b"User-agent: *\nDisallow: /p\n"
NEW = RobotsRecord(ORIGIN)
STEADY = RobotsPolicy(jitter=0.0)
GOOD = RobotsFetch(200, TEXT, etag='"1"', last_modified="Mon, 01 Jan 2024 00:00:00 GMT")
BAD = RobotsFetch(503)


def fetch(record, given, now=NOW, policy=STEADY, seed=1):
    outcome = classify(given, has_copy=record.has_copy)
    return after_fetch(record, outcome, now, policy, random.Random(seed))


def test_a_new_record_is_pending():
    """Nothing is known, nothing is in force, a fetch is needed."""
    assert NEW.state is RobotsState.PENDING
    assert not NEW.is_in_force(NOW)
    assert NEW.needs_fetch(NOW)
    assert not RobotsRecord(ORIGIN, expires_at=NOW + 5).is_fresh(NOW)


def test_a_good_copy_is_in_force_for_a_day():
    """Then it is asked for again, and until then judges nothing (RFC 9309, 2.4)."""
    record = fetch(NEW, GOOD)
    assert (record.state, record.reason, record.status) == (RobotsState.RULES, "fetched", 200)
    assert (record.text, record.digest) == (TEXT, digest_of(TEXT))
    assert (record.fetched_at, record.expires_at) == (NOW, NOW + DAY)
    assert record.is_in_force(NOW + DAY - 1)
    assert not record.needs_fetch(NOW + DAY - 1)
    assert not record.is_in_force(NOW + DAY)
    assert record.needs_fetch(NOW + DAY)


def test_a_record_from_the_future_is_not_believed():
    """A clock that was set back does not keep a copy for longer than a day."""
    record = fetch(NEW, GOOD)
    assert record.is_fresh(NOW - 30)
    assert not record.is_fresh(NOW - DAY)
    assert record.needs_fetch(NOW - DAY)


@pytest.mark.parametrize(
    ("cache_control", "age", "lifetime"),
    [
        ("", "", DAY),
        ("public", "", DAY),
        ("max-age=7200", "", 7200),
        ("public, MAX-AGE = 7200", "", 7200),
        ('max-age="7200"', "", 7200),
        ("max-age=7200", "600", 6600),
        ("max-age=7200", "soon", 7200),
        ("max-age=60", "", HOUR),
        ("no-store", "", HOUR),
        ("no-cache, max-age=7200", "", HOUR),
        ("max-age=999999999999999999999", "", DAY),
        ("max-age=9999999", "", DAY),
        ("s-maxage=60", "", DAY),
        ("max-age=-1", "", DAY),
        ("max-age=\u0663", "", DAY),
        ("max-age", "", DAY),
    ],
)
def test_cache_control_within_bounds(cache_control, age, lifetime):
    """Between the floor of the policy and 24 hours the server says how long."""
    record = fetch(NEW, replace(GOOD, cache_control=cache_control, age=age))
    assert record.expires_at - NOW == lifetime


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=10), st.floats(0, DAY), st.floats(0, DAY))
def test_a_lifetime_is_within_its_bounds(cache_control, age, one, other):
    """Whatever the headers."""
    low, high = sorted((one, other))
    assert low <= lifetime_s(cache_control, age, low, high) <= high
    assert (read_max_age(cache_control) or 0) >= 0


def test_unavailable_is_an_answer_for_a_day():
    """A 404 is no trouble: everything is allowed, and no text is kept."""
    record = fetch(NEW, RobotsFetch(404, TEXT))
    assert (record.state, record.reason, record.status) == (RobotsState.ALLOW_ALL, "http.404", 404)
    assert (record.text, record.digest, record.has_copy) == (b"", "", False)
    assert record.is_fresh(NOW + DAY - 1)


def test_unreachable_without_a_copy_is_tried_again_with_growing_waits():
    """Everything waits; each failure doubles the wait, up to the longest."""
    record, waits = NEW, []
    policy = RobotsPolicy(jitter=0.0, backoff_s=10, max_backoff_s=50, max_tries=9)
    for _ in range(5):
        record = fetch(record, BAD, NOW, policy)
        assert (record.state, record.reason) == (RobotsState.DISALLOW_ALL, "http.503")
        assert not record.needs_fetch(record.next_try_at - 1)
        assert record.needs_fetch(record.next_try_at)
        waits.append(record.next_try_at - NOW)
    assert waits == [10, 20, 40, 50, 50]
    assert record.unreachable_since == NOW


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 50))
def test_waits_vary_within_the_jitter(seed, failures):
    """By the random numbers that are passed in, and by nothing else."""
    policy = RobotsPolicy(backoff_s=10, max_backoff_s=160, jitter=0.25)
    before = replace(NEW, failures=failures - 1)
    record = fetch(before, BAD, policy=policy, seed=seed)
    steady = min(10 * 2 ** (failures - 1), 160)
    assert 0.75 * steady <= record.next_try_at - NOW <= 1.25 * steady
    assert record == fetch(before, BAD, policy=policy, seed=seed)


def test_after_so_many_tries_the_origin_is_closed_for_this_run():
    """A run ends though a robots.txt never comes."""
    record = NEW
    for _ in range(STEADY.max_tries):
        assert not record.is_closed
        record = fetch(record, BAD)
    assert record.is_closed
    assert not record.needs_fetch(NOW + 10 * DAY)


def test_a_resume_tries_again_but_not_too_early():
    """The wait that was promised outlives the process."""
    record = fetch(NEW, replace(BAD, status=429, retry_after_s=2 * HOUR))
    assert record.is_closed  # longer than the run has patience for
    again = reopen(record)
    assert not again.is_closed
    assert not again.needs_fetch(NOW + 2 * HOUR - 1)
    assert again.needs_fetch(NOW + 2 * HOUR)
    assert again.unreachable_since == NOW
    assert not fetch(again, BAD, NOW + 2 * HOUR).is_closed


@pytest.mark.parametrize(
    ("retry_after_s", "wait"),
    [(None, 15), (0, 15), (-5, 15), (float("nan"), 15), (600, 600), (90 * DAY, MAX_AGE_S)],
)
def test_retry_after_lengthens_a_wait(retry_after_s, wait):
    """It never shortens one, and after a day the file may be asked for anew anyway."""
    record = fetch(NEW, replace(BAD, retry_after_s=retry_after_s))
    assert record.next_try_at - NOW == wait


def test_a_good_copy_stands_in_while_the_file_is_unreachable():
    """It may outlive its day then, is asked for with backoff, and its origin is never closed."""
    record = fetch(NEW, GOOD)
    for _ in range(STEADY.max_tries + 1):
        record = fetch(record, BAD, NOW + DAY)
    assert (record.state, record.text, record.fetched_at) == (RobotsState.RULES, TEXT, NOW)
    assert (record.trouble, record.unreachable_since) == ("http.503", NOW + DAY)
    assert record.is_standing_in
    assert record.is_in_force(NOW + 5 * DAY)
    assert not record.is_closed
    assert not record.needs_fetch(record.next_try_at - 1)
    assert record.needs_fetch(record.next_try_at)


def test_a_success_ends_the_trouble():
    """Nothing of it is left on the record."""
    record = fetch(fetch(fetch(NEW, GOOD), BAD, NOW + DAY), GOOD, NOW + 2 * DAY)
    assert record == replace(
        fetch(NEW, GOOD),
        fetched_at=NOW + 2 * DAY,
        tried_at=NOW + 2 * DAY,
        expires_at=NOW + 3 * DAY,
        next_try_at=NOW + 3 * DAY,
    )


def test_that_there_was_none_does_not_stand_in():
    """An old 404 is no copy of a robots.txt: an unreachable one may have been put there since."""
    record = fetch(fetch(NEW, RobotsFetch(404)), BAD, NOW + DAY)
    assert record.state is RobotsState.DISALLOW_ALL


def test_a_policy_may_refuse_old_copies():
    """Then an unreachable file means that everything waits, as without a copy."""
    record = fetch(fetch(NEW, GOOD), BAD, NOW + DAY, RobotsPolicy(stands_in=False))
    assert (record.state, record.text, record.has_copy) == (RobotsState.DISALLOW_ALL, b"", False)


def test_giving_way_after_thirty_days_is_the_operators_choice():
    """RFC 9309, 2.3.1.4: MAY; it stays unreachable, and is asked for as before."""
    policy = replace(STEADY, gives_way=True)
    first = fetch(NEW, BAD)
    for chosen, now, state in [
        (policy, NOW + 30 * DAY - 1, RobotsState.DISALLOW_ALL),
        (policy, NOW + 30 * DAY, RobotsState.ALLOW_ALL),
        (STEADY, NOW + 300 * DAY, RobotsState.DISALLOW_ALL),
    ]:
        record = fetch(first, BAD, now, chosen)
        assert record.state is state
        assert record.unreachable_since == NOW
    given_way = fetch(first, BAD, NOW + 30 * DAY, policy)
    assert (given_way.reason, given_way.trouble) == ("unreachable_too_long", "http.503")
    assert given_way.needs_fetch(given_way.next_try_at)
    assert given_way.is_in_force(given_way.next_try_at)


def test_a_confirmed_copy_has_a_new_day():
    """304: same text, new times, no trouble; headers of the answer replace the old ones."""
    old = fetch(fetch(NEW, GOOD), BAD, NOW + DAY)
    record = fetch(old, RobotsFetch(304, etag='"2"'), NOW + 2 * DAY)
    assert (record.text, record.state, record.status) == (TEXT, RobotsState.RULES, 200)
    assert (record.fetched_at, record.expires_at) == (NOW + 2 * DAY, NOW + 3 * DAY)
    assert (record.etag, record.last_modified) == ('"2"', GOOD.last_modified)
    assert (record.failures, record.trouble, record.unreachable_since) == (0, "", None)
    assert not changes_rulings(old, record)


def test_nothing_can_confirm_a_copy_that_is_not_there():
    """It would put an empty text in force."""
    outcome = classify(RobotsFetch(304), has_copy=True)
    with pytest.raises(ValueError, match="has no copy"):
        after_fetch(NEW, outcome, NOW, STEADY, random.Random(1))


def test_a_copy_is_asked_for_by_its_validators():
    """Unless redirects led to it: they are those of another URL."""
    assert fetch(NEW, GOOD).conditions() == {
        "If-None-Match": '"1"',
        "If-Modified-Since": GOOD.last_modified,
    }
    assert fetch(NEW, replace(GOOD, hops=(Hop(301, "http://b.example/r"),))).conditions() == {}
    assert fetch(NEW, RobotsFetch(404, etag='"1"')).conditions() == {}


def test_rulings_change_with_the_rules_and_not_with_the_age():
    """What was judged by one record is judged again only where another one may say otherwise."""
    good, other = fetch(NEW, GOOD), fetch(NEW, replace(GOOD, body=TEXT + b"Disallow: /q"))
    none, gone = fetch(NEW, RobotsFetch(200)), fetch(NEW, RobotsFetch(404))
    assert changes_rulings(NEW, good)
    assert changes_rulings(good, other)
    assert changes_rulings(good, none)
    assert changes_rulings(good, replace(good, parser_version=PARSER_VERSION + 1))
    assert not changes_rulings(good, fetch(good, GOOD, NOW + DAY))
    assert not changes_rulings(good, fetch(good, BAD, NOW + DAY))
    assert not changes_rulings(none, gone)


def test_a_newer_parser_reads_the_copy_again():
    """No fetch is needed for that."""
    good = fetch(NEW, GOOD)
    misread = replace(good, parser_version=0, state=RobotsState.ALLOW_ALL, reason="no_groups")
    assert reread(misread) == good
    assert reread(good) is good
    gone = fetch(NEW, RobotsFetch(404))
    assert reread(replace(gone, parser_version=0)) == gone


@pytest.mark.parametrize(
    "values",
    [
        {"min_age_s": -1},
        {"min_age_s": 10, "max_age_s": 5},
        {"max_age_s": MAX_AGE_S + 1},
        {"backoff_s": 0},
        {"backoff_s": 10, "max_backoff_s": 5},
        {"jitter": 1.0},
        {"max_tries": 0},
        {"patience_s": -1},
        {"unreachable_days": float("nan")},
    ],
)
def test_an_impossible_policy_is_refused(values):
    """By the name of the field."""
    with pytest.raises(ValueError, match=next(iter(values))):
        RobotsPolicy(**values)


FETCHES = [
    GOOD,
    replace(GOOD, body=b"", content_type="text/plain"),
    BAD,
    RobotsFetch(404, hops=(Hop(301, "http://b.example/robots.txt"),)),
    RobotsFetch(429, retry_after_s=9 * HOUR),
    RobotsFetch(failure="dns"),
    RobotsFetch(302, stop=REDIRECT_REFUSED),
    RobotsFetch(304),
]
histories = st.lists(
    st.tuples(st.sampled_from(FETCHES), st.sampled_from([1.0, HOUR, DAY, 31 * DAY]), st.booleans()),
    max_size=12,
)


@settings(deadline=None)
@given(histories, st.booleans(), st.booleans())
def test_any_history_keeps_the_promises(history, gives_way, stands_in):
    """After whatever happened: a record can be kept, what is unreachable is not asked for at once,
    a copy has its text, and nothing is in force for longer than a day unless it stands in."""
    policy = RobotsPolicy(gives_way=gives_way, stands_in=stands_in)
    record, now = NEW, NOW
    for given_fetch, passed_s, is_resumed in history:
        now += passed_s
        record = fetch(reopen(record) if is_resumed else record, given_fetch, now, policy)
        assert load(dump(record), record.text) == record
        assert record.tried_at == now
        assert not record.needs_fetch(now)
        assert record.has_copy == (record.digest == digest_of(record.text))
        assert (record.state is RobotsState.RULES) <= record.has_copy
        assert record.is_in_force(now)
        assert record.is_standing_in or not record.is_in_force(now + DAY)
        assert (record.unreachable_since is None) == (not record.trouble)


def test_the_text_is_kept_apart():
    """A record can be read without it, and takes no other text."""
    record = fetch(NEW, GOOD)
    assert "Disallow" not in dump(record)
    assert load(dump(record)) == replace(record, text=b"")
    for wrong in (b"", b"User-agent: *\n"):
        with pytest.raises(RecordUnreadable, match=record.digest):
            load(dump(record), wrong)
    with pytest.raises(RecordUnreadable, match="its digest must be ''"):
        load(dump(NEW), TEXT)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[]",
        "{}",
        "nonsense",
        '{"origin": 1, "state": "rules"}',
        '{"origin": "http://a.example", "state": "other"}',
        '{"origin": "http://a.example", "status": true}',
        '{"origin": "http://a.example", "status": "200"}',
        '{"origin": "http://a.example", "expires_at": NaN}',
        '{"origin": "http://a.example", "expires_at": "now"}',
        '{"origin": "http://a.example", "is_closed": 0}',
        '{"origin": "http://a.example", "hops": [[301]]}',
        '{"origin": "http://a.example", "hops": {}}',
        "[" * 100_000,
    ],
    ids=lambda data: data[:60],
)
def test_what_is_no_record_is_refused(data):
    """With one error, whatever is wrong."""
    with pytest.raises(RecordUnreadable, match="no record of a robots"):
        load(data)


def test_fields_of_a_newer_version_are_passed_over():
    """A store may have been written by it."""
    assert load(dump(NEW)[:-1] + ',"novel":1}') == NEW
