"""The record of a robots.txt as JSON, its text apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from math import isfinite
from typing import Any, Final

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.policy.robots.outcomes import Hop
from scrapy_frontier.policy.robots.records import RobotsRecord, RobotsState, digest_of


class RecordUnreadable(FrontierError):
    """Stored text is no record of a robots.txt, or does not belong to it; the message says why."""


def dump(record: RobotsRecord) -> str:
    """Write a record as one line of JSON; its text is kept elsewhere, under its digest."""
    data = {
        name: getattr(record, name)
        for name in _READERS
        if getattr(record, name) != _DEFAULTS.get(name)
    }
    data["state"] = record.state.value
    data["parser_version"] = record.parser_version
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def load(data: str, text: bytes | None = None) -> RobotsRecord:
    """Read what `dump` wrote. `text`: the text of its digest, None to do without it for now.

    Raises `RecordUnreadable`.
    """
    try:
        stored = json.loads(data)
        values: dict[str, Any] = {
            name: _READERS[name](value) for name, value in stored.items() if name in _READERS
        }
        record = RobotsRecord(text=text or b"", **values)
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        ArithmeticError,
        RecursionError,
    ) as exc:
        raise RecordUnreadable(f"no record of a robots.txt: {data[:200]!r}: {exc}") from exc
    if (text or (record.digest and text is not None)) and digest_of(text) != record.digest:
        raise RecordUnreadable(
            f"the text is not that of the robots.txt of {record.origin}: its digest must be"
            f" {record.digest!r}"
        )
    return record


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def _hops(value: object) -> tuple[Hop, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return tuple(Hop(_whole(status), _text(target)) for status, target in value)


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "origin": _text,
    "state": RobotsState,
    "reason": _text,
    "status": _whole,
    "fetched_at": _number,
    "expires_at": _number,
    "parser_version": _whole,
    "digest": _text,
    "is_cut": _switch,
    "hops": _hops,
    "etag": _text,
    "last_modified": _text,
    "content_type": _text,
    "tried_at": _number,
    "next_try_at": _number,
    "failures": _whole,
    "trouble": _text,
    "unreachable_since": _number,
    "is_closed": _switch,
}
_DEFAULTS: Final = {item.name: item.default for item in fields(RobotsRecord)}
