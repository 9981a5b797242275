"""Whether a response is whole, beyond what HTTP itself tells of its length."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

TRUNCATED: Final = "download.truncated"
UNASKED_PART: Final = "http.206"

DATALOSS: Final = "dataloss"
"""Scrapy's flag of a response that is not whole."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_STEP: Final = 1 << 20
_LIMIT: Final = 1 << 28
"""Bytes that are unpacked to look for the end of a stream, at the most."""


def fault_of_body(request: Request, response: Response) -> str | None:
    """The cause for which this response is not what was asked for, None where it is.

    A gzip stream without its trailer is cut (RFC 1952, section 2.3). Where a `Content-Length` was kept the server has
    sent all that it has, and would again. A 206 to a request without `Range` is a part that nobody asked for.
    """
    if DATALOSS in response.flags:
        return None
    if response.status == 206 and "Range" not in request.headers:
        return UNASKED_PART
    if "Content-Length" in response.headers or not response.body:
        return None
    encodings = b",".join(response.headers.getlist("Content-Encoding")).lower().split(b",")
    if encodings[-1].strip() not in {b"gzip", b"x-gzip"}:
        return None
    return None if _ends(response.body) else TRUNCATED


def _ends(body: bytes) -> bool:
    """Whether a gzip stream comes to its end; one that is no gzip at all is another's fault to find."""
    stream = zlib.decompressobj(_GZIP)
    unpacked = 0
    rest = body
    try:
        while rest and not stream.eof and unpacked < _LIMIT:
            unpacked += len(stream.decompress(rest, _STEP))
            rest = stream.unconsumed_tail
    except zlib.error:
        return True
    return stream.eof or unpacked >= _LIMIT
