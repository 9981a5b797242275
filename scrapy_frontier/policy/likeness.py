"""Content likeness: whether a page says what another one has said.

Of the main text of a page two things are kept: an exact digest and a 64-bit SimHash (Charikar 2002; Manku, Jain and
Das Sarma 2007 for crawlers). Both are the same on every machine and have a version; likeness is a relation between
fetches and never makes two URLs one.

1. The *main text* is the page without markup, scripts, navigation, header and footer, cut into phrases at tags and at
   the ends of sentences. What only repeats the page's own address is left out: its path, its number, its date, the
   words searched for.
2. The features of the SimHash are the phrases. Two pages are near if their hashes differ in `RADIUS` bits at the most.
3. The index has one table for each of `RADIUS + 1` bands of bits: of hashes that close, one band at least is equal.
   Each look-up sees a bounded number of candidates, the newest; memory is bounded by generations.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from scrapy_frontier.policy.recent import Recent

LIKENESS_VERSION: Final = 1

RADIUS: Final = 6
TEXT_LIMIT: Final = 131_072
"""Characters of a page that are looked at."""
PHRASES_LIMIT: Final = 256
"""Phrases of a page that make its SimHash and are looked up; the digests are of all."""
WORDS_JUDGED: Final = 8
"""Words without which a text says too little to be told from others."""
PHRASES_NEAR: Final = 8
"""Phrases without which only an equal text is alike: one phrase would turn too many bits."""
CANDIDATES: Final = 64

_LEFT_OUT: Final = (
    *("script", "style", "noscript", "template", "svg"),
    *("nav", "header", "footer", "aside", "head"),
)
_OPENING = re.compile(rf"<(?:!--|({'|'.join(_LEFT_OUT)})\b[^>]*>)".encode())
_CLOSING: Final = {name.encode(): re.compile(rf"</{name}\s*>".encode()) for name in _LEFT_OUT}
_COMMENT_END = re.compile(rb"-->")
_MAIN = re.compile(rb"<main\b[^>]*>(.*)</main\s*>", re.DOTALL)
_TAG = re.compile(rb"<[^>]*> *")
_PLAIN: Final = bytes.maketrans(
    b"\n\r\t\v\fABCDEFGHIJKLMNOPQRSTUVWXYZ", b"     abcdefghijklmnopqrstuvwxyz"
)
"""Small letters, and one kind of space. As bytes: tables for text are slow on anything but ASCII."""
_ONE_END: Final = bytes.maketrans(b"!?;:", b"....")
"""One kind of mark that ends a phrase where a space follows it."""
_MARKS: Final = bytes(
    byte for byte in range(128) if not chr(byte).isalnum() and chr(byte) not in "_\n"
)
_NO_MARKS: Final = bytes.maketrans(_MARKS, b" " * len(_MARKS))
_TOKEN = re.compile(r"\w+")
_MONTHS: Final = {
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
}
_DAYS: Final = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
_DATE_WORDS: Final = frozenset(
    {*_MONTHS, *_DAYS, *(name[:3] for name in _MONTHS | _DAYS), "sept", "st", "nd", "rd", "th"}
)
_PLACES: Final = tuple(
    sum(1 << (64 * number + bit) for number in range(PHRASES_LIMIT)) for bit in range(64)
)
"""For each bit of a digest: where it stands in all digests of a page, written one behind the other."""
_BANDS: Final = tuple(
    (64 * band // (RADIUS + 1), 64 * (band + 1) // (RADIUS + 1)) for band in range(RADIUS + 1)
)


@dataclass(frozen=True, slots=True)
class MainText:
    """The phrases of a page's main text, and the same without what repeats its own address."""

    phrases: tuple[str, ...]
    bare: tuple[str, ...]
    words: int


@dataclass(frozen=True, slots=True)
class Likeness:
    """Digest and SimHash as signed 64-bit numbers.

    `digest` is that of the whole main text, `bare` and `simhash` are of the text without what repeats the page's own
    address; `hashes` are those of the bare phrases.
    """

    digest: int
    bare: int
    simhash: int
    words: int
    hashes: tuple[int, ...]

    @property
    def is_judged(self) -> bool:
        """Whether the text is long enough to be told from others."""
        return self.words >= WORDS_JUDGED


class Seen(NamedTuple):
    """A page that an index knows."""

    digest: int
    simhash: int
    number: int
    url: str


class Match(NamedTuple):
    """The page that another one is like; `distance` is that of the SimHashes.

    `is_same`: the texts are equal. `is_exact`: they are, but for what repeats the pages' own addresses.
    """

    number: int
    url: str
    distance: int
    is_exact: bool
    is_same: bool = False


def main_text(html: str, url: str = "", *, is_counted: bool = False) -> MainText:
    """The main text of a page.

    `is_counted`: its URL is that of a date or of a page number, so that other dates and numbers in its text, which lead
    to its neighbours, say nothing of their own.
    """
    data = html[:TEXT_LIMIT].encode("utf-8", "replace").translate(_PLAIN)
    main = _MAIN.search(data) if b"<main" in data else None
    whole = _phrases(_without_boilerplate(main[1] if main else data))
    text = "\n".join(whole)
    own = _own_words(url, is_counted=is_counted)
    if is_counted:
        bare = [_without(phrase, own | _DATE_WORDS, has_numbers=False) for phrase in whole]
    else:
        bare = whole
        for word in own:
            if word in text:
                bare = [_without(phrase, own) if word in phrase else phrase for phrase in bare]
    words = text.count(" ") + len(whole)
    return MainText(tuple(whole), tuple(filter(None, bare)), words)


def _without_boilerplate(data: bytes) -> bytes:
    """A page without its comments, and without the elements that are no part of its main text."""
    kept, start = [], 0
    opening = _OPENING.search(data)
    while opening is not None:
        closing = _CLOSING.get(opening[1], _COMMENT_END).search(data, opening.end())
        if closing is not None:
            kept.append(data[start : opening.start()])
            start = closing.end()
        opening = _OPENING.search(data, opening.end() if closing is None else start)
    return b" ".join([*kept, data[start:]])


def _phrases(data: bytes) -> list[str]:
    """The phrases of a text with tags: words with one space between them, without marks."""
    data = _TAG.sub(b"\n", data).translate(_ONE_END).replace(b". ", b"\n")
    text = _single_spaced(data.translate(_NO_MARKS)).decode()
    lines = (text if text.isascii() else text.lower()).split("\n")
    return [phrase for line in lines if (phrase := line.strip(" "))]


def _single_spaced(data: bytes) -> bytes:
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data


def _without(phrase: str, dropped: frozenset[str], *, has_numbers: bool = True) -> str:
    """A phrase without some of its words, and perhaps without its numbers."""
    words = [word for word in phrase.split(" ") if word not in dropped]
    return " ".join(words if has_numbers else [word for word in words if not word.isdecimal()])


def _own_words(url: str, *, is_counted: bool) -> frozenset[str]:
    """The words of a page's own address: those of the last segment and the query, of the whole path for a date."""
    path, _, query = unquote(url).lower().partition("://")[2].partition("/")[2].partition("?")
    own = path if is_counted else path.rstrip("/").rpartition("/")[2]
    return frozenset(_TOKEN.findall(f"{own} {query}"))


def likeness_of(text: MainText) -> Likeness:
    """Digests and SimHash of a main text."""
    digests = [
        hashlib.blake2b(phrase.encode(), digest_size=8).digest()
        for phrase in text.bare[:PHRASES_LIMIT]
    ]
    digest = _digest("\n".join(text.phrases).encode())
    is_bare = text.bare == text.phrases
    return Likeness(
        digest,
        digest if is_bare else _digest("\n".join(text.bare).encode()),
        _simhash(digests),
        text.words,
        struct.unpack(f">{len(digests)}Q", b"".join(digests)),
    )


def distance(one: int, other: int) -> int:
    """How many bits of two SimHashes differ."""
    return ((one ^ other) & 0xFFFFFFFFFFFFFFFF).bit_count()


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def _simhash(digests: Sequence[bytes]) -> int:
    """The bits that most of the digests have set; of `PHRASES_LIMIT` digests at the most."""
    together = int.from_bytes(b"".join(digests), "big")
    half = len(digests) / 2
    result = 0
    for bit, places in enumerate(_PLACES):
        if (together & places).bit_count() > half:
            result |= 1 << bit
    return result - (1 << 64) if result >> 63 else result


class LikenessIndex:
    """The pages of a run by their text. Look-ups do not scan; the oldest pages are forgotten beyond `limit`."""

    def __init__(self, limit: int) -> None:
        self._exact: Recent[tuple[str, int], Seen] = Recent(2 * limit)
        self._bands: Recent[tuple[str, int, int], list[Seen]] = Recent(limit * len(_BANDS))

    def find(self, origin: str, likeness: Likeness) -> Match | None:
        """The page of this origin that has the same text, else the one with the nearest SimHash within `RADIUS`."""
        same = self._exact.get((origin, likeness.digest)) or self._exact.get(
            (origin, likeness.bare)
        )
        if same is not None:
            return Match(same.number, same.url, 0, True, same.digest == likeness.digest)
        if len(likeness.hashes) < PHRASES_NEAR:
            return None
        best: Match | None = None
        for key in _band_keys(origin, likeness.simhash):
            for seen in self._bands.get(key) or ():
                apart = distance(seen.simhash, likeness.simhash)
                if apart <= RADIUS and (best is None or apart < best.distance):
                    best = Match(seen.number, seen.url, apart, False)
        return best

    def add(self, origin: str, likeness: Likeness, number: int, url: str) -> None:
        """Remember a page that has no like."""
        self.restore(origin, likeness.digest, likeness.bare, likeness.simhash, number, url)

    def restore(
        self, origin: str, digest: int, bare: int, simhash: int, number: int, url: str
    ) -> None:
        """Remember a page of an earlier process."""
        seen = Seen(digest, simhash, number, url)
        self._exact.put((origin, digest), seen)
        self._exact.put((origin, bare), seen)
        for key in _band_keys(origin, simhash):
            found = self._bands.get(key)
            if found is None:
                self._bands.put(key, [seen])
            else:
                found.append(seen)
                del found[:-CANDIDATES]


def _band_keys(origin: str, simhash: int) -> list[tuple[str, int, int]]:
    bits = simhash & 0xFFFFFFFFFFFFFFFF
    return [(origin, low, bits >> low & ((1 << (high - low)) - 1)) for low, high in _BANDS]


class SeenPhrases:
    """Which phrases an origin has had: two filters of bits (Bloom 1970, with one hash), the older dropped when full."""

    _BITS: Final = 1 << 24
    _FULL: Final = 400_000

    def __init__(self) -> None:
        self._young = bytearray(self._BITS // 8)
        self._old = bytearray(0)
        self._count = 0

    def share_new(self, origin: str, hashes: Sequence[int]) -> float:
        """The share of these phrases that the origin had not had before; they are known from now on."""
        salt = int.from_bytes(hashlib.blake2b(origin.encode(), digest_size=8).digest(), "big")
        young, old, last = self._young, self._old, self._BITS - 1
        new = 0
        for number in hashes:
            place = (number ^ salt) & last
            index, bit = place >> 3, 1 << (place & 7)
            if not young[index] & bit:
                young[index] |= bit
                self._count += 1
                new += not (old and old[index] & bit)
        if self._count >= self._FULL:
            self._old, self._young, self._count = young, bytearray(self._BITS // 8), 0
        return new / len(hashes) if hashes else 0.0
