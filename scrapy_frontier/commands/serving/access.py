"""Who may read the served page.

On a loopback address: whoever is on this machine, by a name of this machine. A page of the web that a browser here
shows may point a name of its own at 127.0.0.1 (DNS rebinding); its requests bear that name as `Host`, and are refused.
On any other address: who knows the token.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

COOKIE: Final = "frontier_token"

LOCAL_NAMES: Final = frozenset({"localhost", "localhost."})


class Refused(Exception):
    """A request that is not answered: the status, and what the client is told."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server. `hosts`: names that it may be called by, besides addresses and this machine's."""

    address: str
    token: str | None
    hosts: Collection[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, address: str, hosts: Collection[str] = ()) -> Access:
        """Access to a server on an address, with a new token where others than this machine can reach it."""
        token = None if is_loopback(address) else secrets.token_urlsafe(32)
        return cls(address, token, frozenset(host.lower() for host in hosts))

    def check_host(self, host: str | None) -> None:
        """Raise `Refused` for a `Host` that this server is not called by."""
        name = host_name(host or "")
        if name in self.hosts or name in LOCAL_NAMES or is_loopback(name):
            return
        if self.token is not None and (_is_address(name) or name == socket.gethostname().lower()):
            return
        raise Refused(
            421,
            f"This server does not answer for the host {name!r}; --allow-host names one that it does.",
        )

    def check_token(self, *given: str | None) -> None:
        """Raise `Refused` unless one of these is the token, where there is one."""
        if self.token is None:
            return
        token = self.token.encode()
        # All are compared, and each in constant time.
        fits = [secrets.compare_digest((one or "").encode(), token) for one in given]
        if not any(fits):
            raise Refused(
                401, "A token is needed: open the address that `frontier serve` has printed."
            )


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this machine's own and reachable from nowhere else."""
    if host in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """The name or address of a `Host` header, without its port (RFC 9110, section 7.2), in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
