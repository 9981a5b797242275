"""Fetch keys and origins."""

from __future__ import annotations

import itertools

import pytest
from ada_url import URL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_frontier.errors import IdentityError
from scrapy_frontier.identity import (
    KEY_SIZE,
    PARTITIONS,
    Origin,
    Resolved,
    comparison_url,
    fetch_key,
    host_of,
    origin_of,
    partition,
    resolve,
    split_origin,
)

# The machine may be busy; how long an example takes is no promise.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

tricky = st.text(st.sampled_from("%0123456789abcdefABCDEFgz~/?&=[]"), max_size=30)
paths = tricky.map("http://h.example/{}".format)


def key(url: str) -> bytes:
    resolved = resolve(url)
    assert isinstance(resolved, Resolved)
    return fetch_key("GET", resolved.url)


@unhurried
@given(paths)
def test_comparison_is_idempotent(url: str) -> None:
    """Comparing what was made for comparing changes nothing, also with stray percent signs."""
    once = comparison_url(url)
    assert comparison_url(once) == once
    assert fetch_key("GET", once) == fetch_key("GET", url)


@unhurried
@given(paths)
def test_comparison_keeps_the_request_url_a_url(url: str) -> None:
    """A comparison URL is the comparison URL of what it resolves to: nothing new is made of it."""
    resolved = resolve(url)
    assert isinstance(resolved, Resolved)
    again = resolve(comparison_url(resolved.url))
    assert isinstance(again, Resolved)
    assert comparison_url(again.url) == comparison_url(resolved.url)


@unhurried
@given(st.text(st.sampled_from("xy/?&=+;,:@![]%"), max_size=20))
def test_urls_without_percent_encodings_of_unreserved_octets_compare_as_they_are(text: str) -> None:
    """Reserved characters, their order, their repetition and their encoding all count."""
    url = f"http://h.example/{text}"
    assert comparison_url(url) == url


@pytest.mark.parametrize("octet", range(0x100))
def test_exactly_the_unreserved_octets_are_decoded(octet: int) -> None:
    """RFC 3986, section 2.3: letters, digits and `-._~`; all else stays encoded, in upper case."""
    is_unreserved = chr(octet).isalnum() if octet < 0x80 else False
    is_unreserved = is_unreserved or chr(octet) in "-._~"
    expected = chr(octet) if is_unreserved else f"%{octet:02X}"
    assert comparison_url(f"http://h/a%{octet:02x}b") == f"http://h/a{expected}b"


@pytest.mark.parametrize(
    ("path", "compared"),
    [
        ("/%%41", "/%%41"),
        ("/%4%31", "/%4%31"),
        ("/%%34%31", "/%%341"),
        ("/%25%34%31", "/%2541"),
        ("/%%9a", "/%%9A"),
        ("/%%7e", "/%~"),
        ("/%2541", "/%2541"),
        ("/%", "/%"),
        ("/%4", "/%4"),
        ("/%zz%41", "/%zzA"),
    ],
)
def test_no_percent_encoding_comes_into_being(path: str, compared: str) -> None:
    """Decoding makes no percent-encoding that was not there: `%%41` does not become `%A`."""
    assert comparison_url(f"http://h{path}") == f"http://h{compared}"


def test_default_spelling_variants_share_a_key() -> None:
    """Default port, empty path, dot segments, host case and IPv6 spelling are one identity."""
    for first, second in [
        ("http://h.example", "http://h.example:80/"),
        ("https://h.example/", "https://H.Example:443"),
        ("http://h.example/a/../b", "http://h.example/b"),
        ("http://[::1]/", "http://[0:0:0:0:0:0:0:1]/"),
        ("http://h.example/[1]", "http://h.example/%5b1%5D"),
        ("http://h.example/a#x", "http://h.example/a#y"),
    ]:
        assert key(first) == key(second)


def test_what_no_standard_makes_equal_stays_apart() -> None:
    """No parameter is dropped or sorted, no slash merged, no case folded, no host guessed."""
    urls = [
        "http://h.example/a",
        "http://h.example/A",
        "http://h.example/a/",
        "http://h.example//a",
        "http://h.example/a?",
        "http://h.example/a?x=1&y=2",
        "http://h.example/a?y=2&x=1",
        "http://h.example/a?x=1&x=1&y=2",
        "http://h.example/a?x",
        "http://h.example/a?x=",
        "http://h.example/a?x=a+b",
        "http://h.example/a?x=a%20b",
        "http://h.example/a?utm_source=x",
        "http://h.example./a",
        "http://www.h.example/a",
        "https://h.example/a",
        "http://h.example:8080/a",
    ]
    keys = {key(url) for url in urls}
    assert len(keys) == len(urls) - 1  # "/a?" is sent as "/a"


def test_method_body_and_role_are_part_of_the_key() -> None:
    """A form sent twice with other data is two identities; so are a page and its robots.txt role."""
    url = "http://h.example/"
    keys = [
        fetch_key(method, url, body, role=role)
        for method, body, role in itertools.product(
            ["GET", "HEAD", "POST"], [b"", b"a=1", b"a=2"], ["page", "robots"]
        )
    ]
    assert len(set(keys)) == len(keys)
    assert {len(k) for k in keys} == {KEY_SIZE}
    assert fetch_key("get", url) == fetch_key("GET", url)


def test_keys_are_the_same_for_ever() -> None:
    """Stores hold these keys: another value here would be another normaliser version."""
    assert fetch_key("GET", "http://h.example/%7ea?b=%e9").hex() == KNOWN_KEY
    assert fetch_key("POST", "http://h.example/", b"a=1").hex() == KNOWN_POST_KEY
    assert partition("http://h.example") == KNOWN_PARTITION


KNOWN_KEY = "cf7f84d6d8d172bc95ec4067b9f8dae7"
KNOWN_POST_KEY = "2ea907a7d697d16a8d37e8e060ecba28"
KNOWN_PARTITION = 22


@pytest.mark.parametrize(
    ("origin", "parts"),
    [
        ("http://h.example", Origin("http", "h.example", 80)),
        ("https://h.example", Origin("https", "h.example", 443)),
        ("http://h.example.:8080", Origin("http", "h.example.", 8080)),
        ("http://[::1]", Origin("http", "[::1]", 80)),
        ("https://[::1]:8443", Origin("https", "[::1]", 8443)),
        ("http://h.example:81/path:1", Origin("http", "h.example", 81)),
    ],
)
def test_parts_of_an_origin(origin: str, parts: Origin) -> None:
    """An origin is scheme, host and port, the default port filled in, a trailing dot kept."""
    assert split_origin(origin) == parts
    assert host_of(origin) == parts.host


@unhurried
@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["h.example", "h.example.", "127.0.0.1", "[::1]", "xn--fa-hia.de"]),
    st.integers(0, 65535),
)
def test_origin_is_the_url_standards(scheme: str, host: str, port: int) -> None:
    """The origin of a request URL is what the URL Standard calls its origin."""
    resolved = resolve(f"{scheme}://{host}:{port}/p/q?r")
    assert isinstance(resolved, Resolved)
    assert resolved.origin == URL(resolved.url).origin == origin_of(resolved.url)
    assert split_origin(resolved.origin) == Origin(scheme, host, port)
    assert 0 <= partition(resolved.origin) < PARTITIONS


@pytest.mark.parametrize("text", ["", "h.example", "ftp://h.example", "http://h.example:x"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    """Anything else than an origin is an error that shows it."""
    with pytest.raises(IdentityError, match="is not an origin"):
        split_origin(text)


@pytest.mark.parametrize("text", ["", "/a", "http://h.example", "mailto:a@b"])
def test_what_is_no_request_url_has_no_origin(text: str) -> None:
    """`origin_of` is for request URLs, which always have a path."""
    with pytest.raises(IdentityError, match="is not a request URL"):
        origin_of(text)


def test_partitions_are_all_used_and_even() -> None:
    """Origins spread over all partitions, none with much more than its share."""
    counts = [0] * PARTITIONS
    for number in range(PARTITIONS * 40):
        counts[partition(f"http://h{number}.example")] += 1
    assert min(counts) > 10
    assert max(counts) < 100
