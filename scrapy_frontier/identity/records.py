"""The record of a request: all of a `scrapy.Request` but its URL, as one line of readable JSON.

What stands at its default is left out, so that a plain followed link is `{}`. There is no pickle in
it, and nothing is imported or called when it is read: callback, errback and class are names that
the caller looks up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Final

from scrapy_frontier.errors import IdentityError
from scrapy_frontier.identity.values import Codec, decode, encode, from_text, to_text


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What a request asks for, beside its URL.

    `headers` are (name, value) pairs in order, bytes as Latin-1 text; a value of None is a header
    that is set to nothing, which keeps Scrapy from filling it in. `callback`, `errback` are names
    of the spider's methods, `""` none. `request_class` is the import path of a subclass of Request,
    `extra` the attributes that the subclass adds.
    """

    method: str = "GET"
    headers: tuple[tuple[str, str | None], ...] = ()
    body: bytes = b""
    cookies: dict[Any, Any] | list[Any] = field(default_factory=dict)
    meta: dict[Any, Any] = field(default_factory=dict)
    cb_kwargs: dict[str, Any] = field(default_factory=dict)
    callback: str = ""
    errback: str = ""
    priority: int = 0
    dont_filter: bool = False
    encoding: str = "utf-8"
    flags: tuple[str, ...] = ()
    request_class: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


_DEFAULT: Final = RequestRecord()
_NAMES: Final = tuple(f.name for f in fields(RequestRecord))
_DEFAULTS: Final = tuple((name, getattr(_DEFAULT, name)) for name in _NAMES)
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    name: (dict, list) if name == "cookies" else type(default) for name, default in _DEFAULTS
}


def dump(record: RequestRecord, codec: Codec | None = None) -> str:
    """Write a record as JSON text.

    Raise `NotSerialisable` for a value without a readable form; its path is the attribute of the
    request and the way to the value, as in `meta['page']`.
    """
    data = {}
    for name, default in _DEFAULTS:
        value = getattr(record, name)
        if value != default:
            data[name] = encode(_LISTS[name](value) if name in _LISTS else value, name, codec)
    return to_text(data) if data else "{}"


def load(text: str, codec: Codec | None = None) -> RequestRecord:
    """Read a record that `dump` wrote; raise `IdentityError` for any other text."""
    if text == "{}":
        return RequestRecord()
    data = from_text(text)
    if not isinstance(data, dict):
        raise IdentityError(f"a request record must be a JSON object, not {text:.80}")
    return RequestRecord(**{name: _read(name, value, codec) for name, value in data.items()})


def without_meta(text: str, keys: Iterable[str]) -> str:
    """A record without some keys of its meta, everything else as it stands."""
    data = from_text(text)
    meta = data.get("meta") if isinstance(data, dict) else None
    if not isinstance(meta, dict) or meta.keys().isdisjoint(keys):
        return text
    data["meta"] = {key: value for key, value in meta.items() if key not in set(keys)}
    if not data["meta"]:
        del data["meta"]
    return to_text(data) if data else "{}"


def _read(name: str, data: Any, codec: Codec | None) -> Any:
    expected = _TYPES.get(name)
    if expected is None:
        raise IdentityError(
            f"a request record has the unknown field {name!r}: a newer version wrote it"
        )
    value = decode(data, codec)
    if name == "headers":
        value = _read_headers(value)
    elif name == "flags" and isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise IdentityError(
            f"the field {name!r} of a request record holds a {type(value).__name__}"
        )
    return value


def _read_headers(value: Any) -> tuple[tuple[str, str | None], ...]:
    if not isinstance(value, list) or not all(_is_header(pair) for pair in value):
        raise IdentityError(
            "the field 'headers' of a request record holds no list of pairs of texts"
        )
    return tuple((name, text) for name, text in value)


def _is_header(pair: Any) -> bool:
    if not isinstance(pair, list) or len(pair) != 2:
        return False
    return isinstance(pair[0], str) and (pair[1] is None or isinstance(pair[1], str))


_LISTS: Final = {
    "headers": lambda headers: [list(pair) for pair in headers],
    "flags": list,
}
