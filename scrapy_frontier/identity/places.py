"""A place: a part of the web that a setting names, as `[scheme://]host[:port][/path]`.

=======================  ===========================================================================
written                  covers
=======================  ===========================================================================
``example.org``          that host, http and https, every port, every path
``*.example.org``        that host and all its subdomains
``*``                    every host
``https://example.org``  one origin: that scheme and its default port
``example.org:8080``     that port only, http and https
``example.org/docs``     the path ``/docs`` and what lies below it (``/docs/...``), either with a
                         query or with path parameters (``/docs?...``, ``/docs;...``); not
                         ``/docsearch``
``example.org/docs/``    what lies below ``/docs/``; not ``/docs`` itself
=======================  ===========================================================================

Hosts are compared as hosts: in lower case, in their ASCII form (IDNA), without the trailing dot;
never as substrings. Paths are compared as the fetch key compares them (`comparison_url`): with
regard to case, and after `%7E` = `~`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url
from scrapy_frontier.identity.origins import DEFAULT_PORTS, Origin, split_origin
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve

_FORM: Final = "expected [http(s)://]host[:port][/path], where host may be *.example.org or *"
_BEHIND_A_PREFIX: Final = "/?;"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the web. What is empty (port: None) covers everything.

    `path` is in comparison form; `text` is the place as it was written.
    """

    text: str
    scheme: str
    host: str
    has_subdomains: bool
    port: int | None
    path: str

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read a place as a setting spells it; raise `ConfigError` with fault and remedy."""
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"{text!r} names no place: {_FORM}")
        scheme, authority, path = _split(text.strip())
        wildcard, named = _take_wildcard(authority)
        stand_in = "host" if wildcard == "*" else ""
        origin, path = _resolve(f"{scheme or 'http'}://{stand_in}{named}{path}", text)
        if wildcard == "*." and _is_address(origin.host):
            raise ConfigError(f"{text!r}: an IP address has no subdomains; leave out the '*.'")
        has_port = bool(scheme) or ":" in named.rpartition("]")[2]
        return cls(
            text=text,
            scheme=scheme,
            host="" if stand_in else origin.host.removesuffix("."),
            has_subdomains=wildcard == "*.",
            port=origin.port if has_port else None,
            path="" if path == "/" else path,
        )

    def covers_origin(self, origin: Origin) -> bool:
        """Whether URLs of this origin may lie in the place."""
        return (
            (not self.scheme or self.scheme == origin.scheme)
            and (self.port is None or self.port == origin.port)
            and self._covers_host(origin.host.removesuffix("."), has_subdomains=False)
        )

    def covers_path(self, path: str) -> bool:
        """Whether a path, with or without its query and in comparison form, lies in the place."""
        prefix = self.path
        if not path.startswith(prefix):
            return False
        if not prefix or prefix[-1] == "/":
            return True
        # The slice is empty, and so contained, where the path ends with the prefix.
        return path[len(prefix) : len(prefix) + 1] in _BEHIND_A_PREFIX

    def is_narrower_than(self, other: Place) -> bool:
        """Whether `other` covers all that this place covers, and more."""
        return self._lies_in(other) and not other._lies_in(self)

    def _lies_in(self, other: Place) -> bool:
        return (
            (not other.scheme or other.scheme == self.scheme)
            and (other.port is None or other.port == self.port)
            and other._covers_host(self.host, has_subdomains=self.has_subdomains)
            and other.covers_path(self.path)
        )

    def _covers_host(self, host: str, *, has_subdomains: bool) -> bool:
        if not self.host:
            return True
        if host == self.host:
            return self.has_subdomains or not has_subdomains
        return self.has_subdomains and host.endswith(f".{self.host}")


def _split(text: str) -> tuple[str, str, str]:
    """Split into scheme, authority and path, refusing what a place cannot hold."""
    for mark, remedy in (
        ("?", "places are paths; leave out the query"),
        ("#", "fragments are never requested; leave it out"),
        ("@", "leave out the credentials"),
        ("\\", "write / for \\"),
    ):
        if mark in text:
            raise ConfigError(f"{text!r} holds a {mark!r}: {remedy}")
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    if scheme and scheme not in DEFAULT_PORTS:
        raise ConfigError(f"{text!r}: the scheme is {scheme!r}; write http:// or https://, or none")
    authority, slash, path = text[match.end() if match else 0 :].partition("/")
    if not authority:
        raise ConfigError(f"{text!r} has no host: {_FORM}; for every host write '*{slash}{path}'")
    if "*" in path:
        raise ConfigError(
            f"{text!r} has a '*' in its path: write the path up to there, it is a prefix"
        )
    return scheme, authority, f"/{path}"


def _take_wildcard(authority: str) -> tuple[str, str]:
    if authority.startswith("*."):
        return "*.", authority[2:]
    if authority == "*" or authority.startswith("*:"):
        return "*", authority[1:]
    return "", authority


def _resolve(url: str, text: str) -> tuple[Origin, str]:
    resolved = resolve(url)
    if isinstance(resolved, Rejection) or "*" in resolved.origin:
        raise ConfigError(f"{text!r} is no place: {_FORM}")
    return split_origin(resolved.origin), comparison_url(resolved.url)[len(resolved.origin) :]


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.rstrip(".").rpartition(".")[2].isdigit()
