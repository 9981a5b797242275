"""A name server on loopback with the names that a test gives it, and how to ask a resolver."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from types import TracebackType
from typing import Any

import dns.asyncresolver
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from scrapy_frontier.resolver.ageing import AgeingResolver
from scrapy_frontier.resolver.answers import Address, LookUp
from scrapy_frontier.resolver.options import ResolverOptions
from scrapy_frontier.resolver.ttl import DnsLookUp, TtlResolver
from scrapy_frontier.testing import MovedClock

OPTIONS = ResolverOptions(floor_s=10, ceiling_s=1000, negative_s=30, limit=100, timeout_s=5)


class NameServer:
    """Answers A, AAAA and CNAME over UDP. What it is asked is in `asked`: (name, kind) to count."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.silent: set[tuple[str, str]] = set()
        """Questions that get no answer."""
        self.lost: set[tuple[str, str]] = set()
        """Questions whose first datagram is lost."""
        self.broken: set[str] = set()
        """Names that get SERVFAIL."""
        self.may_answer = threading.Event()
        """Cleared: the answers are held back."""
        self.may_answer.set()
        self._records: dict[str, list[dns.rrset.RRset]] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def on(self, name: str, kind: str, ttl_s: int, *values: str) -> None:
        """What the name has of this kind, from now on."""
        record = dns.rrset.from_text(name + ".", ttl_s, "IN", kind, *values)
        others = [old for old in self._records.get(name, ()) if old.rdtype != record.rdtype]
        self._records[name] = [*others, record]

    def stub(self) -> dns.asyncresolver.Resolver:
        """A stub resolver that asks this server only."""
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = [self._socket.getsockname()[0]]
        resolver.port = self._socket.getsockname()[1]
        resolver.timeout = 0.1
        return resolver

    def __enter__(self) -> NameServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.may_answer.set()
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            data, peer = self._socket.recvfrom(4096)
            if not data:
                return
            query = dns.message.from_wire(data)
            [question] = query.question
            name = question.name.to_text(omit_final_dot=True)
            kind = dns.rdatatype.to_text(question.rdtype)
            self.asked[name, kind] += 1
            self.may_answer.wait()
            if (name, kind) in self.lost:
                self.lost.remove((name, kind))
            elif (name, kind) not in self.silent:
                self._socket.sendto(self._answer(query, name, question.rdtype).to_wire(), peer)

    def _answer(self, query: dns.message.Message, name: str, rdtype: Any) -> dns.message.Message:
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if name in self.broken:
            answer.set_rcode(dns.rcode.SERVFAIL)
        elif name not in self._records:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        while name in self._records:
            alias = next((r for r in self._records[name] if r.rdtype == dns.rdatatype.CNAME), None)
            found = alias or next((r for r in self._records[name] if r.rdtype == rdtype), None)
            if found is not None:
                answer.answer.append(found)
            name = alias[0].target.to_text(omit_final_dot=True) if alias else ""
        return answer


def ttl_resolver(
    server: NameServer, clock: MovedClock, options: ResolverOptions = OPTIONS, **kwargs: Any
) -> TtlResolver:
    """A resolver that asks this server, and reads this machine's hosts file unless it is given another."""
    look_up = DnsLookUp(options.timeout_s, server.stub, **kwargs)
    return TtlResolver(reactor, options, look_up, clock)


def resolver_of(
    look_up: LookUp, clock: MovedClock, options: ResolverOptions = OPTIONS
) -> AgeingResolver:
    """A resolver with look-ups of another kind."""
    return AgeingResolver(reactor, options, look_up, clock)


class Told:
    """A receiver: `addresses` as they come, `done` fires with them at the end."""

    def __init__(self) -> None:
        self.addresses: list[Address] = []
        self.resolution: Any = None
        self.done: Deferred[list[Address]] = Deferred()

    def resolutionBegan(self, resolution: Any) -> None:
        self.resolution = resolution

    def addressResolved(self, address: Address) -> None:
        assert self.resolution is not None
        self.addresses.append(address)

    def resolutionComplete(self) -> None:
        self.done.callback(self.addresses)


def ask(resolver: AgeingResolver, host: str, *args: Any) -> Told:
    """Ask as Twisted's endpoints do."""
    told = Told()
    assert resolver.resolveHostName(told, host, *args) is told.resolution
    return told


async def hosts(resolver: AgeingResolver, host: str, *args: Any) -> list[str]:
    """The addresses of a host as text."""
    return [address.host for address in await ask(resolver, host, *args).done]
