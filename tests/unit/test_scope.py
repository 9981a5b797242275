"""FRONTIER_SCOPE and allowed_domains."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import Place, Resolved, comparison_url, resolve, split_origin
from scrapy_frontier.policy.scope import (
    SCOPE_ALLOWED_DOMAINS,
    SCOPE_ORIGIN,
    SCOPE_PATH,
    UNRESTRICTED,
    Allowed,
    Decision,
    DomainScope,
    Excluded,
    Scope,
)

# The machine may be busy; how long an example takes is no promise.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def decide(setting: dict[str, Any] | None, url: str) -> Decision:
    resolved = resolve(url)
    assert isinstance(resolved, Resolved)
    return Scope.from_setting(setting).decide(resolved.url, resolved.origin)


def test_without_a_setting_everything_is_allowed() -> None:
    """No rules, or no includes, restrict nothing but what is excluded."""
    for setting in (None, {}, {"include": []}, {"include": None, "exclude": []}):
        assert decide(setting, "http://h.example/") is UNRESTRICTED
    setting = {"exclude": "h.example/private"}
    assert decide(setting, "http://h.example/") is UNRESTRICTED
    assert decide(setting, "http://other.example/private") is UNRESTRICTED
    assert decide(setting, "http://h.example/private/x") == Excluded(SCOPE_PATH, setting["exclude"])


def test_includes_are_an_allowlist() -> None:
    """With includes, an origin or a path that none covers is excluded, and the code says which."""
    setting = {"include": ["https://docs.example.com/", "example.org/blog/"]}
    assert decide(setting, "https://docs.example.com/a") == Allowed("https://docs.example.com/")
    assert decide(setting, "http://example.org/blog/a") == Allowed("example.org/blog/")
    assert decide(setting, "http://example.org/") == Excluded(SCOPE_PATH, "not included")
    assert decide(setting, "http://docs.example.com/") == Excluded(SCOPE_ORIGIN, "not included")
    assert decide(setting, "https://evil-docs.example.com/") == Excluded(
        SCOPE_ORIGIN, "not included"
    )
    assert decide(setting, "https://docs.example.com.evil.example/").excludes


def test_exceptions_to_any_depth() -> None:
    """A narrower rule is an exception to the wider one, an include to an exclude and the reverse."""
    setting = {
        "include": {"all": "*.example.com", "manual": "docs.example.com/old/manual/"},
        "exclude": {
            "old": "docs.example.com/old/",
            "drafts": "docs.example.com/old/manual/drafts",
            "archive": "archive.example.com",
        },
    }
    for url, expected in [
        ("http://example.com/", Allowed("all")),
        ("http://docs.example.com/new", Allowed("all")),
        ("http://docs.example.com/old/a", Excluded(SCOPE_PATH, "old")),
        ("http://docs.example.com/old/manual/1", Allowed("manual")),
        ("http://docs.example.com/old/manual/drafts?x", Excluded(SCOPE_PATH, "drafts")),
        ("http://archive.example.com/old/manual/1", Excluded(SCOPE_ORIGIN, "archive")),
    ]:
        assert decide(setting, url) == expected


def test_overlapping_rules_exclude() -> None:
    """Where neither of two rules lies within the other, and where both are equal, the exclude wins."""
    setting = {
        "include": ["docs.example.com", "h.example/a"],
        "exclude": ["*/logout", "*.example.com/private", "h.example/a"],
    }
    assert decide(setting, "http://docs.example.com/logout") == Excluded(SCOPE_PATH, "*/logout")
    assert decide(setting, "http://docs.example.com/private/") == Excluded(
        SCOPE_PATH, "*.example.com/private"
    )
    assert decide(setting, "http://h.example/a/b") == Excluded(SCOPE_PATH, "h.example/a")


def test_paths_cannot_be_spelled_around_a_rule() -> None:
    """Encoded letters, dot segments, backslashes and another case of the host are the same path."""
    setting = {"exclude": "h.example/private"}
    for url in (
        "http://h.example/%70rivate/x",
        "http://h.example/a/../private",
        "http://H.EXAMPLE\\private\\x",
        "http://h.example./private",
        "http://h.example:8080/private;x",
    ):
        assert decide(setting, url) == Excluded(SCOPE_PATH, "h.example/private")


PLACES = [
    "*",
    "*/a",
    "*.h.example",
    "*.h.example/a",
    "h.example",
    "h.example/a",
    "h.example/a/b",
    "http://h.example",
    "http://h.example/a",
    "www.h.example",
    "www.h.example/a/",
    "h.example:8080/a",
]
entries = st.lists(st.sampled_from(PLACES), max_size=5)
urls = st.builds(
    "{}/{}".format,
    st.sampled_from(
        [
            "http://h.example",
            "https://h.example",
            "http://www.h.example",
            "http://h.example:8080",
            "http://other.example",
        ]
    ),
    st.sampled_from(["", "a", "a/", "a/b", "a/b?c", "ab", "b", "%61"]),
)


@unhurried
@given(entries, entries, st.lists(urls, min_size=1, max_size=6))
def test_decision_is_the_documented_order(
    include: list[str], exclude: list[str], asked: list[str]
) -> None:
    """The rules of the module's head, word by word; asking again, in any order, changes nothing."""
    scope = Scope.from_setting({"include": include, "exclude": exclude})
    for url in [*asked, *asked]:
        resolved = resolve(url)
        assert isinstance(resolved, Resolved)
        origin = split_origin(resolved.origin)
        path = comparison_url(resolved.url)[len(resolved.origin) :]

        def covering(texts: list[str], origin: Any = origin, path: str = path) -> list[Place]:
            places = [Place.parse(text) for text in texts]
            return [p for p in places if p.covers_origin(origin) and p.covers_path(path)]

        included, excluded = covering(include), covering(exclude)
        everyone = [*included, *excluded]
        left = [
            place
            for place in everyone
            if not any(other.is_narrower_than(place) for other in everyone)
        ]
        is_overruled = any(place in excluded for place in left)
        expected = is_overruled or (not left and bool(include))
        assert scope.decide(resolved.url, resolved.origin).excludes == expected


def test_many_origins_are_decided_without_growing() -> None:
    """What is remembered per origin is bounded; decisions stay the same."""
    scope = Scope.from_setting({"include": "*.h.example"})
    for number in range(45_000):
        origin = f"http://a{number}.h.example"
        assert scope.decide(f"{origin}/", origin) == Allowed("*.h.example")
    assert len(scope._by_origin) < 25_000


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ([], "must be a dictionary"),
        ("h.example", "must be a dictionary"),
        ({"includes": []}, "unknown key 'includes'; known are 'include' and 'exclude'"),
        ({"include": 5}, "FRONTIER_SCOPE\\['include'\\] must hold places"),
        ({"include": ["h.example", 5]}, "FRONTIER_SCOPE\\['include'\\]: 5 names no place"),
        ({"exclude": {"x": ["h.example/*"]}}, "FRONTIER_SCOPE\\['exclude'\\]: 'h.example/\\*'"),
        ({"exclude": {5: "h.example"}}, "named 5: a name must be a text"),
        ({"exclude": {"x": 5}}, "must hold places"),
    ],
)
def test_wrong_setting_is_an_error_that_names_the_entry(setting: Any, fault: str) -> None:
    """The error says which entry is wrong and what to write instead."""
    with pytest.raises(ConfigError, match=fault):
        Scope.from_setting(setting)


domains = st.sampled_from(
    ["h.example", "www.h.example", "example", "127.0.0.1", "localhost", "a-b.example", None]
)
hosts = st.sampled_from(
    [
        "h.example",
        "www.h.example",
        "a.www.h.example",
        "nh.example",
        "h.example.org",
        "h.example.",
        "example",
        "127.0.0.1",
        "127.0.0.1.example",
        "localhost",
        "xlocalhost",
        "a-b.example",
    ]
)


@unhurried
@given(st.none() | st.lists(domains.filter(bool), max_size=3), hosts)
def test_allowed_domains_mean_what_scrapy_means(allowed: list[str] | None, host: str) -> None:
    """The decision is that of Scrapy's own offsite middleware."""
    spider: Any = SimpleNamespace(allowed_domains=allowed)
    scrapys: Any = SimpleNamespace()
    regex = OffsiteMiddleware.get_host_regex(scrapys, spider)
    is_on_site = bool(re.search(regex, host))
    assert DomainScope(allowed).decide(host).excludes != is_on_site


def test_offsite_host_is_named() -> None:
    """An excluded host comes with the rule's code and the host, an allowed one with its domain."""
    scope = DomainScope(["h.example", None])
    assert scope.decide("www.h.example") == Allowed("h.example")
    assert scope.decide("other.example") == Excluded(SCOPE_ALLOWED_DOMAINS, "other.example")
    assert DomainScope([]).decide("other.example") is UNRESTRICTED


def test_domains_are_compared_as_hosts() -> None:
    """Case and IDNA make no difference; a single text is one domain, not its letters."""
    scope = DomainScope("Bücher.Example")
    assert scope.domains == {"xn--bcher-kva.example"}
    assert not scope.decide("www.xn--bcher-kva.example").excludes
    assert not DomainScope(["::1"]).decide("[::1]").excludes


def test_entries_that_are_no_hosts_match_nothing() -> None:
    """URLs, ports and paths among the domains are told to the caller, and restrict as in Scrapy."""
    wrong = ["http://h.example", "h.example:80", "h.example/docs", "h example", "", "a@h.example"]
    scope = DomainScope(wrong)
    assert scope.ignored == tuple(wrong)
    assert scope.decide("h.example").excludes
