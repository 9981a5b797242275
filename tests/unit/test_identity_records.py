"""Request records: all that a request asks for, in readable JSON, back exactly as it was."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_frontier.errors import IdentityError
from scrapy_frontier.identity import NotSerialisable, RequestRecord, dump, load
from scrapy_frontier.identity.values import MAX_DEPTH

# The machine may be busy; how long an example takes is no promise.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Product:
    name: str
    price: object = None


class ProductCodec:
    """Stands for the codec of items that the Scrapy side gives."""

    def encode_object(self, obj: object) -> tuple[str, object] | None:
        if not isinstance(obj, Product):
            return None
        return "product", {"name": obj.name, "price": obj.price}

    def decode_object(self, tag: str, payload: Any) -> object:
        if tag != "product":
            raise IdentityError(f"{tag} is not known")
        return Product(**payload)


CODEC = ProductCodec()

any_text = st.text(st.characters(exclude_categories=()), max_size=12)
zones = st.one_of(
    st.none(),
    st.integers(-86_399, 86_399).map(lambda offset: timezone(timedelta(seconds=offset))),
    st.sampled_from([timezone.utc, ZoneInfo("Europe/Prague"), ZoneInfo("America/New_York")]),
)
folds = st.sampled_from([0, 1])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=1 << 70),
    st.floats(),
    any_text,
    st.sampled_from(["$tuple", "$", "$$"]),
    st.binary(max_size=12),
    st.builds(lambda moment, fold: moment.replace(fold=fold), st.datetimes(timezones=zones), folds),
    st.builds(lambda moment, fold: moment.replace(fold=fold), st.times(), folds),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
)
hashables = st.recursive(
    scalars,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
values = st.recursive(
    hashables | st.sampled_from([Decimal("NaN"), Decimal("sNaN1"), Decimal("-0")]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(hashables, max_size=3),
        st.dictionaries(any_text, inner, max_size=3),
        st.dictionaries(hashables, inner, max_size=3),
        st.builds(Product, any_text, inner),
    ),
    max_leaves=12,
)


def spell(value: object) -> str:
    """All of a value, with its types, as text: NaN is like NaN, order counts except in sets."""
    kind = type(value).__name__
    if isinstance(value, list | tuple):
        return f"{kind}{[spell(item) for item in value]}"
    if isinstance(value, dict):
        return f"{kind}{[(spell(key), spell(item)) for key, item in value.items()]}"
    if isinstance(value, set | frozenset):
        return f"{kind}{sorted(spell(item) for item in value)}"
    if isinstance(value, Product):
        return f"{kind}({spell(value.name)}, {spell(value.price)})"
    return repr(value)


@unhurried
@given(values)
def test_every_value_comes_back_as_it_was(value: object) -> None:
    """Types, order, time zones and folds survive; the text is one line that any store can hold."""
    record = RequestRecord(meta={"value": value}, cb_kwargs={"value": value})
    text = dump(record, CODEC)
    assert "\n" not in text
    assert text.encode()
    back = load(text, CODEC)
    assert spell(back.meta) == spell(record.meta)
    assert spell(back.cb_kwargs) == spell(record.cb_kwargs)


@unhurried
@given(values)
def test_the_same_record_is_the_same_text(value: object) -> None:
    """What was read is written again to the same text, sets included."""
    text = dump(RequestRecord(meta={"value": value}), CODEC)
    assert dump(load(text, CODEC), CODEC) == text


@unhurried
@given(
    st.builds(
        RequestRecord,
        method=st.sampled_from(["GET", "POST", "PURGE"]),
        headers=st.lists(st.tuples(any_text, st.none() | any_text), max_size=3).map(tuple),
        body=st.binary(max_size=20),
        cookies=st.dictionaries(any_text, any_text) | st.just([{"name": "a", "value": b"b"}]),
        callback=st.sampled_from(["", "parse_item"]),
        errback=st.sampled_from(["", "failed"]),
        priority=st.integers(-(10**6), 10**6),
        dont_filter=st.booleans(),
        encoding=st.sampled_from(["utf-8", "cp1252"]),
        flags=st.lists(any_text, max_size=2).map(tuple),
        request_class=st.sampled_from(["", "scrapy.http:JsonRequest"]),
        extra=st.just({}) | st.just({"dumps_kwargs": {"indent": 2}}),
    )
)
def test_every_field_comes_back_as_it_was(record: RequestRecord) -> None:
    """A record that is written and read is the same record."""
    assert load(dump(record)) == record


def test_plain_request_costs_two_bytes() -> None:
    """What stands at its default is left out."""
    assert dump(RequestRecord()) == "{}"
    assert load("{}") == RequestRecord()
    assert load("{}").meta is not load("{}").meta


def test_record_is_readable() -> None:
    """The text can be read by people and by other programs."""
    record = RequestRecord(
        method="POST",
        headers=(("Accept", "text/html"), ("User-Agent", None)),
        body=b"q=1",
        meta={"depth": 2, "seen": ("a", "b"), "at": date(2026, 1, 2)},
        callback="parse_item",
        priority=5,
        dont_filter=True,
    )
    assert json.loads(dump(record)) == {
        "method": "POST",
        "headers": [["Accept", "text/html"], ["User-Agent", None]],
        "body": {"$bytes": "q=1"},
        "meta": {
            "depth": 2,
            "seen": {"$tuple": ["a", "b"]},
            "at": {"$date": "2026-01-02"},
        },
        "callback": "parse_item",
        "priority": 5,
        "dont_filter": True,
    }


def test_records_of_earlier_stores_are_read() -> None:
    """These texts stand in stores: they are read as what they meant, for ever."""
    text = (
        '{"body":{"$base64":"/w=="},"meta":{"a":{"$set":[1,2]},"b":{"$dict":[[1,{"$int":"0x10"}]]},'
        '"c":{"$datetime":["2026-10-25T02:30:00","Europe/Prague",1]},"d":{"$float":"inf"},'
        '"e":{"$timedelta":[1,2,3]},"f":{"$decimal":"1.50"},"g":{"$str":"\\\\ud800"},'
        '"h":{"$uuid":"12345678-1234-5678-1234-567812345678"},"i":{"$time":"01:02:03"},'
        '"j":{"$object":["product",{"name":"x"}]},"k":{"$frozenset":[{"$tuple":[]}]}}}'
    )
    assert load(text, CODEC) == RequestRecord(
        body=b"\xff",
        meta={
            "a": {1, 2},
            "b": {1: 16},
            "c": datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Prague")),
            "d": math.inf,
            "e": timedelta(1, 2, 3),
            "f": Decimal("1.50"),
            "g": "\ud800",
            "h": UUID("12345678-1234-5678-1234-567812345678"),
            "i": time(1, 2, 3),
            "j": Product("x"),
            "k": frozenset([()]),
        },
    )


class Colour(enum.IntEnum):
    RED = 1


Point = namedtuple("Point", "x y")


class Explosive:
    """An object of the kind that breaks whoever looks at it."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (RequestRecord(meta={"page": lambda: None}), "meta['page']"),
        (RequestRecord(meta={"pages": [1, {"a": {2: Explosive()}}]}), "meta['pages'][1]['a'][2]"),
        (RequestRecord(meta={"s": {Explosive()}}), "meta['s']{...}"),
        (RequestRecord(meta={"k": {Colour.RED: 1}}), "meta['k'].keys()"),
        (
            RequestRecord(cb_kwargs={"product": Product("x", object())}),
            "cb_kwargs['product']['price']",
        ),
        (RequestRecord(meta={"c": Colour.RED}), "meta['c']"),
        (RequestRecord(meta={"p": Point(1, 2)}), "meta['p']"),
        (RequestRecord(meta={"d": OrderedDict()}), "meta['d']"),
        (RequestRecord(meta={"b": bytearray(b"x")}), "meta['b']"),
        (RequestRecord(cookies={"a": object()}), "cookies['a']"),
        (RequestRecord(extra={"kwargs": object()}), "extra['kwargs']"),
        (RequestRecord(priority=Colour.RED), "priority"),
        (
            RequestRecord(meta={"t": time(1, tzinfo=timezone(timedelta(microseconds=1)))}),
            "meta['t']",
        ),
        (
            RequestRecord(meta={"t": datetime(2026, 1, 1, tzinfo=timezone(timedelta(0), "Zulu"))}),
            "meta['t']",
        ),
    ],
)
def test_what_has_no_readable_form_is_named_by_its_path(record: RequestRecord, path: str) -> None:
    """The error says where in the request the value stands; nothing is pickled, nothing changed."""
    with pytest.raises(NotSerialisable) as caught:
        dump(record, CODEC)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


def test_function_is_shown_by_its_name() -> None:
    """The error shows what was found there."""
    with pytest.raises(NotSerialisable, match=r"meta\['page'\]: `.*<lambda>`"):
        dump(RequestRecord(meta={"page": lambda: None}))


def test_objects_need_the_codec() -> None:
    """Without the codec items are neither written nor read."""
    with pytest.raises(NotSerialisable, match="Product"):
        dump(RequestRecord(meta={"x": Product("x")}))
    with pytest.raises(IdentityError, match="needs the codec"):
        load(dump(RequestRecord(meta={"x": Product("x")}), CODEC))


def test_value_that_contains_itself_is_refused() -> None:
    """A cycle ends in the named error, not in a crash of the interpreter."""
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotSerialisable, match="contains itself"):
        dump(RequestRecord(meta={"loop": loop}))


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: (v,), lambda v: {1: v}])
def test_what_can_be_written_can_be_read(wrap: Any) -> None:
    """Nesting up to the limit is written and read; beyond it is refused at writing."""
    value: object = 1
    for _ in range(MAX_DEPTH - 1):
        value = wrap(value)
    record = RequestRecord(meta={"v": value})
    assert load(dump(record)) == record
    with pytest.raises(NotSerialisable):
        dump(RequestRecord(meta={"v": wrap(value)}))


corrupt = st.one_of(
    any_text,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | any_text,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(
                    [
                        *(
                            "$" + n
                            for n in ["bytes", "base64", "tuple", "set", "frozenset", "dict", "int"]
                        ),
                        *(
                            "$" + n
                            for n in ["float", "str", "datetime", "time", "date", "timedelta"]
                        ),
                        *("$" + n for n in ["decimal", "uuid", "object", "nothing"]),
                        *(f.name for f in fields(RequestRecord)),
                    ]
                ),
                inner,
                max_size=3,
            ),
        ),
        max_leaves=8,
    ).map(json.dumps),
)


@unhurried
@given(corrupt)
def test_corrupt_text_is_a_named_error(text: str) -> None:
    """Any text is read as a record or refused with IdentityError."""
    try:
        record = load(text, CODEC)
    except IdentityError:
        return
    assert isinstance(record, RequestRecord)
    assert replace(record) == record or "nan" in text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"method":5}',
        '{"priority":true}',
        '{"priority":1.5}',
        '{"dont_filter":1}',
        '{"body":"text"}',
        '{"meta":[]}',
        '{"headers":{"a":"b"}}',
        '{"headers":[["a"]]}',
        '{"headers":[["a",5]]}',
        '{"flags":"abc"}',
        '{"priority":NaN}',
        '{"colour":"red"}',
        '{"meta":{"$bytes":"x"}}',
        '{"meta":{"a":{"$tuple":{"b":1}}}}',
        '{"meta":{"a":{"$dict":{"bc":1}}}}',
        '{"meta":{"a":{"$dict":[[[],1]]}}}',
        '{"meta":{"a":{"$tuple":[],"b":1}}}',
        '{"meta":{"a":{"$nothing":[]}}}',
        '{"meta":{"a":{"$int":5}}}',
        '{"meta":{"a":{"$uuid":"x"}}}',
        '{"meta":{"a":{"$base64":"é"}}}',
        '{"meta":{"a":{"$datetime":["2026-01-01","Nowhere/Land",0]}}}',
        '{"meta":{"a":{"$timedelta":[1e300]}}}',
        '{"meta":{"a":{"$object":["other",1]}}}',
    ],
)
def test_known_corruptions_are_refused(text: str) -> None:
    """What `dump` cannot have written is refused, whatever was done to it."""
    with pytest.raises(IdentityError):
        load(text, CODEC)


class _TextOfElement(str):
    """What lxml gives for the text of an element: a str that remembers where it stood."""

    __slots__ = ("parent",)


def test_text_out_of_a_parsed_page_is_kept_as_text() -> None:
    """Links that Scrapy's extractors make carry such text in `meta["link_text"]`: they must be storable."""
    text = _TextOfElement("Trees")
    assert load(dump(RequestRecord(meta={"link_text": text}))).meta == {"link_text": "Trees"}
