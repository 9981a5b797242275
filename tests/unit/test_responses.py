"""Responses with links by the URL Standard."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import HtmlResponse, JsonRequest, JsonResponse, Response, TextResponse, XmlResponse
from scrapy.link import Link
from scrapy.utils import response as response_utils

from scrapy_frontier.identity import (
    PORT_MALFORMED,
    SCHEME_UNSUPPORTED,
    URL_MALFORMED,
    USERINFO,
    Reference,
)
from scrapy_frontier.linkextractors import LinkExtractor
from scrapy_frontier.observations import observed_reference
from scrapy_frontier.responses import REJECTED_URL, RejectedRequest, with_whatwg_links

URL = "http://site.example/dir/page.html?x=1"

PAGE = """<html><head><title>t</title></head><body>
<a href="/1" rel="nofollow">one</a><a href="javascript:void(0)">j</a><a href=" a//b#f ">two</a>
<a>none</a><link href="/style.css"><img src="/i.png"><b>bold</b></body></html>"""


def page(body: str = PAGE, encoding: str = "utf-8", url: str = URL) -> HtmlResponse:
    response = HtmlResponse(url, body=body.encode(encoding, "xmlcharrefreplace"), encoding=encoding)
    return with_whatwg_links(response)


def reference_of(request: Request) -> Reference:
    reference = observed_reference(request)
    assert reference is not None
    return reference


class Marked(HtmlResponse):
    """A response class of a project, with attributes and a method of its own."""

    attributes = (*HtmlResponse.attributes, "mark")

    def __init__(self, *args: Any, mark: str = "", **kwargs: Any) -> None:
        self.mark = mark
        super().__init__(*args, **kwargs)

    def follow(self, *args: Any, **kwargs: Any) -> Request:
        return super().follow(*args, **kwargs).replace(priority=7)


class Sealed(HtmlResponse):
    """A response class that allows no subclass."""

    def __init_subclass__(cls) -> None:
        raise TypeError("sealed")


@pytest.mark.parametrize(
    "response_class", [Response, TextResponse, HtmlResponse, XmlResponse, JsonResponse, Marked]
)
def test_response_stays_what_it_is(response_class: type[Response]) -> None:
    """It is the same object, an instance of its class, and its copies resolve in the same way."""
    response = response_class(URL, body=b"<a href='a//b'/>", status=203)
    changed = with_whatwg_links(response)
    assert changed is response
    assert with_whatwg_links(changed) is response
    assert isinstance(response, response_class)
    assert type(response).__name__ == response_class.__name__
    for copy in (response, response.copy(), response.replace(status=200)):
        assert isinstance(copy, response_class)
        assert copy.urljoin("a//b") == "http://site.example/dir/a//b"
    assert repr(response) == f"<203 {URL}>"
    assert type(response.replace(cls=response_class)) is response_class


def test_class_of_a_project_keeps_its_own_ways() -> None:
    """Attributes, `replace` and an overridden `follow` of a subclass keep working."""
    response = with_whatwg_links(Marked(URL, body=b"", mark="m"))
    assert response.replace(status=201).mark == "m"
    request = response.follow("a//b")
    assert (request.url, request.priority) == ("http://site.example/dir/a//b", 7)


def test_class_without_subclasses_is_left_alone() -> None:
    """A response whose class cannot be extended stays as it is."""
    response = Sealed(URL, body=b"")
    assert with_whatwg_links(response) is response
    assert type(response) is Sealed


def test_stored_form_names_the_original_class() -> None:
    """What an HTTP cache stores of a response is read back as its own class."""
    response = page()
    if not hasattr(response, "to_dict"):
        pytest.skip("this Scrapy has no Response.to_dict()")
    back = response_utils.response_from_dict(response.to_dict())
    assert type(back) is HtmlResponse
    assert (back.url, back.body) == (response.url, response.body)


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("a//b", "http://site.example/dir/a//b"),
        ("..//x", "http://site.example//x"),
        ("\\\\other.example\\p", "http://other.example/p"),
        ("///other.example/p", "http://other.example/p"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http:next.html", "http://site.example/dir/next.html"),
        ("x#y z", "http://site.example/dir/x#y%20z"),
        ("", "http://site.example/dir/page.html?x=1"),
    ],
)
def test_urljoin_and_follow_resolve_as_a_browser_does(reference: str, url: str) -> None:
    """Both give the URL of the URL Standard, with its fragment."""
    assert page().urljoin(reference) == url
    assert page().follow(reference).url == url


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("mailto:a@b", "mailto:a@b"),
        ("http://u:p@h.example/", "http://u:p@h.example/"),
        ("http://h.example:99999/", "http://h.example:99999/"),
        ("http://[", "http://["),
    ],
)
def test_urljoin_never_raises(reference: str, joined: str) -> None:
    """A reference that cannot be requested is joined as far as it can be."""
    assert page().urljoin(reference) == joined


REJECTED = [
    ("javascript:void(0)", SCHEME_UNSUPPORTED),
    ("mailto:someone@site.example", SCHEME_UNSUPPORTED),
    ("http://site.example:99999/", PORT_MALFORMED),
    ("http://user:secret@site.example/", USERINFO),
    ("http://a b/", URL_MALFORMED),
    ("http://[", URL_MALFORMED),
]


@pytest.mark.parametrize(("reference", "rule"), REJECTED)
def test_follow_marks_what_cannot_be_requested(reference: str, rule: str) -> None:
    """Instead of raising, `follow` returns a request that says why; it keeps what it was given."""
    request = page().follow(
        reference, callback=print, meta={"a": 1}, cb_kwargs={"b": 2}, flags=["c"]
    )
    assert isinstance(request, RejectedRequest)
    assert request.url == REJECTED_URL
    assert (request.rejection.rule, request.rejection.observed) == (rule, reference)
    assert (request.callback, request.meta, request.cb_kwargs) == (print, {"a": 1}, {"b": 2})
    assert request.flags == ["c"]
    assert reference_of(request).rejection == request.rejection
    assert rule in repr(request)
    copy = request.replace(priority=1)
    assert (copy.rejection, copy.priority) == (request.rejection, 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(exclude_categories=()), max_size=30) | st.binary(max_size=20))
def test_no_reference_makes_follow_raise(reference: Any) -> None:
    """Whatever a page holds, a callback that follows it goes on."""
    response = page("<p>", "cp1251")
    request = response.follow(reference)
    observed = reference_of(request)
    if isinstance(request, RejectedRequest):
        assert observed.rejection == request.rejection
    else:
        assert request.url.partition("#")[0] == observed.url


def test_one_bad_link_does_not_end_a_callback() -> None:
    """The links behind a bad one are followed too (FC50)."""

    def parse(response: TextResponse) -> Any:
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)

    urls = [request.url for request in parse(page())]
    assert urls == ["http://site.example/1", REJECTED_URL, "http://site.example/dir/a//b#f"]


def test_follow_takes_what_scrapys_follow_takes() -> None:
    """Text, Link, attribute selector and element selector; all further arguments."""
    response = page()
    anchor = response.css("a")[0]
    link = LinkExtractor().extract_links(response)[0]
    for argument in ("/1", Link("/1"), link, anchor, anchor.css("::attr(href)")[0]):
        request = response.follow(
            argument, print, "POST", {"X": "y"}, b"b", {"c": "d"}, {"m": 1}, None, 5, True, repr,
            {"k": 1}, ["f"],
        )  # fmt: skip
        assert type(request) is Request
        assert (request.url, request.callback, request.method) == (
            "http://site.example/1",
            print,
            "POST",
        )
        assert (request.headers["X"], request.body, request.cookies) == (b"y", b"b", {"c": "d"})
        assert (request.meta, request.encoding, request.priority) == ({"m": 1}, "utf-8", 5)
        assert (request.dont_filter, request.errback) == (True, repr)
        assert (request.cb_kwargs, request.flags) == ({"k": 1}, ["f"])


@pytest.mark.parametrize("css", ["a:not([href])", "img", "b", "title"])
def test_follow_refuses_selectors_without_a_reference(css: str) -> None:
    """As in Scrapy, an element that is no link, or has no href, is the caller's mistake."""
    response = page()
    with pytest.raises(ValueError, match="is no reference"):
        response.follow(response.css(css)[0])


def test_follow_refuses_none_and_lists() -> None:
    """As in Scrapy, nothing and a list of selectors are the caller's mistakes."""
    response = page()
    with pytest.raises(ValueError, match="can't be None"):
        response.follow(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="SelectorList"):
        response.follow(response.css("a"))  # type: ignore[arg-type]


def test_followed_request_remembers_what_was_observed() -> None:
    """The spelling found goes with the request, and with its element what was said of it."""
    response = page()
    request = response.follow(response.css("a")[0])
    assert reference_of(request) == Reference(
        "/1", "http://site.example/1", None, "", "a", "href", "nofollow", "one"
    )
    observed = reference_of(response.follow(" a//b#f "))
    assert (observed.observed, observed.url, observed.fragment) == (
        " a//b#f ",
        "http://site.example/dir/a//b",
        "f",
    )
    link = LinkExtractor().extract_links(response)[0]
    assert reference_of(response.follow(link)) == link.reference  # type: ignore[attr-defined]
    assert observed_reference(Request(URL)) is None


def test_link_with_another_url_is_observed_anew() -> None:
    """A `process_links` that rewrites a link makes another reference of it."""
    link = LinkExtractor().extract_links(page())[0]
    link.url += "?session=1"
    observed = reference_of(page().follow(link))
    assert (observed.observed, observed.text) == ("http://site.example/1?session=1", "one")


@pytest.mark.parametrize(
    "arguments",
    [
        {"css": "a"},
        {"xpath": "//a"},
        {"css": "a::attr(href)"},
        {"xpath": "//a/@href"},
        {"urls": ["/1", "javascript:void(0)", " a//b#f "]},
        {"urls": iter([Link("/1"), "javascript:void(0)", Link("a//b#f")])},
    ],
)
def test_follow_all_follows_each(arguments: dict[str, Any]) -> None:
    """All ways to say which: those without a reference are left out, bad ones are marked."""
    requests = list(page().follow_all(**arguments, cb_kwargs={"k": 1}, priority=3))
    assert [request.url for request in requests] == [
        "http://site.example/1",
        REJECTED_URL,
        "http://site.example/dir/a//b#f",
    ]
    assert all(request.cb_kwargs == {"k": 1} and request.priority == 3 for request in requests)
    assert all(observed_reference(request) is not None for request in requests)


def test_follow_all_needs_exactly_one_source() -> None:
    """As in Scrapy, none or two of urls, css and xpath are the caller's mistake."""
    response = page()
    for arguments in ({}, {"css": "a", "xpath": "//a"}, {"urls": [], "css": "a"}):
        with pytest.raises(ValueError, match="exactly one"):
            response.follow_all(**arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="iterable"):
        response.follow_all(5)  # type: ignore[arg-type]
    assert list(response.follow_all([])) == []


def test_response_without_text_follows_too() -> None:
    """A plain response resolves against its URL."""
    response = with_whatwg_links(Response(URL, body=b"\x00"))
    assert response.follow("a//b", print).url == "http://site.example/dir/a//b"
    assert [r.url for r in response.follow_all(["/1", "x:y"])] == [
        "http://site.example/1",
        REJECTED_URL,
    ]


@pytest.mark.parametrize("response_class", [TextResponse, XmlResponse, JsonResponse])
def test_base_is_one_of_html(response_class: type[TextResponse]) -> None:
    """Text that happens to hold a `<base>` is no HTML document and has no base."""
    body = b'{"a": "<base href=/other/>"}'
    if response_class is XmlResponse:
        body = b"<feed><base href='/other/'/></feed>"
    response = with_whatwg_links(response_class(URL, body=body, encoding="utf-8"))
    assert response.urljoin("a") == "http://site.example/dir/a"


def test_base_far_down_counts() -> None:
    """A `<base>` beyond the first 4096 characters is the document's base."""
    response = page(f"<head><style>{'x' * 5000}</style><base href='//cdn.example/'></head>")
    assert response.follow("a").url == "http://cdn.example/a"


@pytest.mark.parametrize("href", ["http://[broken", "http://host:port/", "//{host}:{port}/"])
def test_broken_base_does_not_cost_the_page(href: str) -> None:
    """Scrapy's selectors raise for a page whose `<base>` is no URL; here the page can be read."""
    response = page(f"<head><base href='{href}'></head><a href=a//b>x</a>")
    assert response.css("a::attr(href)").getall() == ["a//b"]
    assert response.selector is response.selector
    assert response.follow(response.css("a")[0]).url == "http://site.example/dir/a//b"


def test_what_is_remembered_goes_with_its_object() -> None:
    """Bases, selectors and observations are kept no longer than the response and its requests."""
    for body in (PAGE, "<base href='http://host:port/'><a href=/1>x</a>"):
        response = page(body)
        request = response.follow(response.css("a[href]")[0])
        LinkExtractor().extract_links(response)
        remains = [weakref.ref(response), weakref.ref(request)]
        del response, request
        gc.collect()
        assert [reference() for reference in remains] == [None, None]


@pytest.mark.parametrize(
    ("encoding", "url"),
    [
        ("cp1251", "http://site.example/?q=%FF%26%239829%3B&p=2"),
        ("utf-8", "http://site.example/?q=%D1%8F%E2%99%A5&p=2"),
        ("utf-16", "http://site.example/?q=%D1%8F%E2%99%A5&p=2"),
    ],
)
def test_query_is_in_the_encoding_of_the_page(encoding: str, url: str) -> None:
    """What the page's encoding lacks does not raise, and UTF-16 does not spoil the URL (FC52)."""
    response = page("<p>я", encoding)
    assert response.follow("/?q=я♥&p=2").url == url
    assert response.follow("/?q=я♥&p=2", encoding="utf-8").url == (
        "http://site.example/?q=%D1%8F%E2%99%A5&p=2"
    )


def test_followed_request_can_become_another_class() -> None:
    """What comes out of `follow` is an ordinary request."""
    request = page().follow("/1").replace(cls=JsonRequest, method="POST")
    assert (type(request), request.url) == (JsonRequest, "http://site.example/1")
