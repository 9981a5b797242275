"""The link inventory: every URL that the HTML of a page speaks of."""

from __future__ import annotations

import pytest
from scrapy.http import HtmlResponse, JsonResponse, TextResponse, XmlResponse

from scrapy_frontier.identity import SCHEME_UNSUPPORTED
from scrapy_frontier.inventory import inventory

URL = "http://site.example/dir/page.html"


def page(body: str) -> HtmlResponse:
    return HtmlResponse(URL, body=body.encode(), encoding="utf-8")


def found(body: str) -> list[tuple[str, str, str | None]]:
    return [(r.tag, r.attribute, r.url) for r in inventory(page(body))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "<a href=x ping='/p /q'>",
            [("a", "href", "dir/x"), ("a", "ping", "p"), ("a", "ping", "q")],
        ),
        ("<map><area href=/x></map>", [("area", "href", "x")]),
        ("<link rel=stylesheet href=/x.css>", [("link", "href", "x.css")]),
        (
            "<link imagesrcset='/a 1x, /b 2x'>",
            [("link", "imagesrcset", "a"), ("link", "imagesrcset", "b")],
        ),
        (
            "<img src=/a srcset='/b 1x, /c 2x' longdesc=/d>",
            [
                ("img", "src", "a"),
                ("img", "srcset", "b"),
                ("img", "srcset", "c"),
                ("img", "longdesc", "d"),
            ],
        ),
        ("<script src=/x.js></script>", [("script", "src", "x.js")]),
        ("<iframe src=/x></iframe>", [("iframe", "src", "x")]),
        ("<frameset><frame src=/x></frameset>", [("frame", "src", "x")]),
        (
            "<video src=/a poster=/b><source src=/c><track src=/d></video>",
            [
                ("video", "src", "a"),
                ("video", "poster", "b"),
                ("source", "src", "c"),
                ("track", "src", "d"),
            ],
        ),
        ("<audio src=/x></audio>", [("audio", "src", "x")]),
        ("<embed src=/x>", [("embed", "src", "x")]),
        ("<object data=/x></object>", [("object", "data", "x")]),
        (
            "<form action=/a><button formaction=/b>b</button><input type=image src=/c></form>",
            [("form", "action", "a"), ("button", "formaction", "b"), ("input", "src", "c")],
        ),
        ("<form action=''>", [("form", "action", "dir/page.html")]),
        ("<form>", []),
        ("<a href=''>", [("a", "href", "dir/page.html")]),
        ("<img src='' srcset=' '>", []),
        ("<q cite=/x>q</q>", [("q", "cite", "x")]),
        ("<body background=/x>", [("body", "background", "x")]),
        ("<meta http-equiv=Refresh content='5; url=/x'>", [("meta", "content", "x")]),
        ("<meta http-equiv=refresh content=5>", []),
        ("<meta http-equiv=refresh>", []),
        ("<meta name=refresh content='5; url=/x'>", []),
        ("<svg><use xlink:href=/x /></svg>", [("use", "xlink:href", "x")]),
        ("<base href=/base/><a href=x>", [("a", "href", "base/x")]),
        ("<!-- <a href=/x> --><p title=/y>text /z</p>", []),
        ("<noscript><img src=/x></noscript>", [("img", "src", "x")]),
        ("", []),
    ],
)
def test_attributes_that_hold_urls(body: str, expected: list[tuple[str, str, str]]) -> None:
    """Each URL-bearing attribute of HTML is read for what it holds: one URL, several, or a refresh."""
    wanted = [(tag, attribute, f"http://site.example/{path}") for tag, attribute, path in expected]
    assert found(body) == wanted


def test_references_that_cannot_be_requested_are_listed() -> None:
    """A rejected reference stands in its place, with its rule."""
    first, second, third = inventory(
        page("<a href=/a>a</a><img src=data:image/png;base64,AA><a href=/b>b</a>")
    )
    assert (first.url, third.url) == ("http://site.example/a", "http://site.example/b")
    assert second.rejection is not None
    assert second.rejection.rule == SCHEME_UNSUPPORTED


def test_text_is_that_of_the_anchor() -> None:
    """An anchor's text is kept, that of a form or of a table is not: it would be half the page."""
    form, anchor = inventory(page("<form action=/f>long <a href=/a rel=next>the  text</a></form>"))
    assert (form.text, form.observed) == ("", "/f")
    assert (anchor.text, anchor.rel) == ("the text", "next")


@pytest.mark.parametrize(
    "response",
    [
        JsonResponse(URL, body=b'{"a": "<a href=/x>"}'),
        XmlResponse(URL, body=b"<a href='/x'/>"),
        TextResponse(URL, body=b'["<a href=/x>"]'),
    ],
)
def test_documents_that_are_no_html_have_none(response: TextResponse) -> None:
    """The inventory is one of HTML pages."""
    assert inventory(response) == []
