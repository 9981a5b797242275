"""The edges of one page, packed: targets as varints, what was said of each as compressed lines.

Most links of a crawl point to identities that are known already; a row for each would outweigh all
else in the store.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import StoreError

_LEVEL: Final = 6

REJECTED: Final = 0
"""The target of an observation whose reference has no fetch key."""


@dataclass(frozen=True, slots=True)
class Observation:
    """How a page spelled a reference, and what stood around it.

    `target` is the identity the reference leads to, `REJECTED` for none. `text` is the anchor text.
    `is_followed` tells a reference the spider yielded from one that only the link inventory saw.
    """

    target: int
    observed: str
    fragment: str = ""
    tag: str = ""
    rel: str = ""
    text: str = ""
    is_followed: bool = True

    def line(self) -> str:
        """All but the target, as one line of JSON without its empty end."""
        fields: list[str | int] = [self.observed, int(self.is_followed), self.fragment]
        fields += [self.tag, self.rel, self.text]
        while fields[-1] == "":
            fields.pop()
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_line(cls, target: int, line: str) -> Observation:
        """Read back what `line` made."""
        fields = [*json.loads(line), "", "", "", ""]
        observed, is_followed, fragment, tag, rel, text = fields[:6]
        return cls(target, observed, fragment, tag, rel, text, bool(is_followed))


def pack(identity_ids: Sequence[int]) -> bytes:
    """Pack identity ids, in their order, as zigzag varints (LEB128) of the steps between them."""
    packed = bytearray()
    append = packed.append
    previous = 0
    for number in identity_ids:
        value = (number - previous) << 1
        previous = number
        if value < 0:
            value = ~value
        while value > 0x7F:
            append(value & 0x7F | 0x80)
            value >>= 7
        append(value)
    return bytes(packed)


def unpack(packed: bytes) -> list[int]:
    """Read back what `pack` made."""
    identity_ids = []
    number = value = shift = 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        if byte > 0x7F:
            shift += 7
            continue
        number += ~(value >> 1) if value & 1 else value >> 1
        identity_ids.append(number)
        value = shift = 0
    if shift:
        raise StoreError(f"packed edges end inside a number: {packed[-16:].hex()}; run verify")
    return identity_ids


def pack_texts(lines: Iterable[tuple[int, str]]) -> bytes:
    """Pack pairs of a target and the `Observation.line` that belongs to it."""
    text = "".join(f"{target}\t{line}\n" for target, line in lines)
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def pack_observations(observations: Iterable[Observation]) -> bytes:
    """Pack observations, in their order."""
    return pack_texts((seen.target, seen.line()) for seen in observations)


def unpack_observations(packed: bytes) -> list[Observation]:
    """Read back what `pack_observations` or `pack_texts` made."""
    try:
        text = zlib.decompress(packed).decode("utf-8", "surrogatepass")
        # Not splitlines(): JSON leaves U+2028 and its like as they are.
        pairs = [line.split("\t", 1) for line in text.split("\n")[:-1]]
        return [Observation.from_line(int(target), line) for target, line in pairs]
    except (zlib.error, ValueError) as error:
        raise StoreError(f"packed observations cannot be read: {error}; run verify") from error
