"""The WHATWG vectors, whole files, from the reference to the request URL and the admission."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from ada_url import normalize_url
from scrapy import Request
from vector_files import load_own, load_wpt

from scrapy_frontier.identity import (
    PORT_MALFORMED,
    SCHEME_UNSUPPORTED,
    URL_MALFORMED,
    USERINFO,
    Rejection,
    Resolved,
    join,
    normalise_request_url,
    resolve,
)

# What Scrapy writes otherwise than the URL Standard: seven characters, and an empty query is lost.
FOLDED_PATH = str.maketrans({"[": "%5B", "]": "%5D", "|": "%7C"})
FOLDED_QUERY = str.maketrans(
    {**FOLDED_PATH, **{ord(c): f"%{ord(c):02X}" for c in ("\\", "^", "`", "{", "}")}}
)

# The failures of urltestdata.json that are of the port; those of other schemes never get so far.
MALFORMED_PORTS = {
    "http://f:b/c",
    "http://f: /c",
    "http://f:fifty-two/c",
    "http://f:999999/c",
    "http://f: 21 / b ? d # e ",
    "http://[1::2]:3:4",
    "http://2001::1",
    "http://2001::1]",
    "http://2001::1]:80",
    "http://foo:-80/",
    "http://f:4294967377/c",
    "http://f:18446744073709551697/c",
    "http://f:340282366920938463463374607431768211537/c",
}


def expected_outcome(case: dict[str, Any]) -> str | tuple[str, str, str]:
    """The rule that rejects a case of urltestdata.json, or its request URL, fragment and origin."""
    if case.get("failure"):
        scheme = re.match(r"[\x00-\x20]*([a-zA-Z][a-zA-Z0-9+.-]*):", case["input"])
        if scheme is not None and scheme[1].lower() not in {"http", "https"}:
            return SCHEME_UNSUPPORTED
        return PORT_MALFORMED if case["input"] in MALFORMED_PORTS else URL_MALFORMED
    if case["protocol"] not in {"http:", "https:"}:
        return SCHEME_UNSUPPORTED
    if case["username"] or case["password"]:
        return USERINFO
    origin = f"{case['protocol']}//{case['host']}"
    path = case["pathname"].translate(FOLDED_PATH)
    query = case["search"].translate(FOLDED_QUERY)
    return f"{origin}{path}{query}", case["hash"].removeprefix("#"), origin


def outcome_of(result: Resolved | Rejection) -> str | tuple[str, str, str]:
    if isinstance(result, Rejection):
        return result.rule
    return result.url, result.fragment, result.origin


def test_every_url_vector_has_its_request_url_or_its_named_rejection() -> None:
    """Each case of urltestdata.json gives the expected request URL, or is rejected by the rule."""
    cases = load_wpt("urltestdata.json")
    assert len(cases) > 800
    wrong = [
        (case["input"], case["base"], got)
        for case in cases
        if (got := outcome_of(resolve(case["input"], case["base"]))) != expected_outcome(case)
    ]
    assert wrong == []


def test_every_url_vector_joins_to_its_href() -> None:
    """Before admission, `join` is the URL Standard's own result for every scheme."""
    wrong = [
        (case["input"], case["base"], got)
        for case in load_wpt("urltestdata.json")
        if (got := join(case["input"], case["base"])) != case.get("href")
    ]
    assert wrong == []


def test_request_urls_of_all_vectors_are_fixpoints() -> None:
    """Neither the URL parser nor scrapy.Request changes a request URL any more."""
    for case in load_wpt("urltestdata.json"):
        result = resolve(case["input"], case["base"])
        if isinstance(result, Resolved):
            assert Request(result.url).url == normalize_url(result.url) == result.url
            assert normalise_request_url(result.url) == Resolved(result.url, "", result.origin)


@pytest.mark.parametrize("name", ["toascii.json", "IdnaTestV2.json"])
def test_every_host_vector_is_its_ascii_form_or_malformed(name: str) -> None:
    """Hosts become what the URL Standard's "domain to ASCII" says; those it refuses are rejected."""
    cases = [case for case in load_wpt(name) if case["input"]]
    assert len(cases) > 80
    wrong = []
    for case in cases:
        output = case["output"]
        origin = f"https://{output}"
        expected = URL_MALFORMED if output is None else (f"{origin}/x", "", origin)
        got = outcome_of(resolve(f"https://{case['input']}/x"))
        if got != expected:
            wrong.append((case["input"], got))
    assert wrong == []


def test_every_percent_encoding_vector_is_applied_to_the_query() -> None:
    """A query is encoded in the document's encoding, then folded as Scrapy does."""
    wrong = []
    for case in load_wpt("percent-encoding.json"):
        for encoding, output in case["output"].items():
            result = resolve(f"?{case['input']}", "http://site.example/", encoding)
            expected = f"http://site.example/?{output.translate(FOLDED_QUERY)}"
            if not isinstance(result, Resolved) or result.url != expected:
                wrong.append((case["input"], encoding, result))
    assert wrong == []


@pytest.mark.parametrize(
    "vector", load_own("url_vectors.json")["vectors"], ids=lambda v: v["about"]
)
def test_own_vector(vector: dict[str, Any]) -> None:
    """Each vector of our own gives its request URL and fragment, or its rejection."""
    result = resolve(vector["reference"], vector["base"], vector.get("encoding", "utf-8"))
    if isinstance(result, Rejection):
        assert result.rule == vector.get("rejection")
    else:
        assert (result.url, result.fragment) == (vector["url"], vector.get("fragment", ""))
        assert Request(result.url).url == normalize_url(result.url) == result.url


def own_references() -> list[tuple[str, str | None]]:
    return [(v["reference"], v["base"]) for v in load_own("url_vectors.json")["vectors"]]


def wpt_references() -> list[tuple[str, str | None]]:
    return [(case["input"], case["base"]) for case in load_wpt("urltestdata.json")]


@pytest.mark.parametrize("references", [own_references, wpt_references])
def test_second_parser_agrees(references: Callable[[], list[tuple[str, str | None]]]) -> None:
    """A second, independent WHATWG parser resolves every vector to the same URL."""
    upa_url = pytest.importorskip("upa_url", reason="upa-url is in the extra for tests")
    wrong = []
    for reference, base in references():
        if any("\ud800" <= character <= "\udfff" for character in reference):
            continue  # it takes no lone surrogates
        try:
            href = upa_url.URL(*([reference] if base is None else [reference, base])).href
        except RuntimeError:
            href = None
        if href != join(reference, base):
            wrong.append((reference, base, href))
    assert wrong == []
