"""The decision about a further attempt, as a function: bounded, repeatable, never a second POST."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier.policy.retry import (
    TABLE,
    Counts,
    Limits,
    Question,
    RetryRules,
    built_in,
    decide,
    read_rules,
    record,
    recorded,
    weigh,
)

NOW_MS = 1_800_000_000_000
PLAIN = RetryRules()
CAUSES = sorted(
    {cause.replace("?", "9") for rule in TABLE for cause in rule.causes if "*" not in cause}
)

questions = st.builds(
    Question,
    cause=st.sampled_from([*CAUSES, "download.ValueError", "http.299"]),
    at_ms=st.just(NOW_MS),
    seed=st.integers(0, 2**31),
    method=st.sampled_from(["GET", "HEAD", "POST", "PATCH", "PUT"]),
    origin=st.sampled_from(["https://a.example", "http://b.example:81"]),
    spider=st.sampled_from(["s", "t"]),
    exceptions=st.lists(st.sampled_from(["a.B", "c.D"]), max_size=2).map(tuple),
    is_sent=st.sampled_from([None, True, False]),
    faults=st.integers(0, 12),
    holds=st.integers(0, 12),
    own_times=st.none() | st.integers(0, 5),
    is_listed=st.none() | st.booleans(),
    is_enabled=st.booleans(),
    is_refused=st.booleans(),
    may_repeat=st.booleans(),
    has_answered=st.booleans(),
    retry_after=st.sampled_from(["", "0", "7", "-3", "soon", "99999999999999999999"])
    | st.text(max_size=30),
    date=st.sampled_from(["", "Fri, 15 Jan 2027 08:00:00 GMT", "yesterday"]) | st.text(max_size=30),
    not_before_ms=st.sampled_from([0, NOW_MS + 1000]),
)

rule_sets = st.sampled_from(
    [
        PLAIN,
        RetryRules(limits=Limits(times=0)),
        RetryRules(read_rules({"x": {"exception": "B", "retry": True, "times": 4}})),
        RetryRules(read_rules({"y": {"origin": "a.example", "delay": 1, "max_delay": 5}})),
        RetryRules(read_rules({"z": {"status": "5xx", "retry": False}}), Limits(holds=3)),
    ]
)


def ask(cause: str, rules: RetryRules = PLAIN, **more: Any) -> Any:
    return decide(Question(cause=cause, at_ms=NOW_MS, seed=1, **more), rules)[0]


@given(questions, rule_sets)
def test_a_decision_can_be_made_again_from_its_record(
    question: Question, rules: RetryRules
) -> None:
    """The detail of the transition holds all that the decision was made from (design, section 3)."""
    decision, terms = decide(question, rules)
    found = recorded(record(question, terms, decision))
    assert found is not None
    again, by, said = found
    assert (again, by) == (question, terms)
    assert weigh(again, by).to_json() == said == decision.to_json()
    assert rules.terms(again) == by


@given(questions, rule_sets)
def test_waits_lie_within_their_limits(question: Question, rules: RetryRules) -> None:
    decision, terms = decide(question, rules)
    limit_ms = max(terms.max_delay_s, terms.retry_after_cap_s + 10) * 1000 + 1
    if decision.retries:
        assert NOW_MS <= decision.due_ms <= max(NOW_MS + limit_ms, question.not_before_ms)
        assert decision.due_ms >= question.not_before_ms
    else:
        assert (decision.due_ms, decision.remaining) == (0, 0)
    assert decision.hold_until_ms == 0 or decision.hold_until_ms <= NOW_MS + limit_ms


@given(questions, rule_sets)
def test_the_number_of_attempts_is_bounded(question: Question, rules: RetryRules) -> None:
    """Each retry takes one of its kind, and none is left after the last."""
    decision, terms = decide(question, rules)
    used = question.holds if terms.counts is Counts.HOLD else question.faults
    if decision.retries:
        assert used < terms.times
        assert decision.remaining == terms.times - used - 1 >= 0
    elif decision.why_not != "exhausted":
        assert terms.counts is Counts.NOT or decision.why_not in {
            "disabled",
            "dont_retry",
            "not_idempotent",
        }


@given(questions, rule_sets)
def test_what_may_have_been_acted_on_is_not_sent_twice(
    question: Question, rules: RetryRules
) -> None:
    """RFC 9110, section 9.2.2."""
    decision, terms = decide(question, rules)
    is_safe = question.method in {"GET", "HEAD", "PUT"} or question.is_sent is False
    if decision.retries:
        assert is_safe or question.may_repeat or terms.may_repeat


@given(st.integers(0, 30), st.integers(0, 2**31))
def test_the_wait_doubles_within_its_jitter(count: int, seed: int) -> None:
    decision = decide(
        Question(cause="http.500", at_ms=NOW_MS, seed=seed, faults=count),
        RetryRules(limits=Limits(times=99)),
    )[0]
    nominal_s = min(300.0, 3.0 * 2**count)
    assert 0.75 * nominal_s - 0.001 <= decision.delay_s <= min(300.0, 1.25 * nominal_s + 0.001)


def test_an_instruction_does_not_burn_the_attempts_of_its_url() -> None:
    """429 and 503 speak to the origin's schedule: the gate is shut, `RETRY_TIMES` stays."""
    for cause in ("http.429", "http.503"):
        decision = ask(cause, faults=2, retry_after="7")
        assert decision.retries
        assert decision.counts is Counts.HOLD
        assert decision.hold_until_ms == decision.due_ms >= NOW_MS + 7000
        assert ask(cause, holds=9, retry_after="7").retries
        assert ask(cause, holds=10, retry_after="7").why_not == "exhausted"
        assert ask(cause, holds=3, faults=2).retries
        assert ask(cause, holds=4).why_not == "exhausted"
        assert ask(cause, RetryRules(limits=Limits(times=0))).why_not == "exhausted"
        assert ask(cause, is_refused=True).hold_until_ms > NOW_MS


def test_an_outage_is_the_origin_s() -> None:
    """What answered before and cannot be reached now has an outage; what never answered has faults."""
    assert ask("download.refused").counts is Counts.FAULT
    assert ask("download.refused").hold_until_ms == 0
    assert ask("download.refused", has_answered=True, holds=4).why_not == "exhausted"
    outage = ask("download.refused", has_answered=True, faults=2)
    assert outage.retries
    assert outage.counts is Counts.HOLD
    assert outage.hold_until_ms == outage.due_ms
    assert ask("download.reset", has_answered=True).counts is Counts.FAULT


def test_lists_of_the_project_decide() -> None:
    """`RETRY_HTTP_CODES` and `RETRY_EXCEPTIONS` that a project has set keep their meaning."""
    assert ask("http.404", is_listed=True).retries
    assert ask("http.500", is_listed=False).why_not == "not_transient"
    assert ask("http.404").why_not == "not_transient"


@pytest.mark.parametrize(
    ("cause", "is_sent", "retries"),
    [
        ("download.refused", None, True),
        ("download.dns", None, True),
        ("download.connect_timeout", None, True),
        ("download.tls.cut", None, True),
        ("download.reset", True, False),
        ("download.reset", None, False),
        ("download.reset", False, True),
        ("download.timeout", True, False),
        ("http.500", True, False),
        ("http.429", True, True),
        ("http.503", True, True),
        ("http.425", True, True),
    ],
)
def test_a_post_is_sent_again_only_where_it_was_not_acted_on(
    cause: str, is_sent: bool | None, retries: bool
) -> None:
    assert ask(cause, method="POST", is_sent=is_sent).retries is retries
    assert ask(cause, method="POST", is_sent=is_sent, may_repeat=True).retries


def test_the_table_has_a_rule_for_everything() -> None:
    assert built_in("download.NoSuchThing").name == "download.any"
    assert built_in("http.777").name == "http.any"
    assert len({rule.name for rule in TABLE}) == len(TABLE)


def test_the_record_is_small() -> None:
    question = Question(cause="http.500", at_ms=NOW_MS, seed=1, origin="https://a.example")
    decision, terms = decide(question, PLAIN)
    assert len(record(question, terms, decision)) < 700
    assert json.loads(record(question, terms, decision, times=1))["times"] == 1
