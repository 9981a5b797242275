"""The public cases of URL identity and link discovery, each with its right value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scrapy.http import HtmlResponse

from scrapy_frontier.identity import Rejection, Resolved, fetch_key, resolve
from scrapy_frontier.linkextractors import LinkExtractor
from scrapy_frontier.responses import RejectedRequest, with_whatwg_links

CASES = {
    case["id"]: case["input"]
    for case in json.loads(
        (Path(__file__).parents[1] / "data" / "cases.json").read_text(encoding="utf-8")
    )
}


def url_of(reference: str, base: str | None = None) -> str:
    resolved = resolve(reference, base)
    assert isinstance(resolved, Resolved)
    return resolved.url


def key_of(path_or_url: str) -> bytes:
    return fetch_key("GET", url_of(path_or_url, "http://example.com/"))


def page(body: str, url: str = "http://example.com/", encoding: str = "utf-8") -> HtmlResponse:
    return with_whatwg_links(HtmlResponse(url, body=body.encode(encoding), encoding=encoding))


def followed(response: HtmlResponse) -> tuple[list[str], list[str]]:
    """The URLs that the extractor finds, and those that `follow` makes of the same hrefs."""
    hrefs = response.css("a::attr(href)").getall()
    requests = [response.follow(href) for href in hrefs]
    kept = [request.url for request in requests if not isinstance(request, RejectedRequest)]
    return [link.url for link in LinkExtractor().extract_links(response)], kept


def test_fc20_empty_segments_are_kept() -> None:
    """RFC 3986, section 5.2.4: a relative reference with // loses no slash."""
    case: Any = CASES["FC20"]
    response = page(
        "".join(f'<a href="{reference}">x</a>' for reference in case["table"]), case["base"]
    )
    expected = list(case["table"].values())
    assert [url_of(reference, case["base"]) for reference in case["table"]] == expected
    assert followed(response) == (expected, expected)
    assert url_of("http%3A//h/x", "http://example.com/r/y") == "http://example.com/r/http%3A//h/x"


def test_fc44_encoded_reserved_characters_are_not_the_raw_ones() -> None:
    """RFC 3986, sections 2.2 and 6.2.2: reserved octets differ from their encoding, others do not."""
    case: Any = CASES["FC44"]
    for first, second in case["pairs_that_must_differ"]:
        assert key_of(first) != key_of(second), (first, second)
    for first, second in case["pairs_that_must_match"]:
        assert key_of(first) == key_of(second), (first, second)


def test_fc47_default_port_and_empty_path_are_one_page() -> None:
    """RFC 3986, section 6.2.3: scheme-based normalisation."""
    case: Any = CASES["FC47"]
    for first, second in case["pairs_equal"]:
        assert key_of(first) == key_of(second), (first, second)


def test_fc48_case_of_path_and_query_counts() -> None:
    """RFC 3986, section 6.2.2.1: only scheme and host are case-insensitive."""
    case: Any = CASES["FC48"]
    for first, second in case["pairs_differ"]:
        assert key_of(first) != key_of(second), (first, second)
    for first, second in case["pairs_equal"]:
        assert key_of(first) == key_of(second), (first, second)


def test_fc50_bad_link_does_not_end_the_callback() -> None:
    """The links beside a javascript: link are followed, and the bad one is reported."""
    case: Any = CASES["FC50"]
    response = page(case["page"])
    expected = ["http://example.com/1", "http://example.com/2"]
    assert followed(response) == (expected, expected)
    rejected = [r.rejection for r in LinkExtractor().extract(response) if r.rejection is not None]
    assert [(r.rule, r.observed) for r in rejected] == [
        ("scheme.unsupported", "javascript:void(0)")
    ]


def test_fc52_query_character_that_the_page_encoding_lacks() -> None:
    """URL Standard, "percent-encode after encoding": the character is sent as &#N;, encoded."""
    case: Any = CASES["FC52"]
    declaration, _, body = case["page"].partition(": ")
    response = page(body, encoding=declaration.partition("=")[2])
    expected = ["http://example.com/list?q=%26%239829%3B&p=2", "http://example.com/ok"]
    assert followed(response) == (expected, expected)


def test_fc54_blanks_and_newlines_in_href() -> None:
    """URL Standard: C0 controls and spaces at the ends, tabs and newlines anywhere, are removed."""
    case: Any = CASES["FC54"]
    for href, expected in case["hrefs"].items():
        written = href.replace("\\n", "\n")
        assert url_of(written, "http://example.com/dir/") == expected
        assert followed(page(f'<a href="{written}">x</a>')) == ([expected], [expected])


def test_fc55_odd_sitemap_entries_cost_only_themselves() -> None:
    """Each `<loc>` is resolved against the sitemap; the one with a bad port is rejected by name."""
    case: Any = CASES["FC55"]
    site = "http://127.0.0.1:8000"
    locations = [
        loc.replace("A/", f"{site}/").replace("127.0.0.1:P", "127.0.0.1:8000")
        for loc in case["sitemap_locs"]
    ]
    results = [resolve(loc, f"{site}/sitemap.xml") for loc in locations]
    assert [r.rule if isinstance(r, Rejection) else r.url for r in results] == [
        f"{site}/s1",
        f"{site}/s2",
        f"{site}/s3",
        "port.malformed",
        f"{site}/s5",
    ]


def test_every_case_of_these_kinds_is_tested_here() -> None:
    """A case that is added to the data needs a test in this file."""
    cases = json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
    wanted = {c["id"] for c in cases if c["kind"] in {"url-identity", "link-discovery"}}
    assert wanted == {name[5:9].upper() for name in globals() if name.startswith("test_fc")}
