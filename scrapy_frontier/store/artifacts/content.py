"""Bytes under the digest of themselves: equal bytes are one artifact, altered ones are found."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from typing import Final

from scrapy_frontier.errors import ArtifactError
from scrapy_frontier.store.artifacts.places import Kept, Place, plain_name

DIGEST_SIZE: Final = 32
"""Bytes of a digest: BLAKE2b, as the payload of an attempt has it."""

LEVEL: Final = 6
"""Level of compression: a page of HTML takes about half a millisecond."""

_CHUNK: Final = 1 << 20
_NAME: Final = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})\.gz")


def digest_of(content: bytes) -> bytes:
    """The digest that content is kept under."""
    return hashlib.blake2b(content, digest_size=DIGEST_SIZE).digest()


def name_of(digest: bytes) -> str:
    """The name of an artifact in its place."""
    text = digest.hex()
    return f"{text[:2]}/{text}.gz"


def digest_in(name: str) -> bytes | None:
    """The digest that a name stands for, None where it is no artifact's name."""
    found = _NAME.fullmatch(plain_name(name))
    return bytes.fromhex(found[1]) if found else None


class Artifacts:
    """The artifacts of one place, each a gzip file. May be used from any thread."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @property
    def url(self) -> str:
        """Where they lie."""
        return self.place.url

    def put(self, content: bytes, digest: bytes | None = None) -> bytes:
        """Keep content, and return its digest once it is durable. `digest`: where it is known already."""
        digest = digest or digest_of(content)
        self.place.put(name_of(digest), gzip.compress(content, LEVEL, mtime=0))
        return digest

    def get(self, digest: bytes) -> bytes:
        """The content of an artifact. Raises `ArtifactError` where it is missing or altered."""
        return b"".join(self.chunks(digest))

    def check(self, digest: bytes) -> int:
        """Read an artifact through without holding it; its size in bytes. Raises as `get` does."""
        return sum(map(len, self.chunks(digest)))

    def chunks(self, digest: bytes) -> Iterator[bytes]:
        """The content in pieces; that it was altered shows after the last one at the latest."""
        name = name_of(digest)
        found = hashlib.blake2b(digest_size=DIGEST_SIZE)
        try:
            with self.place.open(name) as raw, gzip.GzipFile(fileobj=raw) as file:
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
                    yield chunk
        except (OSError, EOFError, zlib.error) as error:
            raise ArtifactError(f"{self._shown(name)} cannot be read: {error}") from error
        if found.digest() != digest:
            raise ArtifactError(f"{self._shown(name)} was altered: its bytes have another digest")

    def listing(self) -> Iterator[tuple[bytes, Kept]]:
        """(digest, file) of all artifacts, in no order."""
        for kept in self.place.listing():
            digest = digest_in(kept.name)
            if digest is not None:
                yield digest, kept

    def _shown(self, name: str) -> str:
        return f"evidence {self.url.rstrip('/')}/{name}"

    def __repr__(self) -> str:
        return f"<Artifacts in {self.url}>"
