"""URLs inside attribute values that hold more than one, or more than a URL (HTML Standard).

Each function returns the references as they are spelled, not resolved, and never fails on any text.
"""

from __future__ import annotations

import re
from typing import Final

_ASCII_WHITESPACE: Final = " \t\n\f\r"

_REFRESH_TIME = re.compile(r"[ \t\n\f\r]*(?:[0-9]+[0-9.]*|\.[0-9.]*)(?=[;, \t\n\f\r])")
_REFRESH_SEPARATOR = re.compile(r"[ \t\n\f\r]*[;,]?[ \t\n\f\r]*")
_REFRESH_URL = re.compile(r"url[ \t\n\f\r]*=[ \t\n\f\r]*", re.IGNORECASE)


def split_srcset(value: str) -> list[str]:
    """Return the URLs of a `srcset` value (section 4.8.4.2.1), its descriptors left out.

    A URL may hold commas; a comma at its end parts it from the next candidate.
    """
    urls = []
    position, end = 0, len(value)
    while position < end:
        if value[position] in _ASCII_WHITESPACE or value[position] == ",":
            position += 1
            continue
        start = position
        while position < end and value[position] not in _ASCII_WHITESPACE:
            position += 1
        url = value[start:position]
        if url.endswith(","):
            url = url.rstrip(",")
        else:
            position = _skip_descriptors(value, position)
        urls.append(url)
    return urls


def _skip_descriptors(value: str, position: int) -> int:
    """Return the place behind the comma that ends a candidate; commas in parentheses do not."""
    in_parentheses = False
    while position < len(value):
        character = value[position]
        position += 1
        if character == "(":
            in_parentheses = True
        elif character == ")":
            in_parentheses = False
        elif character == "," and not in_parentheses:
            break
    return position


def split_tokens(value: str) -> list[str]:
    """Return the URLs of a value that is a set of space-separated tokens, such as `ping`."""
    return [token for token in re.split(r"[ \t\n\f\r]+", value) if token]


def refresh_target(content: str) -> str | None:
    """Return the URL in the `content` of a `<meta http-equiv=refresh>` (section 4.2.5.3), or None.

    Without a URL the page reloads itself, which is no reference.
    """
    time = _REFRESH_TIME.match(content)
    if time is None:
        return None
    separator = _REFRESH_SEPARATOR.match(content, time.end())
    rest = content[separator.end() :] if separator else ""
    prefix = _REFRESH_URL.match(rest)
    url = rest[prefix.end() :] if prefix else rest
    if url[:1] in {'"', "'"}:
        url = url[1:].partition(url[0])[0]
    return url or None


def refresh_delay_s(content: str) -> float:
    """Return after how many seconds the `content` of a refresh takes effect; its fraction does not count there."""
    time = _REFRESH_TIME.match(content)
    digits = re.match(r"\d+", time.group().strip()) if time is not None else None
    return float(digits.group()) if digits is not None else 0.0
