"""Places: how settings name a part of the web."""

from __future__ import annotations

import pytest

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import Place, Resolved, comparison_url, resolve, split_origin


def covers(place: str, url: str) -> bool:
    resolved = resolve(url)
    assert isinstance(resolved, Resolved)
    parsed = Place.parse(place)
    path = comparison_url(resolved.url)[len(resolved.origin) :]
    return parsed.covers_origin(split_origin(resolved.origin)) and parsed.covers_path(path)


@pytest.mark.parametrize(
    ("place", "inside", "outside"),
    [
        (
            "h.example",
            ["http://h.example/", "https://h.example:8443/a?b", "http://H.EXAMPLE./"],
            ["http://www.h.example/", "http://nh.example/", "http://h.example.org/", "http://h/"],
        ),
        (
            "*.h.example",
            ["http://h.example/", "http://www.h.example/", "https://a.b.h.example:81/"],
            ["http://nh.example/", "http://www.nh.example/", "http://h.example.org/"],
        ),
        ("*", ["http://h.example/", "https://127.0.0.1:81/", "http://[::1]/a"], []),
        (
            "https://h.example",
            ["https://h.example/", "https://h.example:443/a"],
            ["http://h.example/", "https://h.example:8443/", "https://www.h.example/"],
        ),
        (
            "h.example:8080",
            ["http://h.example:8080/", "https://h.example:8080/"],
            ["http://h.example/", "http://h.example:80/"],
        ),
        ("h.example:80", ["http://h.example/", "https://h.example:80/"], ["https://h.example/"]),
        ("https://*", ["https://h.example/"], ["http://h.example/"]),
        ("*:8080/a", ["http://h.example:8080/a"], ["http://h.example/a"]),
        ("[::1]:81", ["http://[0:0::1]:81/"], ["http://[::1]/"]),
        ("Bücher.example", ["http://xn--bcher-kva.example/"], ["http://bucher.example/"]),
        ("127.1", ["http://127.0.0.1/"], ["http://127.0.0.2/"]),
        (
            "h.example/docs",
            [
                f"http://h.example{path}"
                for path in ("/docs", "/docs/", "/docs/a/b", "/docs?a", "/docs;v=1", "/d%6Fcs")
            ],
            [
                f"http://h.example{path}"
                for path in ("/docsearch", "/doc", "/Docs", "/a/docs", "//docs", "/?/docs")
            ],
        ),
        (
            "h.example/docs/",
            ["http://h.example/docs/", "http://h.example/docs/a", "http://h.example/docs/?a"],
            ["http://h.example/docs", "http://h.example/docs?a"],
        ),
        ("h.example/", ["http://h.example/", "http://h.example/a"], ["http://other.example/"]),
        (
            "*/search",
            ["http://h.example/search?q", "https://other.example/search/a"],
            ["http://h.example/a/search"],
        ),
        ("h.example/a/../%7eb", ["http://h.example/~b"], ["http://h.example/a"]),
        ("h.example/é", ["http://h.example/%C3%A9/x"], ["http://h.example/e"]),
        ("h.example/[1]", ["http://h.example/[1]", "http://h.example/%5b1%5d"], []),
        ("h.example/a%2Fb", ["http://h.example/a%2fb"], ["http://h.example/a/b"]),
    ],
)
def test_place_covers(place: str, inside: list[str], outside: list[str]) -> None:
    """A place covers its host, port, scheme and path up to a boundary, and nothing that looks alike."""
    assert [url for url in inside if not covers(place, url)] == []
    assert [url for url in outside if covers(place, url)] == []


def test_narrower_means_wholly_within() -> None:
    """One place is narrower than another if the other covers all of it, and more."""
    widest_first = [
        "*",
        "*.h.example",
        "*.a.h.example",
        "a.h.example",
        "a.h.example:443",
        "https://a.h.example",
        "https://a.h.example/docs",
        "https://a.h.example/docs/",
        "https://a.h.example/docs/x",
    ]
    places = [Place.parse(text) for text in widest_first]
    for i, outer in enumerate(places):
        for j, inner in enumerate(places):
            assert inner.is_narrower_than(outer) == (i < j)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("h.example", "*/docs"),
        ("*.h.example/docs", "www.h.example"),
        ("http://h.example", "h.example:443/docs"),
        ("h.example/a", "h.example/b"),
        ("h.example/doc", "h.example/docs"),
        ("h.example", "nh.example"),
        ("h.example", "H.example/"),
        ("h.example:80", "https://h.example"),
    ],
)
def test_places_of_which_none_is_narrower(first: str, second: str) -> None:
    """Places that only overlap, are apart, or are the same do not outrank each other."""
    one, other = Place.parse(first), Place.parse(second)
    assert not one.is_narrower_than(other)
    assert not other.is_narrower_than(one)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "names no place"),
        ("  ", "names no place"),
        (None, "names no place"),
        (5, "names no place"),
        ("/docs", r"has no host.*'\*/docs'"),
        ("https:///docs", "has no host"),
        ("ftp://h.example", "write http:// or https://"),
        ("h.example/a?b", "leave out the query"),
        ("h.example/#a", "leave it out"),
        ("user@h.example", "leave out the credentials"),
        ("h.example\\a", "write /"),
        ("h.example/*.pdf", "it is a prefix"),
        ("*.127.0.0.1", "has no subdomains"),
        ("*.[::1]", "has no subdomains"),
        ("a.*.example", "is no place"),
        ("*example.org", "is no place"),
        ("h example", "is no place"),
        ("h.example:port", "is no place"),
        ("h.example:99999", "is no place"),
        ("[::1", "is no place"),
    ],
)
def test_wrong_place_is_an_error_with_its_remedy(text: str, fault: str) -> None:
    """What cannot be meant is refused when the setting is read, with what to write instead."""
    with pytest.raises(ConfigError, match=fault):
        Place.parse(text)
