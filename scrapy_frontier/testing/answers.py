"""What a scripted server is asked and what it answers, faults included."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from http import HTTPStatus
from typing import Literal, TypeAlias

Headers: TypeAlias = Sequence[tuple[str, str | bytes]]
"""Pairs, so that a name may come twice. Text is sent as UTF-8; give bytes for anything else."""

Fault: TypeAlias = Literal["reset", "close", "stall"]
"""How the connection fails: a TCP reset, a clean close, or silence until the client goes away."""

Part: TypeAlias = Literal["nothing", "head", "half"]
"""What is sent before a fault: nothing, the head, or the head and half of the body."""

HTML = "text/html; charset=utf-8"
BODILESS = frozenset({204, 304})


@dataclass(frozen=True)
class Request:
    """One request as it arrived: `target` is raw, the names in `headers` are in lower case."""

    origin: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    is_kept_alive: bool = True

    @property
    def path(self) -> str:
        """The target without its query, still percent-encoded."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The raw query without its question mark."""
        return self.target.partition("?")[2]


@dataclass(frozen=True)
class Answer:
    """One scripted answer; durations are in seconds.

    `delay_s` passes before the first byte, and the body is spread over `trickle_s`.
    `content_length` is sent as it stands, true or not; the server closes the connection after such
    an answer. `raw` replaces status line, headers and body by bytes of your own. With a `fault`,
    what `sent` says goes out, or all of `raw`, and then the connection fails.
    """

    body: str | bytes = b""
    status: int = 200
    headers: Headers = ()
    content_type: str = HTML
    delay_s: float = 0.0
    trickle_s: float = 0.0
    content_length: int | None = None
    is_chunked: bool = False
    is_gzipped: bool = False
    is_closing: bool = False
    fault: Fault | None = None
    sent: Part = "nothing"
    raw: bytes | None = None

    @property
    def is_instant(self) -> bool:
        """True where the whole answer can be written at once."""
        return not (self.delay_s or self.trickle_s or self.fault)

    @property
    def ends_connection(self) -> bool:
        """True where the client cannot use the connection again afterwards."""
        return self.is_closing or self.content_length is not None or self.raw is not None

    @cached_property
    def payload(self) -> bytes:
        """The body as it goes on the wire, before chunking."""
        body = self.body.encode() if isinstance(self.body, str) else self.body
        return gzip.compress(body, mtime=0) if self.is_gzipped else body

    @cached_property
    def head(self) -> bytes:
        """Status line and headers up to, and without, the Connection header and the empty line."""
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}".encode()]
        lines += [_line(name, value) for name, value in self._all_headers()]
        return b"\r\n".join(lines) + b"\r\n"

    def _all_headers(self) -> Iterable[tuple[str, str | bytes]]:
        yield from self.headers
        if self.status in BODILESS:
            return
        given = {name.lower() for name, _ in self.headers}
        if self.content_type and "content-type" not in given:
            yield "Content-Type", self.content_type
        if self.is_gzipped:
            yield "Content-Encoding", "gzip"
        if self.is_chunked:
            yield "Transfer-Encoding", "chunked"
        elif "content-length" not in given:
            length = len(self.payload) if self.content_length is None else self.content_length
            yield "Content-Length", str(length)


Handler: TypeAlias = Callable[[Request], "Answer | Awaitable[Answer]"]
Route: TypeAlias = "Answer | Sequence[Answer] | Handler"
"""One answer for ever, answers in turn (the last one repeats), or a function of the request."""


def page(title: str = "", links: Iterable[str] = (), text: str = "") -> Answer:
    """An HTML page with a heading, a paragraph and one link a line: enough for most crawls."""
    anchors = "".join(f'<li><a href="{escape(link)}">{escape(link)}</a></li>\n' for link in links)
    return Answer(
        f"<!DOCTYPE html>\n<html><head><title>{escape(title)}</title></head>\n"
        f"<body><h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n<ul>\n{anchors}</ul></body></html>\n"
    )


def redirect(location: str | bytes, status: int = 302) -> Answer:
    """A redirect with `location` as its raw Location header."""
    return Answer(status=status, headers=(("Location", location),))


def text(body: str, status: int = 200) -> Answer:
    """A plain text answer, as robots.txt is."""
    return Answer(body, status=status, content_type="text/plain; charset=utf-8")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _line(name: str, value: str | bytes) -> bytes:
    return name.encode() + b": " + (value.encode() if isinstance(value, str) else value)
