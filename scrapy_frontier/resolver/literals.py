"""IP literals need no look-up (RFC 3986, section 3.2.2), which the default resolver asks for in vain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_frontier.resolver.ageing import AgeingResolver
from scrapy_frontier.resolver.answers import Address, read_address
from scrapy_frontier.resolver.resolution import Receiver, Resolution


@implementer(IHostnameResolver)
class LiteralResolver:
    """Answers for addresses, and hands all names on to the resolver that the process has."""

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver

    def __repr__(self) -> str:
        return f"<LiteralResolver before {self._resolver!r}>"

    def resolveHostName(  # noqa: N802  # Twisted's interface
        self,
        resolutionReceiver: Receiver,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type[Address]] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        """Tell the receiver the address that the host is, or what the resolver behind says."""
        literal = read_address(hostName)
        if literal is None:
            return self._resolver.resolveHostName(
                resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
            )
        resolution = Resolution(
            resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
        )
        resolution.answer([literal])
        return resolution


def resolve_literals() -> None:
    """Have this process take addresses for what they are, whatever its resolver. May be called again."""
    from twisted.internet import reactor

    resolver = getattr(reactor, "nameResolver", None)
    if resolver is not None and not isinstance(resolver, (AgeingResolver, LiteralResolver)):
        reactor.installNameResolver(LiteralResolver(resolver))
