"""`FRONTIER_RETRY_RULES`: rules of the project's, by name.

::

    FRONTIER_RETRY_RULES = {
        "shop is busy": {"status": 403, "origin": "https://shop.example.com", "retry": True,
                         "times": 5, "delay": 30, "holds_origin": True},
        "bad certificates pass": {"cause": "download.tls.*", "retry": True},
        "orders are idempotent": {"spider": "orders", "method": "POST", "repeat_unsafe": True},
    }

What a rule speaks of: `status` (a number, "5xx", or a list of them), `cause` (a cause of the table,
or a pattern), `exception` (a class, its dotted path or its bare name), `origin`, `spider`,
`method`. What it says: `retry`, `times`, `delay` and `max_delay` in seconds, `holds_origin`,
`repeat_unsafe`; what it does not say is left to the built-in rule. The narrowest rule that fits
decides: by origin, then spider, then method, then by what came; of two equals the first.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.places import Place
from scrapy_frontier.policy.retry.rules import RetryRule
from scrapy_frontier.policy.retry.table import TABLE

SETTING: Final = "FRONTIER_RETRY_RULES"

_KNOWN: Final = frozenset(
    cause for rule in TABLE for cause in rule.causes if not any(mark in cause for mark in "*?")
)

_FORM: Final = 'write {"name": {"status": 403, "retry": True}}'


def read_rules(value: object) -> tuple[RetryRule, ...]:
    """Read the setting; raise `ConfigError` with the rule and the key at fault, and the remedy."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise ConfigError(f"must be a dictionary of named rules, not {value!r}: {_FORM}")
    return tuple(_rule(name, body) for name, body in value.items())


def _rule(name: object, body: object) -> RetryRule:
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"a rule is called {name!r}: its name must be a non-empty text")
    if not isinstance(body, Mapping):
        raise ConfigError(f"rule {name!r} must be a dictionary, not {body!r}: {_FORM}")
    for key in body:
        if key not in _READERS:
            raise ConfigError(f"rule {name!r} has an unknown key {key!r}{_hint(key)}")
    found: dict[str, Any] = {"causes": ()}
    for key, given in body.items():
        field, read = _READERS[key]
        try:
            read_value = read(given)
        except (ConfigError, ValueError, TypeError, OverflowError) as exc:
            raise ConfigError(f"rule {name!r}: {key} = {given!r}: {exc}") from exc
        found[field] = found[field] + read_value if field == "causes" else read_value
    if not _EFFECTS & body.keys():
        raise ConfigError(f"rule {name!r} says nothing: give one of {', '.join(sorted(_EFFECTS))}")
    return RetryRule(name.strip(), **found)


def _hint(key: object) -> str:
    close = difflib.get_close_matches(str(key), _READERS, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(_READERS)}"


def _statuses(value: Any) -> tuple[str, ...]:
    return tuple(_status(one) for one in _listed(value))


def _status(value: Any) -> str:
    text = str(value).strip().lower()
    if isinstance(value, bool) or len(text) != 3 or text[0] not in "123456789":
        raise ValueError('must be a status such as 503, or "5xx"')
    if not (text[1:] == "xx" or text.isdigit()):
        raise ValueError('must be a status such as 503, or "5xx"')
    return f"http.{text.replace('x', '?')}"


def _causes(value: Any) -> tuple[str, ...]:
    return tuple(_cause(one) for one in _listed(value))


def _cause(value: Any) -> str:
    """A cause, or a pattern of causes; one that nothing could ever have is refused."""
    text = _text(value)
    if text in _KNOWN or any(mark in text for mark in "*?["):
        return text
    if text.startswith("http.") and text.removeprefix("http.").isdigit():
        return text
    if text.startswith("download.") and text.removeprefix("download.")[:1].isupper():
        return text
    close = difflib.get_close_matches(text, _KNOWN, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "see the table of retry rules"
    raise ValueError(f"there is no such cause; {hint}")


def _exceptions(value: Any) -> tuple[str, ...]:
    return tuple(_exception(one) for one in _listed(value))


def _exception(value: Any) -> str:
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".removeprefix("builtins.")
    text = _text(value)
    if not all(part.isidentifier() for part in text.split(".")):
        raise ValueError("must be an exception class, its dotted path, or its name")
    return text


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a non-empty text")
    return value.strip()


def _origin(value: Any) -> Place:
    place = Place.parse(_text(value))
    if place.path:
        raise ValueError("must be an origin, without a path")
    return place


def _method(value: Any) -> str:
    return _text(value).upper()


def _switch(value: Any) -> bool:
    if value not in (True, False):
        raise ValueError("must be True or False")
    return bool(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or int(value) != float(value) or value < 0:
        raise ValueError("must be a whole number of at least 0")
    return int(value)


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("must be a number of seconds of at least 0")
    return seconds


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "status": ("causes", _statuses),
    "cause": ("causes", _causes),
    "exception": ("exceptions", _exceptions),
    "origin": ("origin", _origin),
    "spider": ("spider", _text),
    "method": ("method", _method),
    "retry": ("retry", _switch),
    "times": ("times", _count),
    "delay": ("delay_s", _seconds),
    "max_delay": ("max_delay_s", _seconds),
    "holds_origin": ("holds_gate", _switch),
    "repeat_unsafe": ("repeats_unsafe", _switch),
}

_EFFECTS: Final = frozenset(
    {"retry", "times", "delay", "max_delay", "holds_origin", "repeat_unsafe"}
)
