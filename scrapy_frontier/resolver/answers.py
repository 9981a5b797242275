"""What a look-up gave, and how names and addresses are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

import ada_url
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred

Address: TypeAlias = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one look-up, good or bad.

    `addresses`: in the order in which they are to be tried, with port 0. `ttl_s`: for how many seconds the answer
    says that it holds, None where that is not known. `failure`: why there is no address. `is_lasting`: that there is
    none is certain (no such name, no address of that name), and not just a failure to find out.
    """

    addresses: tuple[Address, ...] = ()
    ttl_s: float | None = None
    failure: str = ""
    is_lasting: bool = False


LookUp: TypeAlias = Callable[[str], "Deferred[Answer]"]
"""Looks a name up, as `ascii_name` writes it; never fails, a failure is an answer too."""


def ascii_name(host: str) -> str:
    """The name that is asked for, in ASCII and lower case. Raises ValueError where there is none.

    Twisted hands over international names in Unicode. Python's own codec would encode some of them otherwise than
    the URL Standard (section 3.3, "domain to ASCII") and so ask for another host: "strasse" for "straße".
    """
    if host.isascii():
        return host.lower()
    name = ada_url.idna_to_ascii(host).decode("ascii")
    if not name:
        raise ValueError(f"not a host name: {host!r}")
    return name


def read_address(text: str) -> Address | None:
    """The address that this is, None if it is a name. One with a zone, as in `fe80::1%eth0`, is for the system."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if address.version == 4:
        return IPv4Address("TCP", text, 0)
    return None if address.scope_id else IPv6Address("TCP", text, 0)
