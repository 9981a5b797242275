"""The text of a robots.txt: its encoding, its limit of size, and what one line of it says.

RFC 9309, sections 2.2 and 2.5. What is read beyond the RFC is what Google's parser reads too: usual
misspellings of a field, and a forgotten colon.
"""

from __future__ import annotations

import re
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

LIMIT: Final = 500 * 1024
"""How much of a robots.txt is read, in bytes (RFC 9309, section 2.5: at least 500 KiB)."""

_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARKS = re.compile(rb"(?:\xef\xbb\xbf)+")


class RobotsText(NamedTuple):
    """The part of a robots.txt that counts, in UTF-8 if its author kept to that; `is_cut`: there was
    more of it.
    """

    text: bytes
    is_cut: bool


def read_text(body: bytes) -> RobotsText:
    """Cut a body to `LIMIT` at the end of a line. Idempotent.

    UTF-16 with a byte order mark is converted first, as section 2.2.2 allows. A line of which the
    end is not within the limit is left out, for half a rule is another rule.
    """
    is_longer = False
    if body[:2] in _UTF16_MARKS:
        is_longer = len(body) > 2 * LIMIT
        body = body[: 2 * LIMIT].decode("utf-16", "replace").encode("utf-8", "replace")
    if len(body) <= LIMIT and not is_longer:
        return RobotsText(body, False)
    head = body[:LIMIT]
    end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
    return RobotsText(head[:end], True)


def split_lines(text: bytes) -> list[bytes]:
    """The lines of a text that `read_text` gave, by LF, CR or both, its byte order mark left out."""
    mark = _UTF8_MARKS.match(text)
    return (text[mark.end() :] if mark else text).splitlines()


class Field(Enum):
    """What a line of a robots.txt may speak of; any other line means nothing."""

    AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    CRAWL_DELAY = "crawl-delay"
    SITEMAP = "sitemap"


_SPELLINGS: Final = MappingProxyType(
    {
        Field.AGENT: b"user-agent, useragent, user agent",
        Field.ALLOW: b"allow",
        Field.DISALLOW: b"disallow, dissallow, dissalow, disalow, diasllow, disallaw",
        Field.CRAWL_DELAY: b"crawl-delay, crawldelay, crawl delay",
        Field.SITEMAP: b"sitemap, site-map, sitemaps",
    }
)
_FIELDS: Final = MappingProxyType(
    {name: field for field, names in _SPELLINGS.items() for name in names.split(b", ")}
)
_LONGEST: Final = max(map(len, _FIELDS))


def read_line(line: bytes) -> tuple[Field, bytes] | None:
    """Return the field and the value of a line, None where it has no field that is known."""
    content = line.partition(b"#")[0]
    name, colon, value = content.partition(b":")
    if colon:
        field = _field(name)
        if field is not None:
            return field, value.strip()
    return _read_without_colon(content)


def _read_without_colon(content: bytes) -> tuple[Field, bytes] | None:
    """Take two words for a field and its value; more of them are prose."""
    words = content.split(None, 2)
    if len(words) != 2:
        return None
    field = _field(words[0])
    return None if field is None else (field, words[1])


def _field(name: bytes) -> Field | None:
    name = name.strip()
    return _FIELDS.get(name.lower()) if len(name) <= _LONGEST else None


_DELAY = re.compile(rb"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]\+?[0-9]{1,2})?")
_DELAY_LENGTH: Final = 32


def read_delay(value: bytes) -> float | None:
    """Return the seconds of a Crawl-delay, None for what is no number of at least 0."""
    if len(value) > _DELAY_LENGTH or not _DELAY.fullmatch(value):
        return None
    return float(value)


_TOKEN = re.compile(rb"[A-Za-z_-]*")

EVERYBODY: Final = "*"
"""The token of the group for all that have none of their own."""


def read_token(value: bytes) -> str:
    """Return the product token of a User-agent line in lower case, "*" for everybody, "" for nobody.

    The token ends at the first character that none can have (RFC 9309, section 2.2.1:
    `[A-Za-z_-]+`), as in Google's parser: `spindle/2.1` is spindle.
    """
    if value.split(None, 1)[:1] == [b"*"]:
        return EVERYBODY
    token = _TOKEN.match(value)
    return token.group().decode().lower() if token else ""
