"""Paths of rules and paths of URLs, brought to one spelling and compared (RFC 9309, section 2.2.2).

One spelling: octets that are no characters of a URL are percent-encoded, percent-encoded unreserved
octets are decoded, hexadecimal digits are in upper case. Reserved octets keep the form they have:
`/a%2Fb` is not `/a/b`. Two exceptions:

- `%2A` and `%24` are the characters `*` and `$` (section 2.2.3), in rules never the operators.
- The table of section 2.2.2 makes `?u=https://h` and `?u=https%3A%2F%2Fh` equal. So `:`, `/`, `?` and
  `@`, which separate nothing there, have one form in the query, for rules that name the query: a
  rule matches a URL in this form or in the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.identity.keys import comparison_url

_is_plain = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@/?-]*").fullmatch
_UNSAFE = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?%-]")
_FOLDABLE = re.compile(r"\?.*(?:[:/?@]|%3A|%2F|%3F|%40)")
_FOLDED: Final = str.maketrans({character: f"%{ord(character):02X}" for character in ":/?@"})


def normalise_target(target: str) -> str:
    """Return the one spelling of a path with query; a fragment plays no part, no path is `/`."""
    if _is_plain(target):
        return target
    target = target.partition("#")[0]
    if not target.startswith("/"):
        target = f"/{target}"
    if not target.isascii():
        target = target.encode("utf-8", "surrogatepass").decode("latin-1")
    return _normalise(target)


def fold_query(target: str) -> str:
    """Return a normalised target with the second form of its query."""
    path, mark, query = target.partition("?")
    return f"{path}{mark}{query.translate(_FOLDED)}"


def _normalise(octets: str) -> str:
    """Bring text of which each character is one octet to the one spelling."""
    text = comparison_url(_UNSAFE.sub(_encode, octets))
    return text.replace("%2A", "*").replace("%24", "$") if "%2" in text else text


def _encode(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """The path of a rule. Made by `read`.

    `pieces`: what stands between the wildcards. `is_anchored`: it ends with `$`. `length`: its
    octets, operators included; the longest pattern that matches decides. `folded`: the pieces in
    the second form of the query, where that differs for any URL.
    """

    pieces: tuple[str, ...]
    is_anchored: bool
    length: int
    folded: tuple[str, ...] = ()

    @classmethod
    def read(cls, value: bytes) -> Pattern | None:
        """Read the value of a rule; None if it can match no path, for it starts with neither `/`
        nor `*`.
        """
        if not value.startswith((b"/", b"*")):
            return None
        is_anchored = value.endswith(b"$")
        octets = (value[:-1] if is_anchored else value).decode("latin-1")
        first, *others = map(_normalise, octets.split("*"))
        length = len(first) + sum(map(len, others)) + len(others) + is_anchored
        if others:
            *middle, last = others
            others = [*filter(None, middle), last]
        pieces = (first, *others)
        return cls(pieces, is_anchored, length, _fold(pieces))

    @property
    def prefix(self) -> str | None:
        """What a path must start with, where that is all that is asked for."""
        if len(self.pieces) == 1:
            return None if self.is_anchored else self.pieces[0]
        return self.pieces[0] if self.pieces[1:] == ("",) else None

    def matches(self, target: str, folded: str) -> bool:
        """Whether it covers a target: as `normalise_target` gives it, and that with its query
        folded.
        """
        if _match(self.pieces, self.is_anchored, target):
            return True
        return bool(self.folded) and _match(self.folded, self.is_anchored, folded)


def _fold(pieces: tuple[str, ...]) -> tuple[str, ...]:
    text = "*".join(pieces)
    # A literal * cannot be told from a wildcard in the joined text, but neither is foldable.
    if "?" not in text or not _FOLDABLE.search(text):
        return ()
    index = next(index for index, piece in enumerate(pieces) if "?" in piece)
    behind = [piece.translate(_FOLDED) for piece in pieces[index + 1 :]]
    return (*pieces[:index], fold_query(pieces[index]), *behind)


def _match(pieces: tuple[str, ...], is_anchored: bool, target: str) -> bool:
    """Match from left to right, each piece at its first place: no other choice can do better, so
    there is nothing to go back to.
    """
    first = pieces[0]
    if not target.startswith(first):
        return False
    if len(pieces) == 1:
        return not is_anchored or target == first
    position = len(first)
    for piece in pieces[1:-1]:
        found = target.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    last = pieces[-1]
    if is_anchored:
        return target.endswith(last) and len(target) - len(last) >= position
    return target.find(last, position) >= 0
