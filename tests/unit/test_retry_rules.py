"""`FRONTIER_RETRY_RULES`: the narrowest rule that fits decides, and bad ones are named."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.retry import Question, RetryRules, decide, read_rules
from scrapy_frontier.settings import FrontierSettings

RULES = {
    "everywhere": {"status": "4xx", "retry": True},
    "teapots": {"status": 418, "retry": False},
    "this spider": {"spider": "shop", "status": "4xx", "times": 7, "retry": True},
    "this site": {"origin": "*.example", "status": "4xx", "retry": True, "delay": 1},
    "this host": {"origin": "https://a.example", "status": "4xx", "retry": True, "delay": 2},
    "cut": {"exception": "ResponseDataLossError", "retry": False},
}


def rule_of(cause: str, origin: str = "http://other.test", **more: Any) -> str:
    question = Question(cause=cause, at_ms=0, seed=0, origin=origin, **more)
    return decide(question, RetryRules(read_rules(RULES)))[0].rule


@pytest.mark.parametrize(
    ("cause", "origin", "more", "rule"),
    [
        ("http.403", "http://other.test", {}, "everywhere"),
        ("http.418", "http://other.test", {}, "teapots"),
        ("http.418", "http://other.test", {"spider": "shop"}, "this spider"),
        ("http.403", "http://b.example", {"spider": "shop"}, "this site"),
        ("http.403", "https://a.example", {}, "this host"),
        ("http.403", "http://a.example", {}, "this site"),
        ("http.500", "https://a.example", {}, "http.500"),
        (
            "download.truncated",
            "https://a.example",
            {"exceptions": ("scrapy.exceptions.ResponseDataLossError",)},
            "cut",
        ),
    ],
)
def test_the_narrowest_decides(cause: str, origin: str, more: dict[str, Any], rule: str) -> None:
    assert rule_of(cause, origin, **more) == rule


def test_what_a_rule_does_not_say_is_left_to_the_table() -> None:
    rules = RetryRules(read_rules({"patient": {"status": 429, "delay": 60}}))
    terms = rules.terms(Question(cause="http.429", at_ms=0, seed=0))
    assert (terms.rule, terms.delay_s, terms.holds_gate) == ("patient", 60, True)
    assert terms.counts.value == "hold"


def test_of_two_equals_the_first() -> None:
    rules = read_rules({"a": {"status": 500, "delay": 1}, "b": {"status": 500, "delay": 2}})
    assert RetryRules(rules).terms(Question(cause="http.500", at_ms=0, seed=0)).rule == "a"


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([], "must be a dictionary of named rules"),
        ({"x": 5}, "rule 'x' must be a dictionary"),
        ({"": {"retry": True}}, "non-empty text"),
        ({"x": {"statsu": 5, "retry": True}}, "did you mean 'status'?"),
        (
            {"x": {"status": 5000, "retry": True}},
            'status = 5000: must be a status such as 503, or "5xx"',
        ),
        ({"x": {"status": 500}}, "says nothing"),
        ({"x": {"cause": "download.refussed", "retry": True}}, "did you mean 'download.refused'?"),
        ({"x": {"exception": "not a class", "retry": True}}, "must be an exception class"),
        ({"x": {"origin": "https://a.example/path", "retry": True}}, "without a path"),
        ({"x": {"origin": "ftp://a.example", "retry": True}}, "rule 'x': origin"),
        ({"x": {"status": 500, "times": -1}}, "at least 0"),
        ({"x": {"status": 500, "delay": "inf"}}, "seconds"),
        ({"x": {"status": 500, "retry": "perhaps"}}, "True or False"),
    ],
)
def test_bad_rules_are_named(rules: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(rules)
    assert says in str(caught.value)


def test_the_setting_names_itself() -> None:
    from scrapy.settings import Settings

    with pytest.raises(ConfigError, match="FRONTIER_RETRY_RULES: rule 'x' says nothing"):
        FrontierSettings.from_settings(Settings({"FRONTIER_RETRY_RULES": '{"x": {"status": 500}}'}))
    read = FrontierSettings.from_settings(
        Settings({"FRONTIER_RETRY_RULES": {"x": {"exception": TimeoutError, "retry": True}}})
    )
    assert read.retry_rules[0].exceptions == ("TimeoutError",)
