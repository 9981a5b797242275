"""Origins: scheme, host and port, the unit of manners and of ownership.

The text of an origin is what `Resolved.origin` holds: `scheme://host[:port]`, the port left out
where it is the scheme's default, a trailing dot of the host kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import IdentityError

PARTITIONS: Final = 256
"""How many partitions the origins are spread over. It is part of every store: it never changes."""

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """An origin in its parts; `host` of an IPv6 address keeps its brackets."""

    scheme: str
    host: str
    port: int


def origin_of(request_url: str) -> str:
    """Return the origin of a request URL; raise `IdentityError` for what is none."""
    end = request_url.find("/", len("https://"))
    if end < 0 or not request_url.startswith(("http://", "https://")):
        raise IdentityError(f"{request_url!r} is not a request URL: resolve it first")
    return request_url[:end]


def split_origin(origin: str) -> Origin:
    """Take an origin apart, or that of a request URL; anything else raises `IdentityError`."""
    scheme, separator, rest = origin.partition("://")
    authority = rest.partition("/")[0]
    if scheme not in DEFAULT_PORTS or not separator:
        raise IdentityError(f"{origin!r} is not an origin: expected http(s)://host[:port]")
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return Origin(scheme, authority, DEFAULT_PORTS[scheme])
    if not port.isascii() or not port.isdigit():
        raise IdentityError(f"{origin!r} is not an origin: its port is {port!r}")
    return Origin(scheme, host, int(port))


def host_of(origin: str) -> str:
    """Return the host of an origin or request URL, as `split_origin` gives it."""
    return split_origin(origin).host


def partition(origin: str) -> int:
    """Return the partition of an origin, below `PARTITIONS`, the same in every process."""
    return hashlib.blake2b(origin.encode(), digest_size=1).digest()[0]
