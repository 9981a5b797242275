"""Parameter rules: what a project says of its query parameters, acting on the key alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import (
    TRACKING_PARAMETERS,
    Applied,
    ParameterClass,
    ParameterRules,
    classify,
    comparison_url,
    fetch_key,
)

# The machine may be busy; how long an example takes is no promise.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SHOP = "http://shop.example/list"

FACETS = {
    "name": "facets",
    "parameters": ["color", "size*"],
    "scope": "shop.example/list",
    "treatment": "order_insensitive",
}
SESSIONS = {"name": "sessions", "parameters": "sid", "treatment": "tracking"}

pairs = st.sampled_from(
    ["", "a", "a=", "a=1", "b=2", "sid=3", "sid", "utm_source=x", "color=red", "size_x=1", "SID=4"]
)
queries = st.lists(pairs, max_size=8).map("&".join)
entries_in_force = st.lists(st.sampled_from(["tracking", 0, 1]), unique=True, max_size=3).map(
    lambda names: [name if isinstance(name, str) else (FACETS, SESSIONS)[name] for name in names]
)


def rules(*entries: object) -> ParameterRules:
    return ParameterRules.from_setting(list(entries))


@unhurried
@given(queries)
def test_without_rules_no_byte_is_touched(query: str) -> None:
    """By default nothing is left out of a key and nothing sorted, tracking parameters included."""
    for none in (rules(), ParameterRules.from_setting(None)):
        assert none.apply(f"{SHOP}?{query}") == Applied(f"{SHOP}?{query}")
    assert fetch_key("GET", f"{SHOP}?{query}", rules=rules()) == fetch_key("GET", f"{SHOP}?{query}")


@unhurried
@given(entries_in_force, queries)
def test_rules_are_idempotent(entries: list[object], query: str) -> None:
    """Applying rules to what they made changes nothing, and touches nothing."""
    in_force = rules(*entries)
    once = in_force.apply(f"{SHOP}?{query}").url
    assert in_force.apply(once) == Applied(once)
    assert comparison_url(once) == once


@unhurried
@given(queries)
def test_tracking_takes_whole_pairs_and_no_other_byte(query: str) -> None:
    """A tracking rule leaves out its pairs; all other pairs stay, in order, empty ones too."""
    kept = [p for p in query.split("&") if not p.startswith(("utm_", "sid"))]
    expected = f"{SHOP}?{'&'.join(kept)}" if "&".join(kept) else SHOP
    applied = rules("tracking", SESSIONS).apply(f"{SHOP}?{query}")
    if applied.touched:
        assert applied.url == expected
    else:
        assert applied.url == f"{SHOP}?{query}"
        assert kept == query.split("&")


@unhurried
@given(st.permutations(["color=red", "size=2", "a=1", "b=2", "color=blue"]))
def test_order_insensitive_parameters_may_stand_anywhere(order: list[str]) -> None:
    """Their order and place make no other key; those of the others do."""
    in_force = rules(FACETS)
    rest = [pair for pair in order if pair[0] in "ab"]
    expected = "&".join([*rest, "color=blue", "color=red", "size=2"])
    assert in_force.apply(f"{SHOP}?{'&'.join(order)}").url == f"{SHOP}?{expected}"


def test_rules_act_on_the_key_alone() -> None:
    """Two URLs that differ in a tracking parameter are one identity; the URLs stay two."""
    in_force = rules("tracking")
    plain, tagged = f"{SHOP}?a=1", f"{SHOP}?utm_source=mail&a=1&gclid=x"
    assert fetch_key("GET", plain, rules=in_force) == fetch_key("GET", tagged, rules=in_force)
    assert fetch_key("GET", plain) != fetch_key("GET", tagged)


def test_touched_rules_are_named() -> None:
    """The report can count what each rule touched: only rules that changed the URL are named."""
    in_force = rules("tracking", SESSIONS, FACETS)
    assert in_force.apply(f"{SHOP}?a=1").touched == ()
    assert in_force.apply(f"{SHOP}?sid=1&utm_id=2").touched == ("tracking", "sessions")
    assert in_force.apply(f"{SHOP}?a=1&color=red").touched == ()
    assert in_force.apply(f"{SHOP}?color=red&a=1").touched == ("facets",)


def test_scope_bounds_a_rule() -> None:
    """A rule with a scope holds on that host and below that path, and nowhere else."""
    in_force = rules(FACETS)
    for url in (
        "http://shop.example/listing?color=1&a",
        "http://shop.example/?color=1&a",
        "http://www.shop.example/list?color=1&a",
        "http://notshop.example/list?color=1&a",
    ):
        assert in_force.apply(url) == Applied(url)
    for path in ("/list", "/list/", "/list/shoes"):
        assert in_force.apply(f"https://shop.example{path}?color=1&a").touched == ("facets",)


def test_names_are_compared_exactly() -> None:
    """Case counts, a part of a name is not the name, and encoded names are compared decoded."""
    in_force = rules({"name": "x", "parameters": ["größe", "ref"], "treatment": "tracking"})
    for query in ("Ref=1", "refs=1", "xref=1", "a=ref", "a[ref]=1"):
        assert in_force.apply(f"{SHOP}?{query}") == Applied(f"{SHOP}?{query}")
    assert in_force.apply(comparison_url(f"{SHOP}?r%65f=1")).url == SHOP
    assert in_force.apply(f"{SHOP}?gr%C3%B6%C3%9Fe=1").url == SHOP


def test_examples_of_a_rule_are_tried() -> None:
    """A rule that does not do what its examples say is refused when the setting is read."""
    good = [f"{SHOP}?color=1&a=2", [f"{SHOP}?color=1&size=2", f"{SHOP}?size=2&color=1"]]
    rules({**FACETS, "examples": good})
    for example, fault in [
        ("http://shop.example/other?color=1&a", "does not touch"),
        ([f"{SHOP}?color=1&a=2", f"{SHOP}?color=2&a=2"], "does not make one"),
        ("no url", "is no URL"),
    ]:
        with pytest.raises(ConfigError, match=fault):
            rules({**FACETS, "examples": [example]})


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        (5, "must be a list"),
        (["trackers"], r"\[0\] must be 'tracking' or a dictionary"),
        ([{**SESSIONS, "param": "x"}], "unknown key 'param'"),
        ([{"treatment": "tracking"}], "names no parameters"),
        ([{**SESSIONS, "parameters": ["*"]}], "is no parameter"),
        ([{**SESSIONS, "parameters": ["a*b"]}], "is no parameter"),
        ([{**SESSIONS, "parameters": ["a=1"]}], "more than a name"),
        ([{**SESSIONS, "parameters": [5]}], "is no text"),
        ([{**SESSIONS, "parameters": 5}], "must be a text or a list"),
        ([{**SESSIONS, "treatment": "drop"}], "write 'tracking' or 'order_insensitive'"),
        ([{"parameters": "a"}], "'treatment'.* is None"),
        ([{**SESSIONS, "scope": "shop.example/?a"}], r"\[0\]\['scope'\]: .*leave out the query"),
        ([{**SESSIONS, "name": ""}], "must be a text"),
        ([{**SESSIONS, "examples": 5}], "must be a list of URLs"),
        ([{**SESSIONS, "examples": [5]}], "neither a URL nor a pair"),
        ([SESSIONS, SESSIONS], "two rules named 'sessions'"),
    ],
)
def test_wrong_setting_is_an_error_that_names_the_entry(setting: Any, fault: str) -> None:
    """The error says which entry is wrong and what to write instead."""
    with pytest.raises(ConfigError, match=fault) as caught:
        ParameterRules.from_setting(setting)
    assert "FRONTIER_PARAMETER_RULES" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "parameter_class"),
    [
        ("utm_source", ParameterClass.TRACKING_ONLY),
        ("gclid", ParameterClass.TRACKING_ONLY),
        ("GCLID", ParameterClass.UNKNOWN),
        ("page", ParameterClass.CONTENT_BEARING),
        ("sort", ParameterClass.ORDER_SENSITIVE),
        ("filter[]", ParameterClass.ORDER_SENSITIVE),
        ("xyzzy", ParameterClass.UNKNOWN),
        ("", ParameterClass.UNKNOWN),
    ],
)
def test_parameters_are_classified_by_name(name: str, parameter_class: ParameterClass) -> None:
    """A name alone tells tracking, order-sensitive or content-bearing; otherwise it is unknown."""
    assert classify(name) is parameter_class
    assert rules().classify(name, SHOP) is parameter_class


def test_rules_of_the_project_outrank_the_names() -> None:
    """What a project declares to be tracking is so where its rule holds."""
    in_force = rules({**SESSIONS, "parameters": "page", "scope": "shop.example"})
    assert in_force.classify("page", SHOP) is ParameterClass.TRACKING_ONLY
    assert in_force.classify("page", "http://h.example/") is ParameterClass.CONTENT_BEARING


def test_shipped_names_are_of_one_class_only() -> None:
    """No name that is shipped as tracking is known to choose content or an order."""
    assert len(set(TRACKING_PARAMETERS)) == len(TRACKING_PARAMETERS)
    for name in TRACKING_PARAMETERS:
        assert classify(name.replace("*", "x")) is ParameterClass.TRACKING_ONLY
