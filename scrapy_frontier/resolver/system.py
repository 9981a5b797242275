"""Look-ups by the operating system, with its hosts file, search domains and name services."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from scrapy_frontier.resolver.answers import Address, Answer

NO_ADDRESS: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""Errors of getaddrinfo that say for certain that there is none."""


class SystemLookUp:
    """`getaddrinfo` in a thread of the reactor's pool. It tells no TTL."""

    def __init__(self, reactor: Any, getaddrinfo: Callable[..., Any] = socket.getaddrinfo) -> None:
        self._reactor = reactor
        self._getaddrinfo = getaddrinfo

    def __call__(self, name: str) -> Deferred[Answer]:
        """All addresses of a name."""
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._ask, name)

    def _ask(self, name: str) -> Answer:
        try:
            found = self._getaddrinfo(name, 0, socket.AF_UNSPEC, socket.SOCK_STREAM)
        except OSError as error:
            return Answer(failure=str(error), is_lasting=error.errno in NO_ADDRESS)
        except ValueError as error:  # also UnicodeError: a label that is too long or empty
            return Answer(failure=str(error), is_lasting=True)
        addresses = (_address(family, place) for family, _, _, _, place in found)
        return Answer(tuple(dict.fromkeys(filter(None, addresses))))


def _address(family: int, place: Any) -> Address | None:
    if family == socket.AF_INET:
        return IPv4Address("TCP", *place)
    return IPv6Address("TCP", *place) if family == socket.AF_INET6 else None
