"""What is read from a store, as it may be shown: URLs in values of any shape without what is hidden in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

from scrapy_frontier.policy.redaction import Redaction

T = TypeVar("T")

_ONE_URL: Final = frozenset(
    {"asked", "canonical", "example", "first_example", "location", "observed", "page", "referrer"}
    | {"source", "source_url", "target", "target_url", "url"}
    | {"carried_by", "examples", "orphans", "pages", "sources", "start_urls", "urls"}
)
"""Fields that hold one reference each, or several apart: with blanks in it, it is one all the same."""

_FRAGMENT: Final = "fragment"


def redacted(value: T, redaction: Redaction, name: str = "") -> T:
    """The value with every text in it redacted: in fields of dataclasses, in mappings, in sequences.

    `name`: what the field is called that holds it. What needs no change comes back as it is.
    """
    return value if redaction.is_off else cast("T", _redacted(value, redaction, name))


def _redacted(value: Any, redaction: Redaction, name: str) -> Any:
    if isinstance(value, str):
        return _text(value, redaction, name)
    if is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in fields(value)}
        new = {key: _redacted(item, redaction, key) for key, item in old.items()}
        changed = {key: item for key, item in new.items() if item is not old[key]}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        shown = {
            _redacted(key, redaction, ""): _redacted(item, redaction, str(key))
            for key, item in value.items()
        }
        return shown if shown != value else value
    if isinstance(value, (list, tuple)):
        return _sequence(value, redaction, name)
    return value


def _sequence(value: Any, redaction: Redaction, name: str) -> Any:
    shown = [_redacted(item, redaction, name) for item in value]
    if all(one is other for one, other in zip(shown, value, strict=True)):
        return value
    if isinstance(value, list):
        return shown
    return value._make(shown) if hasattr(value, "_make") else tuple(shown)


def _text(value: str, redaction: Redaction, name: str) -> str:
    if name == _FRAGMENT:
        return redaction.fragment(value)
    return redaction.url(value) if name in _ONE_URL else redaction.text(value)
