"""Requests in the store: what goes in comes out, and a store cannot name any code but the project's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import pytest
import scrapy
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import FormRequest, Item, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.http.request import NO_CALLBACK

from scrapy_frontier.errors import IdentityError
from scrapy_frontier.frontier.requests import TRANSIENT_META, RequestCodec
from scrapy_frontier.identity import NotSerialisable

URL = "http://a.example/page"


@dataclass
class Product:
    """A data class of the spider's own module."""

    name: str
    tags: list[str] = field(default_factory=list)


class Book(Item):
    """An item of the spider's own module."""

    title = scrapy.Field()


class OwnRequest(Request):
    """A request class with an attribute of its own."""

    attributes: tuple[str, ...] = (*Request.attributes, "lane")

    def __init__(self, *args: Any, lane: str = "slow", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lane = lane


class Plain(Spider):
    """The spider whose methods the records name."""

    name = "plain"

    def parse_page(self, response: Any) -> None:
        """A callback."""

    def __hidden(self, response: Any) -> None:
        """A private callback, whose name Python mangles."""

    def hidden(self) -> Any:
        """The private method, as the class itself would yield it."""
        return self.__hidden

    def failed(self, failure: Any) -> None:
        """An errback."""


@pytest.fixture
def spider() -> Plain:
    return Plain()


@pytest.fixture
def codec(spider: Plain) -> RequestCodec:
    return RequestCodec(spider)


def back(codec: RequestCodec, request: Request) -> Request:
    """The request after a stay in the store."""
    return codec.load(request.url, codec.dump(request))


def assert_same(one: Request, other: Request) -> None:
    """All attributes are equal, and the classes."""
    assert type(one) is type(other)
    for name in one.attributes:
        assert getattr(one, name) == getattr(other, name), name


def test_plain_link_is_almost_nothing(codec: RequestCodec) -> None:
    """What stands at its default is not stored."""
    assert codec.dump(Request(URL)) == "{}"
    assert_same(back(codec, Request(URL)), Request(URL))


def test_everything_comes_back(codec: RequestCodec, spider: Plain) -> None:
    """Every attribute that a request can be made with."""
    request = Request(
        URL,
        method="PUT",
        headers={"X-One": ["a", "b"], "X-None": None, b"X-Bytes": b"\xff"},
        body=b"\x00\xff",
        cookies=[{"name": "c", "value": "v", "domain": "a.example"}],
        meta={"a": (1, 2), "b": {"x"}, "c": datetime(2024, 1, 1, tzinfo=timezone.utc), 5: None},
        cb_kwargs={"product": Product("hat", ["new"]), "book": Book(title="t")},
        callback=spider.parse_page,
        errback=spider.failed,
        priority=-7,
        dont_filter=True,
        encoding="cp1251",
        flags=["one"],
    )
    assert_same(back(codec, request), request)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
tokens = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=8)


@settings(deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "DELETE"]),
    headers=st.dictionaries(tokens, st.lists(tokens, min_size=1, max_size=3), max_size=3),
    body=st.binary(max_size=40),
    cookies=st.dictionaries(tokens, tokens, max_size=3),
    meta=st.dictionaries(
        tokens.filter(lambda name: name not in TRANSIENT_META), values, max_size=4
    ),
    cb_kwargs=st.dictionaries(tokens, values, max_size=3),
    priority=st.integers(),
    dont_filter=st.booleans(),
)
def test_any_request_comes_back(**parts: Any) -> None:
    """Whatever a request is made of, it is the same after its stay in the store."""
    request = Request(URL, **parts)
    assert_same(back(RequestCodec(Plain()), request), request)


@pytest.mark.parametrize(
    "request_",
    [
        FormRequest(URL, formdata={"a": "1"}),
        JsonRequest(URL, data={"a": [1]}),
        XmlRpcRequest(URL, methodname="ask", params=(1,)),
        OwnRequest(URL, lane="fast"),
    ],
    ids=lambda request: type(request).__name__,
)
def test_subclasses_come_back(codec: RequestCodec, request_: Request) -> None:
    """A request of another class is made again as one, with what that class adds."""
    again = back(codec, request_)
    assert type(again) is type(request_)
    assert (again.method, again.body, again.headers) == (
        request_.method,
        request_.body,
        request_.headers,
    )
    if isinstance(request_, OwnRequest):
        assert isinstance(again, OwnRequest)
        assert again.lane == "fast"


def test_callbacks_are_methods_of_the_spider(codec: RequestCodec, spider: Plain) -> None:
    """Methods are stored by name, private ones too, and `NO_CALLBACK` is itself."""
    for callback in (spider.parse_page, spider.hidden(), spider.parse, NO_CALLBACK, None):
        assert back(codec, Request(URL, callback=callback)).callback == callback
    assert back(codec, Request(URL, errback=spider.failed)).errback == spider.failed


@pytest.mark.parametrize(
    ("part", "make"),
    [
        ("callback", lambda: Request(URL, callback=lambda response: None)),
        ("callback", lambda: Request(URL, callback=Plain().parse_page)),
        ("callback", lambda: Request(URL, callback=print)),
        ("errback", lambda: Request(URL, errback=lambda failure: None)),
        ("meta['page']", lambda: Request(URL, meta={"page": object()})),
        ("meta['deep'][1]['x']", lambda: Request(URL, meta={"deep": [0, {"x": open}]})),
        ("cb_kwargs['f']", lambda: Request(URL, cb_kwargs={"f": Spider})),
    ],
)
def test_what_cannot_be_stored_is_named(codec: RequestCodec, part: str, make: Any) -> None:
    """The error says which part of the request it is."""
    with pytest.raises(NotSerialisable) as caught:
        codec.dump(make())
    assert caught.value.path == part


def test_keys_of_one_download_stay_behind(codec: RequestCodec) -> None:
    """What belongs to one download is not stored, and does not keep the rest from it."""
    request = Request(URL, meta={"playwright_page": object(), "frontier_delay": 5, "mine": 1})
    assert back(codec, request).meta == {"mine": 1}
    assert request.meta["frontier_delay"] == 5


# What a store may not do


def record(**parts: Any) -> str:
    return json.dumps(parts)


@pytest.mark.parametrize(
    "path",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "scrapy.utils.misc:load_object",
        "scrapy.core.engine:logging.os.system",
        "scrapy:Spider",
        "scrapy.http:Response",
        "scrapy:Request.__init__.__globals__",
        "",
        "no colon",
        "scrapy:Nothing",
        "scrapy.nothing:Request",
    ],
)
def test_class_of_a_request_must_be_a_request(codec: RequestCodec, path: str) -> None:
    """A record that names anything but a trusted subclass of Request is refused, and nothing is called."""
    text = record(request_class=path)
    if path == "":
        assert type(codec.load(URL, text)) is Request
        return
    with pytest.raises(IdentityError):
        codec.load(URL, text)


def test_nothing_but_requests_is_called(
    codec: RequestCodec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it would take any arguments: what is not a Request class is never called."""
    called: list[Any] = []
    monkeypatch.setattr(
        "scrapy.utils.misc.arg_to_iter", lambda *args, **kwargs: called.append(args)
    )
    with pytest.raises(IdentityError):
        codec.load(URL, record(request_class="scrapy.utils.misc:arg_to_iter"))
    assert called == []


@pytest.mark.parametrize("path", ["os:environ", "http.cookiejar:Cookie", "scrapy:Request"])
def test_objects_are_items_of_trusted_modules(codec: RequestCodec, path: str) -> None:
    """An object in meta is made only of an item or data class that the project trusts."""
    with pytest.raises(IdentityError):
        codec.load(URL, record(meta={"x": {"$object": [path, {}]}}))


def test_trusted_modules_are_a_setting(spider: Plain) -> None:
    """A data class of another package needs FRONTIER_TRUSTED_MODULES; the message says so."""
    from scrapy_frontier.store.messages import Reason

    text = record(meta={"x": {"$object": ["dataclasses:Field", {}]}})
    with pytest.raises(IdentityError, match="FRONTIER_TRUSTED_MODULES"):
        RequestCodec(spider).load(URL, text)
    reason = Request(URL, meta={"reason": Reason("code")})
    codec = RequestCodec(spider, ["scrapy_frontier"])
    assert back(codec, reason).meta == reason.meta


@pytest.mark.parametrize("name", ["gone", "__class__", "name", "start_urls", "parse.__globals__"])
def test_callback_must_be_a_method_of_the_spider(codec: RequestCodec, name: str) -> None:
    """A name that is no method of the spider cannot be a callback."""
    with pytest.raises(IdentityError):
        codec.load(URL, record(callback=name))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"nothing": 1}', '{"method": 5}', '{"url": "x"}'])
def test_record_that_is_none(codec: RequestCodec, text: str) -> None:
    """Other text is refused, not guessed at."""
    with pytest.raises(IdentityError):
        codec.load(URL, text)
