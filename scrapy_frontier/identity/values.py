"""Python values as readable JSON, typed, so that what comes back is what went in. No pickle.

JSON's own types stand for themselves. Everything else is an object with one key that starts with
`$`, its tag:

==============  ====================================================================================
tag             value
==============  ====================================================================================
``$bytes``      UTF-8 text of the bytes
``$base64``     bytes that are no UTF-8
``$tuple``      list; also ``$set``, ``$frozenset`` (in the order of their JSON texts)
``$dict``       list of [key, value]: keys that are no texts, or look like tags
``$int``        integers beyond 64 bits, in decimal, the very long ones in hexadecimal
``$float``      ``nan``, ``inf``, ``-inf``
``$str``        text with lone surrogates, in Python's ``unicode_escape``
``$datetime``   ISO 8601, or [ISO 8601, name of the time zone or null, fold]; also ``$time``
``$date``       ISO 8601
``$timedelta``  [days, seconds, microseconds]
``$decimal``    text; also ``$uuid``
``$object``     [tag of the codec, value]: items and data classes, by the caller's codec
==============  ====================================================================================

Only these exact types are taken; a subclass (an enumeration, a named tuple) is an object and needs
the codec, because it would come back as something else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

from scrapy_frontier.errors import IdentityError

MAX_DEPTH: Final = 64
"""How deep values may be nested; the same for writing and for reading, so that what was written can
be read.
"""

_INT64: Final = 1 << 63
_DECIMAL_BITS: Final = 10_000


class NotSerialisable(IdentityError):
    """A value that has no readable form.

    `path` says where in the request it stands, as in `meta['page']`, `problem` what stands there.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class Codec(Protocol):
    """Turns objects that are not known here (items, data classes) into such that are, and back."""

    def encode_object(self, obj: object) -> tuple[str, object] | None:
        """Return a tag and a value of known types, or None for an object of another kind."""

    def decode_object(self, tag: str, payload: Any) -> object:
        """Return the object again; raise `IdentityError` or ValueError if that fails."""


class _EncodeError(Exception):
    """A value without a readable form, on its way out to where the whole path is known."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.steps: list[str] = []


def encode(value: object, name: str, codec: Codec | None = None) -> Any:
    """Return `value` as JSON can hold it, or raise `NotSerialisable`, its path from `name` on."""
    try:
        return _encode(value, codec, MAX_DEPTH)
    except _EncodeError as fault:
        raise NotSerialisable(name + "".join(reversed(fault.steps)), fault.problem) from fault


def decode(data: Any, codec: Codec | None = None) -> Any:
    """Return the value that `encode` was given, or raise `IdentityError`."""
    try:
        return _decode(data, codec, MAX_DEPTH)
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as exc:
        raise IdentityError(f"a stored value cannot be read: {exc}") from exc


to_text: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""Write encoded data as one line of compact JSON."""


def from_text(text: str) -> Any:
    """Read JSON text; raise `IdentityError` where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, TypeError, RecursionError) as exc:
        raise IdentityError(f"stored JSON cannot be read: {exc}") from exc


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _encode(value: object, codec: Codec | None, depth: int) -> Any:
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    if depth <= 0:
        raise _EncodeError("nested too deeply, or contains itself")
    collector = _COLLECTORS.get(type(value))
    if collector is not None:
        return collector(value, codec, depth - 1)
    return _encode_object(value, codec, depth - 1)


def _encode_object(value: object, codec: Codec | None, depth: int) -> Any:
    # Text out of a parsed page comes as a subclass of str that remembers its element: the text is what counts.
    if isinstance(value, str) and not isinstance(value, Enum):
        return _encode_str(str.__str__(value))
    pair = codec.encode_object(value) if codec is not None else None
    if pair is None:
        raise _EncodeError(f"{_describe(value)} has no readable form; keep plain values there")
    tag, payload = pair
    return {"$object": [tag, _encode(payload, codec, depth)]}


def _describe(value: object) -> str:
    """Name a function by its name and all else by its type: a repr may be long, or fail."""
    name = getattr(value, "__qualname__", None)
    kind = type(value)
    return f"`{name}`" if isinstance(name, str) else f"a {kind.__module__}.{kind.__qualname__}"


def _encode_dict(value: dict[object, object], codec: Codec | None, depth: int) -> Any:
    result = {}
    for key, item in value.items():
        if type(key) is not str or key[:1] == "$" or not _is_unicode(key):
            return {"$dict": [_encode_pair(*pair, codec, depth) for pair in value.items()]}
        try:
            result[key] = _encode(item, codec, depth)
        except _EncodeError as fault:
            fault.steps.append(f"[{key!r}]")
            raise
    return result


def _encode_pair(key: object, item: object, codec: Codec | None, depth: int) -> list[Any]:
    try:
        pair = [_encode(key, codec, depth)]
    except _EncodeError as fault:
        fault.steps.append(".keys()")
        raise
    try:
        pair.append(_encode(item, codec, depth))
    except _EncodeError as fault:
        fault.steps.append(f"[{key!r:.80}]")
        raise
    return pair


def _inside(value: object, codec: Codec | None, depth: int, step: str) -> Any:
    try:
        return _encode(value, codec, depth)
    except _EncodeError as fault:
        fault.steps.append(step)
        raise


def _encode_items(value: Iterable[object], codec: Codec | None, depth: int) -> list[Any]:
    return [_inside(item, codec, depth, f"[{index}]") for index, item in enumerate(value)]


def _encode_unordered(value: Iterable[object], codec: Codec | None, depth: int) -> list[Any]:
    return sorted((_inside(item, codec, depth, "{...}") for item in value), key=to_text)


def _encode_str(value: str) -> Any:
    return value if _is_unicode(value) else {"$str": value.encode("unicode_escape").decode("ascii")}


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encode_int(value: int) -> Any:
    if -_INT64 <= value < _INT64:
        return value
    return {"$int": str(value) if value.bit_length() < _DECIMAL_BITS else hex(value)}


def _encode_bytes(value: bytes) -> Any:
    try:
        return {"$bytes": value.decode()}
    except UnicodeDecodeError:
        return {"$base64": base64.b64encode(value).decode("ascii")}


def _encode_moment(value: datetime | time) -> Any:
    """Write a datetime or a time: ISO 8601 keeps all but the fold and the time zone's name."""
    zone = value.tzinfo
    if zone is None or _is_offset(zone):
        return [value.isoformat(), None, 1] if value.fold else value.isoformat()
    if type(zone) is ZoneInfo and zone.key:
        return [value.replace(tzinfo=None).isoformat(), zone.key, value.fold]
    raise _EncodeError(f"no readable form for the time zone {type(zone).__qualname__}")


def _is_offset(zone: tzinfo) -> bool:
    """Whether ISO 8601 as Python reads it keeps the zone: whole seconds and no name."""
    if type(zone) is not timezone:
        return False
    offset = zone.utcoffset(None)
    return not offset.microseconds and zone.tzname(None) == timezone(offset).tzname(None)


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    str: _encode_str,
    int: _encode_int,
    bool: lambda value: value,
    type(None): lambda value: value,
    float: lambda value: value if isfinite(value) else {"$float": str(value)},
    bytes: _encode_bytes,
    datetime: lambda value: {"$datetime": _encode_moment(value)},
    time: lambda value: {"$time": _encode_moment(value)},
    date: lambda value: {"$date": value.isoformat()},
    timedelta: lambda value: {"$timedelta": [value.days, value.seconds, value.microseconds]},
    Decimal: lambda value: {"$decimal": str(value)},
    UUID: lambda value: {"$uuid": str(value)},
}

_COLLECTORS: dict[type, Callable[[Any, Codec | None, int], Any]] = {
    dict: _encode_dict,
    list: _encode_items,
    tuple: lambda value, codec, depth: {"$tuple": _encode_items(value, codec, depth)},
    set: lambda value, codec, depth: {"$set": _encode_unordered(value, codec, depth)},
    frozenset: lambda value, codec, depth: {"$frozenset": _encode_unordered(value, codec, depth)},
}


def _decode(data: Any, codec: Codec | None, depth: int) -> Any:
    kind = type(data)
    if kind is not dict and kind is not list:
        return data
    if depth <= 0:
        raise ValueError("nested too deeply")
    if kind is list:
        return [_decode(item, codec, depth - 1) for item in data]
    for key in data:
        if key[:1] == "$":
            return _decode_tagged(data, codec, depth - 1)
    return {key: _decode(item, codec, depth - 1) for key, item in data.items()}


def _decode_tagged(data: dict[str, Any], codec: Codec | None, depth: int) -> Any:
    ((tag, payload),) = data.items()
    decoder = _DECODERS.get(tag)
    if decoder is not None:
        return decoder(payload)
    if not isinstance(payload, list):
        raise TypeError(f"{tag} is not followed by a list")
    if tag == "$dict":
        return {_decode(key, codec, depth): _decode(item, codec, depth) for key, item in payload}
    if tag == "$object":
        name, value = payload
        if codec is None:
            raise ValueError(f"{name!r} needs the codec that wrote it")
        return codec.decode_object(name, _decode(value, codec, depth))
    return _COLLECTIONS[tag](_decode(item, codec, depth) for item in payload)


def _decode_moment(kind: type[datetime] | type[time], payload: Any) -> Any:
    if isinstance(payload, str):
        return kind.fromisoformat(payload)
    text, zone, fold = payload
    moment = kind.fromisoformat(text).replace(fold=fold)
    return moment if zone is None else moment.replace(tzinfo=ZoneInfo(zone))


_COLLECTIONS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
}

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "$str": lambda payload: payload.encode("ascii").decode("unicode_escape"),
    "$int": lambda payload: int(payload, 0),
    "$float": float,
    "$bytes": lambda payload: payload.encode(),
    "$base64": lambda payload: base64.b64decode(payload, validate=True),
    "$datetime": lambda payload: _decode_moment(datetime, payload),
    "$time": lambda payload: _decode_moment(time, payload),
    "$date": lambda payload: date.fromisoformat(payload),
    "$timedelta": lambda payload: timedelta(*payload),
    "$decimal": lambda payload: Decimal(payload),
    "$uuid": lambda payload: UUID(payload),
}
