"""The type of one segment of a path, or of one value of a query."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NUMBER: Final = "{number}"
DATE: Final = "{date}"
HEX: Final = "{hex}"
UUID: Final = "{uuid}"
SLUG: Final = "{slug}"
NAME: Final = "{name}"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(0?[1-9]|1[0-2])(?:-(0?[1-9]|[12]\d|3[01]))?")
_COMPACT_DATE = re.compile(r"((?:1[5-9]|2\d)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_WORDS = re.compile(r"[-_+]|%20")

SLUG_WORDS: Final = 3
"""Words from which on a directory's name is a title, and not a part of the site."""


@lru_cache(maxsize=16_384)
def type_of(segment: str) -> str | None:
    """The type that a segment shows by its spelling; None for a word, which stands for itself."""
    if segment.isdecimal() and segment.isascii():
        return DATE if _COMPACT_DATE.fullmatch(segment) else NUMBER
    if _DATE.fullmatch(segment):
        return DATE
    if _UUID.fullmatch(segment):
        return UUID
    if _HEX.fullmatch(segment):
        return HEX
    if len(_WORDS.split(segment)) >= SLUG_WORDS:
        return SLUG
    return None


def date_of(segment: str) -> int | None:
    """The date of a segment that is one, as the number `20310512`; the day is 00 where it has none."""
    match = _DATE.fullmatch(segment) or _COMPACT_DATE.fullmatch(segment)
    if match is None:
        return None
    return int(match[1]) * 10_000 + int(match[2]) * 100 + int(match[3] or 0)


@lru_cache(maxsize=16_384)
def file_type(segment: str) -> str:
    """The type of the last segment, with its extension: `{name}.html`, `{number}`."""
    stem, dot, extension = segment.rpartition(".")
    if not dot or not stem or not extension.isalnum() or len(extension) > 5:
        stem, dot, extension = segment, "", ""
    return f"{type_of(stem) or NAME}{dot}{extension.lower()}"
