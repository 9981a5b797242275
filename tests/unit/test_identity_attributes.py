"""URLs inside attribute values: srcset, lists of URLs, refresh."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_frontier.identity.attributes import refresh_target, split_srcset, split_tokens

# The machine may be busy; how long an example takes is no promise.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("value", "urls"),
    [
        ("", []),
        (" , ,", []),
        ("a.png", ["a.png"]),
        ("a.png, b.png 2x", ["a.png", "b.png"]),
        ("a.png 1x,b.png 2x", ["a.png", "b.png"]),
        ("\n a.png 100w,\n b.png 200w \n", ["a.png", "b.png"]),
        ("a,b.png 1x, c.png", ["a,b.png", "c.png"]),
        ("a.png,b.png", ["a.png,b.png"]),
        ("a.png,, b.png", ["a.png", "b.png"]),
        ("a.png (1x, 2x), b.png", ["a.png", "b.png"]),
        ("data:image/png;base64,AAAA 1x, b.png", ["data:image/png;base64,AAAA", "b.png"]),
        ("a.png (1x, b.png", ["a.png"]),
    ],
)
def test_srcset(value: str, urls: list[str]) -> None:
    """The URLs of a srcset as the HTML Standard splits it: by blanks and trailing commas."""
    assert split_srcset(value) == urls


@pytest.mark.parametrize(
    ("content", "url"),
    [
        ("5; url=/next", "/next"),
        ("0;URL='/next'", "/next"),
        ('0;url="/next" ', "/next"),
        ("0, /next", "/next"),
        ("0 /next", "/next"),
        (" 5.5 ; Url = /next", "/next"),
        (".5; url=/next", "/next"),
        ("0; url='/a\"b", '/a"b'),
        ("0; urls=/next", "urls=/next"),
        ("0; '/next' x", "/next"),
        ("5", None),
        ("5;", None),
        ("5; url=", None),
        ("5; url=''", None),
        ("url=/next", None),
        ("5x; url=/next", None),
        ("-1; url=/next", None),
        ("", None),
    ],
)
def test_refresh(content: str, url: str | None) -> None:
    """The URL of a refresh as the HTML Standard reads it; a time alone leads nowhere."""
    assert refresh_target(content) == url


def test_tokens() -> None:
    """A list of URLs is parted by any ASCII whitespace, and by nothing else."""
    assert split_tokens(" /a\t/b\n\f/c,/d\u00a0e ") == ["/a", "/b", "/c,/d\u00a0e"]


@unhurried
@given(st.text())
def test_no_text_makes_them_raise(text: str) -> None:
    """Attribute values are whatever a page holds."""
    for url in (*split_srcset(text), *split_tokens(text)):
        assert url
        assert url in text
    assert (refresh_target(text) or "") in text
