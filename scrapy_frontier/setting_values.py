"""How the values of settings are read: as Python has them, or as text from the command line. Each raises `ValueError`
that says what the value must be.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

DEFAULT_BAND_SHARES: Final = (64, 32, 16, 8, 4, 2, 1)


def setting(
    default: Any, reader: Callable[[Any], Any], meaning: str, *, shown: str | None = None
) -> Any:
    """A field of the settings; `shown` is how the documentation writes the default where it is computed."""
    return field(default=default, metadata={"read": reader, "meaning": meaning, "shown": shown})


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a non-empty string")
    return value.strip()


def optional_text(value: Any) -> str | None:
    return None if value in (None, "") else text(value)


def switch(value: Any) -> bool:
    """As Scrapy reads booleans: True, 1, "True", "true", "1" and their opposites."""
    if isinstance(value, str) and value.strip().lower() in {"true", "1"}:
        return True
    if isinstance(value, str) and value.strip().lower() in {"false", "0"}:
        return False
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise ValueError("must be True or False")


def count(value: Any) -> int:
    number = int(value)
    if number != float(value) or number < 1:
        raise ValueError("must be a whole number of at least 1")
    return number


def limit(value: Any) -> int | None:
    return None if value in (None, "") else count(value)


def seconds(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise ValueError("must be a number of seconds above 0")
    return number


def optional_seconds(value: Any) -> float | None:
    return None if value in (None, "", "None") else seconds(value)


def seconds_or_off(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError("must be a number of seconds, or 0")
    return number


def port(value: Any) -> int | None:
    if value in (None, "", "None"):
        return None
    number = int(value)
    if number != float(value) or not 0 <= number <= 65_535:
        raise ValueError("must be a whole number from 0 to 65535")
    return number


def optional_days(value: Any) -> float | None:
    if value in (None, ""):
        return None
    days = float(value)
    if not math.isfinite(days) or days < 0:
        raise ValueError("must be a number of days, or None")
    return days


def from_json(value: Any) -> Any:
    """A dict or list given as text, as `-s NAME='...'` on the command line does, is JSON; as Scrapy has it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as exc:
        raise ValueError(f"given as text it must be JSON: {exc}") from exc


def synchronous(value: Any) -> str:
    text = str(value).strip().upper()
    if text not in {"FULL", "NORMAL"}:
        raise ValueError("must be FULL or NORMAL")
    return text


def evidence(value: Any) -> str:
    text = "none" if value is None else str(value).strip().lower()
    if text not in {"none", "headers", "body"}:
        raise ValueError("must be none, headers or body")
    return text


def render(value: Any) -> str:
    text = "none" if value is None else str(value).strip().lower()
    if text not in {"none", "asked", "all"}:
        raise ValueError("must be none, asked or all")
    return text


def shares(value: Any) -> tuple[float, ...]:
    if isinstance(value, str):
        value = value.split(",")
    shares = tuple(float(share) for share in value)
    if len(shares) != len(DEFAULT_BAND_SHARES) or not all(
        math.isfinite(share) and share > 0 for share in shares
    ):
        raise ValueError(
            f"must be {len(DEFAULT_BAND_SHARES)} numbers above 0, the most urgent band first"
        )
    return shares


def names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of names")
    return tuple(name.strip() for name in value)
