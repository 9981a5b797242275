"""The resolver that asks the name servers itself, and so knows how long each answer holds. Needs dnspython."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

import dns.asyncresolver
import dns.exception
import dns.resolver
from twisted.internet.address import IPv6Address
from twisted.internet.defer import Deferred

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.resolver.ageing import AgeingResolver
from scrapy_frontier.resolver.answers import Address, Answer, LookUp, read_address
from scrapy_frontier.resolver.files import RESOLV_CONF, HostsFile, WatchedFile
from scrapy_frontier.resolver.options import ResolverOptions

OTHER_FAMILY_S: Final = 2.0
"""How long the addresses of one family wait for those of the other: there are servers that leave the question for one
of them unanswered. (RFC 8305, section 3, waits for less; but what is missing here is missing for a whole TTL.)"""


class TtlResolver(AgeingResolver):
    """All addresses of a name as the name servers tell them, kept for their TTL, between floor and ceiling.

    The hosts file is read first. Search domains and options are those of resolv.conf. What only other services of the
    system know (multicast DNS, LDAP and so on) is not found.
    """

    @classmethod
    def _make_look_up(cls, reactor: Any, options: ResolverOptions) -> LookUp:
        return DnsLookUp(options.timeout_s)


class DnsLookUp:
    """Asks for A and AAAA at once. Must be called while the event loop runs.

    `make_resolver` gives the stub resolver, and is asked again when resolv.conf changes.
    """

    def __init__(
        self,
        timeout_s: float,
        make_resolver: Callable[[], dns.asyncresolver.Resolver] = dns.asyncresolver.Resolver,
        hosts: HostsFile | None = None,
        has_route: Callable[[Address], bool] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._make_resolver = make_resolver
        self._hosts = hosts or HostsFile()
        self._has_route = has_route or has_route_to
        self._configuration = WatchedFile(RESOLV_CONF)
        self._configuration.notice_change()
        try:
            self._resolver = make_resolver()
        except dns.resolver.NoResolverConfiguration as exc:
            raise ConfigError(
                f"TWISTED_DNS_RESOLVER: no name server is named in {RESOLV_CONF}: {exc}; name one there, or choose"
                " scrapy_frontier.resolver.AgeingResolver"
            ) from exc

    def __call__(self, name: str) -> Deferred[Answer]:
        """All addresses of a name, and for how long they hold: as long as the shortest-lived record on the way."""
        return Deferred.fromFuture(asyncio.ensure_future(self._look_up(name)))

    async def _look_up(self, name: str) -> Answer:
        listed = self._hosts.addresses_of(name)
        if listed:
            return Answer(listed, ttl_s=0.0)
        self._reconfigure()
        four = asyncio.ensure_future(self._ask(name, "A"))
        six = asyncio.ensure_future(self._ask(name, "AAAA"))
        done, missing = await asyncio.wait({four, six}, return_when=asyncio.FIRST_COMPLETED)
        if missing:
            has_some = any(task.result().addresses for task in done)
            _, missing = await asyncio.wait(missing, timeout=OTHER_FAMILY_S if has_some else None)
        for task in missing:
            task.cancel()
        return self._joined(*(task.result() for task in (four, six) if task not in missing))

    def _reconfigure(self) -> None:
        if self._configuration.notice_change():
            try:
                self._resolver = self._make_resolver()
            except dns.resolver.NoResolverConfiguration:
                return  # half-written, or the network is down: the servers known so far may still be there

    async def _ask(self, name: str, kind: str) -> Answer:
        try:
            found = await self._resolver.resolve(name, kind, lifetime=self._timeout_s, search=True)
        except (dns.resolver.LifetimeTimeout, dns.resolver.NoNameservers, OSError) as error:
            return Answer(failure=str(error))
        except dns.exception.DNSException as error:
            # No such name, no record of this kind, an endless alias, or no name at all.
            return Answer(failure=str(error), is_lasting=True)
        addresses = (read_address(record.address) for record in found)
        return Answer(tuple(filter(None, addresses)), float(found.chaining_result.minimum_ttl))

    def _joined(self, *answers: Answer) -> Answer:
        """Both families as one answer; IPv6 goes first, unless there is no way to it (RFC 6724, section 6)."""
        good = [answer for answer in answers if answer.addresses]
        if not good:
            failure = "; ".join(dict.fromkeys(answer.failure for answer in answers))
            return Answer(failure=failure, is_lasting=all(answer.is_lasting for answer in answers))
        addresses = [address for answer in good for address in answer.addresses]
        six = [address for address in addresses if isinstance(address, IPv6Address)]
        if six and self._has_route(six[0]):
            addresses.sort(key=lambda address: not isinstance(address, IPv6Address))
        ttl_s = min(answer.ttl_s for answer in good if answer.ttl_s is not None)
        return Answer(tuple(addresses), ttl_s)


def has_route_to(address: Address) -> bool:
    """Whether this machine knows a way to an IPv6 address. Sends nothing: it only "connects" a datagram socket."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect((address.host, 53))
    except OSError:
        return False
    return True
