"""The query of a reference in the encoding of its document.

URL Standard, section 1.3, "percent-encode after encoding": a page in another encoding than UTF-8
has its query characters sent in that encoding, and what the encoding lacks as the percent-encoded
form of `&#N;`. The path is UTF-8 always. This is done before the URL parser, which knows no other
encoding than UTF-8: the reference handed on has an ASCII query.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from w3lib.encoding import resolve_encoding

_SPECIAL_SCHEMES = frozenset({"http", "https", "ftp", "file"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PRINTABLE = bytes(range(0x20, 0x7F))
_C0_CONTROL_OR_SPACE: Final = "".join(map(chr, range(0x21)))
_TAB_AND_NEWLINES = str.maketrans("", "", "\t\n\r")

# The special-query percent-encode set of the URL Standard, section 1.3.
_ESCAPED = frozenset((*range(0x20), *b" \"#<>'", *range(0x7F, 0x100)))
_QUERY_BYTES = tuple(f"%{b:02X}" if b in _ESCAPED else chr(b) for b in range(0x100))

_NUMERIC_REFERENCE: Final = "scrapy_frontier.numeric_reference"


def _numeric_reference(code_point: int) -> str:
    return f"%26%23{code_point}%3B"


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    unencodable = error.object[error.start : error.end]
    return "".join(_numeric_reference(ord(character)) for character in unencodable), error.end


codecs.register_error(_NUMERIC_REFERENCE, _replace_unencodable)

# Where Python's codec encodes a character that the encoder of the Encoding Standard refuses.
# ISO-2022-JP refuses the controls of its own escapes (section 12.2.2) and reports them as U+FFFD;
# gb18030 refuses U+E5E5 (section 10.2.2).
_REFUSED = {
    "iso2022_jp": str.maketrans(dict.fromkeys("\x0e\x0f\x1b", _numeric_reference(0xFFFD))),
    "gb18030": str.maketrans({"\ue5e5": _numeric_reference(0xE5E5)}),
}


def strip_reference(text: str) -> str:
    """Take away what a URL parser takes away first: outer controls and spaces, inner newlines."""
    return text.strip(_C0_CONTROL_OR_SPACE).translate(_TAB_AND_NEWLINES)


@dataclass(frozen=True, slots=True)
class _QueryCodec:
    """A codec that can write queries; `refused` is what its WHATWG encoder will not encode."""

    name: str
    refused: dict[int, str]


def encode_query(reference: str, encoding: str) -> str:
    """Return `reference` with its query in ASCII, as a document in `encoding` would send it.

    The reference comes back unchanged where the encoding makes no difference: UTF-8, UTF-16 and
    unknown encodings (their output encoding is UTF-8), schemes that are not special, and references
    without a query.
    """
    codec = _query_codec(encoding)
    if codec is None or "?" not in reference:
        return reference
    if reference.isascii() and not codec.refused:
        return reference
    text = strip_reference(reference)
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() not in _SPECIAL_SCHEMES:
        return reference
    rest, mark, fragment = text.partition("#")
    before, question, query = rest.partition("?")
    return f"{before}{question}{_percent_encode(query, codec)}{mark}{fragment}"


def _percent_encode(query: str, codec: _QueryCodec) -> str:
    data = query.translate(codec.refused).encode(codec.name, _NUMERIC_REFERENCE)
    return "".join([_QUERY_BYTES[byte] for byte in data])


@lru_cache(maxsize=256)
def _query_codec(encoding: str) -> _QueryCodec | None:
    """Return the codec for the queries of a document in `encoding`, None where that is UTF-8.

    For encodings that do not keep ASCII it is UTF-8 (Encoding Standard, "get an output encoding").
    """
    try:
        name = resolve_encoding(encoding)
    except ValueError:  # a NUL in the name
        return None
    if name is None or name == "utf-8" or not keeps_ascii(name):
        return None
    return _QueryCodec(name, _REFUSED.get(name, {}))


@lru_cache(maxsize=256)
def keeps_ascii(encoding: str) -> bool:
    """Whether ASCII text is the same in this encoding: not so in UTF-16, UTF-7, HZ, EBCDIC."""
    try:
        return _PRINTABLE.decode("ascii").encode(encoding) == _PRINTABLE
    except (LookupError, ValueError):
        return False
