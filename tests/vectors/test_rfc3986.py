"""The vectors of RFC 3986: reference resolution (5.4), dot segments (5.2.4), normalisation (6)."""

from __future__ import annotations

from typing import Any

import pytest
from vector_files import load_own

from scrapy_frontier.identity import (
    SCHEME_UNSUPPORTED,
    USERINFO,
    Rejection,
    Resolved,
    fetch_key,
    join,
    resolve,
)

VECTORS = load_own("rfc3986_vectors.json")

# Pairs of which Scrapy can only send one: an empty query never reaches the wire.
ONE_ON_THE_WIRE = {("http://h.example/?", "http://h.example/")}


@pytest.mark.parametrize("vector", VECTORS["resolution"], ids=lambda v: v["id"])
def test_reference_resolution(vector: dict[str, Any]) -> None:
    """References of section 5.4 resolve as the RFC says, or as the URL Standard where they differ."""
    expected = vector["whatwg"] or vector["expected"]
    assert join(vector["reference"], VECTORS["base"]) == expected
    result = resolve(vector["reference"], VECTORS["base"])
    if expected.startswith("http:"):
        assert isinstance(result, Resolved)
        assert result.href == expected
    else:
        assert isinstance(result, Rejection)
        assert result.rule == SCHEME_UNSUPPORTED


@pytest.mark.parametrize("vector", VECTORS["dot_segments"], ids=lambda v: v["input"])
def test_dot_segments(vector: dict[str, Any]) -> None:
    """Dot segments are removed; their percent-encoded forms are dot segments too (6.2.2.2)."""
    path = vector["input"] if vector["input"].startswith("/") else f"/{vector['input']}"
    expected = vector["expected"] if path == vector["input"] else f"/{vector['expected']}"
    if "%2E" in path:
        expected = "/b"
    result = resolve(f"http://h.example{path}")
    assert isinstance(result, Resolved)
    assert result.url == f"http://h.example{expected}"


def http_pairs() -> list[Any]:
    return [v for v in VECTORS["normalization"] if v["a"].lower().startswith(("http:", "https:"))]


@pytest.mark.parametrize("vector", http_pairs(), ids=lambda v: f"{v['a']} {v['b']}")
def test_normalisation(vector: dict[str, Any]) -> None:
    """Two URLs have one fetch key exactly if section 6 calls them equivalent.

    Where the RFC leaves it open the two differ in the fragment alone: one request, so one key.
    """
    first, second = resolve(vector["a"]), resolve(vector["b"])
    if "@" in vector["a"]:
        assert isinstance(first, Rejection)
        assert first.rule == USERINFO
        return
    assert isinstance(first, Resolved)
    assert isinstance(second, Resolved)
    is_one = fetch_key("GET", first.url) == fetch_key("GET", second.url)
    is_lost = (vector["a"], vector["b"]) in ONE_ON_THE_WIRE
    assert is_one == (vector["equivalent"] is not False or is_lost)
    if vector["equivalent"] is None:
        assert first.url == second.url


def test_vectors_of_other_schemes_are_rejected() -> None:
    """What the RFC says of other schemes has no fetch key here."""
    others = [v for v in VECTORS["normalization"] if v not in http_pairs()]
    assert others
    for vector in others:
        for url in (vector["a"], vector["b"]):
            result = resolve(url)
            assert isinstance(result, Rejection)
            assert result.rule == SCHEME_UNSUPPORTED
