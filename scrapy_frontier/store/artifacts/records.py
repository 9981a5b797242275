"""A response as it was received, without its body: what a transition's evidence names.

The body is an artifact of its own, so that equal bodies are kept once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from scrapy_frontier.errors import ArtifactError

WIRE: Final = "wire"
"""The form of a response whose body is as the wire sent it, its transfer coding undone."""

SEEN: Final = "seen"
"""The form of a response whose body is as the spider saw it: content coding undone, middlewares through with it."""

WITHHELD: Final = "(withheld)"
"""Stands for the value of a request's header that is a secret."""

SECRETS: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
"""Headers of a request whose values are withheld, in lower case."""

Header = tuple[str, str]
"""Name and value, both as Latin-1 reads their bytes."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a message: its size in bytes, the digest of its bytes in hex, and whether they were kept."""

    size: int
    digest: str
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Exchange:
    """The request that a response answers, as it was when it left for the downloader; secrets are withheld."""

    method: str
    url: str
    headers: tuple[Header, ...]
    body: Body

    @classmethod
    def of(cls, method: str, url: str, headers: tuple[Header, ...], body: Body) -> Exchange:
        """A request without the values that must not lie about."""
        shown = tuple(
            (name, WITHHELD if name.lower() in SECRETS else value) for name, value in headers
        )
        return cls(method, url, shown, body)


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """A response: `received_ms` in milliseconds since the epoch, names of headers as Scrapy spells them."""

    form: str
    url: str
    status: int
    protocol: str | None
    headers: tuple[Header, ...]
    body: Body
    received_ms: int
    flags: tuple[str, ...] = ()
    ip_address: str | None = None
    request: Exchange | None = None
    version: int = field(default=1)
    parts: Mapping[str, Body] = field(default_factory=dict)
    """What was kept beside it, by name: of a rendered page its `sub_requests`; a `screenshot` and a `har` if wanted."""

    @property
    def bodies(self) -> Iterator[Body]:
        """All that it names."""
        yield self.body
        if self.request is not None:
            yield self.request.body
        yield from self.parts.values()

    def dump(self) -> bytes:
        """The record as bytes, the same for equal records."""
        data = asdict(self)
        if not self.parts:
            del data["parts"]
        return json.dumps(data, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def load(cls, content: bytes) -> ResponseRecord:
        """The record of these bytes. Raises `ArtifactError` where they are none."""
        try:
            found: dict[str, Any] = json.loads(content.decode("utf-8", "surrogatepass"))
            request = found.pop("request")
            return cls(
                **{
                    **found,
                    "headers": _headers(found["headers"]),
                    "flags": tuple(found["flags"]),
                    "body": Body(**found["body"]),
                    "request": None if request is None else _exchange(request),
                    "parts": {name: Body(**body) for name, body in found.get("parts", {}).items()},
                }
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ArtifactError(f"these bytes are no record of a response: {error!r}") from error


def _exchange(found: dict[str, Any]) -> Exchange:
    return Exchange(
        **{**found, "headers": _headers(found["headers"]), "body": Body(**found["body"])}
    )


def _headers(found: list[list[str]]) -> tuple[Header, ...]:
    return tuple((str(name), str(value)) for name, value in found)
