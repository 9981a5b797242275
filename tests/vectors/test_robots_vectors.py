"""The robots.txt vectors: matching, choice of the group, fetches, authorities, Crawl-delay.

None of them is argued against. Two are marked as disputed, and are kept: `other-records-04` and
`pct-22` follow the letter of RFC 9309, and each forbids more than its alternative.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from vector_files import load_own

from scrapy_frontier.policy.robots import (
    LIMIT,
    Hop,
    Judge,
    RobotsFetch,
    RobotsPolicy,
    RobotsRecord,
    RobotsState,
    Rules,
    after_fetch,
    classify,
    decide,
    hop_refusal,
    product_token,
    robots_url,
    target_of,
)
from scrapy_frontier.policy.robots.decisions import NO_POLICY, Ruling

VECTORS = load_own("robots_vectors.json")
ORIGIN = "http://site.example"
ROBOTS = f"{ORIGIN}/robots.txt"
NOW = 1_800_000_000.0
TEXT = b"User-agent: *\nDisallow: /p\n"
FAILURES = {
    "dns": "dns",
    "connection refused": "refused",
    "timeout": "timeout",
    "tls": "failed",
    "body cut short": "truncated",
}


@pytest.mark.parametrize("vector", VECTORS["match"], ids=lambda v: v["id"])
def test_matching(vector: dict[str, Any]) -> None:
    """The text allows or forbids the URL to the agent as the vector says."""
    group = Rules.parse(vector["robots"].encode()).for_agent(vector["agent"])
    assert group.decide(target_of(vector["url"])).allowed == vector["allow"]


@pytest.mark.parametrize("vector", VECTORS["header"], ids=lambda v: v["id"])
def test_groups_of_a_header(vector: dict[str, Any]) -> None:
    """A User-Agent header chooses its group by its product token and by no other word."""
    group = Rules.parse(vector["robots"].encode()).for_agent(product_token(vector["header"]))
    assert group.decide(target_of(vector["url"])).allowed == vector["allow"]


@pytest.mark.parametrize("vector", VECTORS["scope"], ids=lambda v: v["url"])
def test_authorities(vector: dict[str, Any]) -> None:
    """A robots.txt holds for its scheme, host and port, however they are spelled."""
    assert (robots_url(vector["url"]) == robots_url(vector["robots_of"])) == vector["applies"]


@pytest.mark.parametrize("vector", VECTORS["crawl_delay"], ids=lambda v: repr(v["value"]))
def test_crawl_delay(vector: dict[str, Any]) -> None:
    """A Crawl-delay is a number of seconds of at least 0; what is none is not there."""
    text = f"User-agent: *\nCrawl-delay: {vector['value']}\nDisallow:\n"
    assert Rules.parse(text.encode()).for_agent("spindle").crawl_delay_s == vector["seconds"]


def fetched(given: dict[str, Any]) -> RobotsFetch:
    """The fetch that a vector describes."""
    if "redirects" in given:
        return redirected(given["redirects"], given.get("final"))
    body = given.get("body", TEXT.decode() if given.get("cached") else "").encode()
    if "size_kib" in given:
        filler = b"# filler\n" * (given["size_kib"] * 1024 // 9)
        body = b"User-agent: *\nDisallow: /early\n" + filler + b"Disallow: /late\n"
    if given.get("charset") == "utf-16":
        body = TEXT.decode().encode("utf-16")
    return RobotsFetch(
        given.get("status"),
        body,
        failure=FAILURES.get(given.get("error", ""), ""),
        cache_control=given.get("cache_control", ""),
    )


def redirected(count: int | str, final: int | None) -> RobotsFetch:
    """Follow redirects for as long as they may be followed."""
    hops: list[Hop] = []
    targets = (
        [f"{ORIGIN}/r", ROBOTS]
        if count == "loop"
        else [f"http://h{number}.example/robots.txt" for number in range(int(count))]
    )
    for target in targets:
        stop = hop_refusal(ROBOTS, hops, target)
        if stop:
            return RobotsFetch(302, hops=tuple(hops), stop=stop)
        hops.append(Hop(302, target))
    return RobotsFetch(final, TEXT if final == 200 else b"", tuple(hops))


def cached(given: dict[str, Any]) -> RobotsRecord:
    """The record that a fetch of `age_h` hours ago has left."""
    record = RobotsRecord(ORIGIN)
    if "unreachable_days" in given:
        before = NOW - given["unreachable_days"] * 86_400
        return apply(record, RobotsFetch(given["status"]), before)
    if "cached" in given:
        fetch = RobotsFetch(200, TEXT, cache_control=given.get("cache_control", ""))
        return apply(record, fetch, NOW - given.get("age_h", 25) * 3600)
    return record


def apply(record: RobotsRecord, fetch: RobotsFetch, now: float) -> RobotsRecord:
    outcome = classify(fetch, has_copy=record.has_copy)
    policy = RobotsPolicy(gives_way=True)
    return after_fetch(record, outcome, now, policy, random.Random(1))


def ruling(record: RobotsRecord, path: str) -> Ruling:
    return decide(record, "spindle", f"{ORIGIN}{path}", NO_POLICY, NOW).ruling


@pytest.mark.parametrize("vector", VECTORS["fetch"], ids=lambda v: v["id"])
def test_fetches(vector: dict[str, Any]) -> None:
    """A fetch, and what was known before it, lead to the decision of the vector."""
    given, decision = vector["given"], vector["decision"]
    before = cached(given)
    if decision == "refetch":
        assert before.needs_fetch(NOW)
        assert ruling(before, "/q") is Ruling.WAITING
        return
    if decision == "rules without fetch":
        assert not before.needs_fetch(NOW)
        assert ruling(before, "/p") is Ruling.FORBIDDEN
        return
    record = apply(before, fetched(given), NOW)
    if decision.startswith("rules"):
        path = "/early" if "size_kib" in given else "/p"
        assert record.state is RobotsState.RULES
        assert ruling(record, path) is Ruling.FORBIDDEN
        assert ruling(record, "/q") is Ruling.ALLOWED
    elif decision == "disallow-all":
        assert record.state is RobotsState.DISALLOW_ALL
        assert ruling(record, "/q") is Ruling.WAITING
    elif given.get("charset") == "utf-16":
        assert ruling(record, "/p") is Ruling.FORBIDDEN  # we bridge encodings
    else:
        assert decision.startswith("allow-all")
        assert record.state is RobotsState.ALLOW_ALL
        assert ruling(record, "/p") is Ruling.ALLOWED


def test_the_limit_of_size() -> None:
    """Of 600 KiB the first 500 count, up to a line end; the record says that there was more."""
    vector = next(v for v in VECTORS["fetch"] if "size_kib" in v["given"])
    record = apply(RobotsRecord(ORIGIN), fetched(vector["given"]), NOW)
    assert LIMIT - 9 < len(record.text) <= LIMIT
    assert record.text.endswith(b"# filler\n")
    assert record.is_cut
    assert Judge(record).decide("spindle", f"{ORIGIN}/late", NOW).ruling is Ruling.ALLOWED


def test_rules_of_a_redirect_hold_for_the_first_authority() -> None:
    """Wherever the redirects led: the rules are those of the origin that was asked (2.3.1.2)."""
    record = apply(RobotsRecord(ORIGIN), redirected(5, 200), NOW)
    assert (record.origin, len(record.hops)) == (ORIGIN, 5)
    assert ruling(record, "/p") is Ruling.FORBIDDEN
