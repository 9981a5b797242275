"""The resolver that Scrapy's process installs: a cache that ages, in front of look-ups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IHostnameResolver
from twisted.python.failure import Failure
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_frontier.clock import Clock, SystemClock
from scrapy_frontier.logs import get_logger
from scrapy_frontier.resolver.answers import Address, Answer, LookUp, ascii_name, read_address
from scrapy_frontier.resolver.cache import AddressCache
from scrapy_frontier.resolver.options import ResolverOptions
from scrapy_frontier.resolver.resolution import Receiver, Resolution
from scrapy_frontier.resolver.system import SystemLookUp

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    # typing.Self requires Python 3.11
    from typing_extensions import Self

logger = get_logger(__name__)


@implementer(IHostnameResolver)
class AgeingResolver:
    """All addresses of a name, IPv4 and IPv6, as the operating system tells them; kept as `Lifetimes` says.

    Look-ups of one name at one time are one look-up. `DNS_TIMEOUT` bounds how long each request waits for it; what
    comes later still goes into the cache. `DNSCACHE_SIZE` bounds the cache, without `DNSCACHE_ENABLED` there is none.
    Not for use from other threads than the reactor's.
    """

    def __init__(
        self, reactor: Any, options: ResolverOptions, look_up: LookUp, clock: Clock | None = None
    ) -> None:
        self.options = options
        self._reactor = reactor
        self._look_up = look_up
        self._clock = clock or SystemClock()
        self._cache = AddressCache(options.limit, options.lifetimes)
        self._waiting: dict[str, list[Resolution]] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> Self:
        """Make the resolver of a process. Scrapy hands over the process in place of a crawler: it has settings too."""
        options = ResolverOptions.from_settings(crawler.settings)
        return cls(reactor, options, cls._make_look_up(reactor, options))

    @classmethod
    def _make_look_up(cls, reactor: Any, options: ResolverOptions) -> LookUp:
        return SystemLookUp(reactor)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} ({len(self._cache)} names, {len(self._waiting)} being looked"
            f" up, {self.options})>"
        )

    def install_on_reactor(self) -> None:
        """Resolve for everything in this process."""
        self._reactor.installNameResolver(self)

    def forget(self, host: str) -> bool:
        """A connection to an address of this host failed: look it up again for the next one. Whether it was known."""
        try:
            return self._cache.forget(ascii_name(host))
        except ValueError:
            return False

    def fault_of(self, host: str) -> str | None:
        """Why there is no address of this host at the moment: `dns.not_found`, `dns.timeout`, or None."""
        try:
            name = ascii_name(host)
        except ValueError:
            return "dns.not_found"
        if name in self._waiting:
            return "dns.timeout"
        entry = self._cache.get(name, self._clock.now())
        return "dns.not_found" if entry is not None and entry.is_lasting else None

    def resolveHostName(  # noqa: N802  # Twisted's interface
        self,
        resolutionReceiver: Receiver,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type[Address]] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Resolution:
        """Tell the receiver the addresses of a host, none if there is none (`IHostnameResolver`)."""
        resolution = Resolution(
            resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
        )
        literal = read_address(hostName)
        if literal is not None:
            resolution.answer([literal])
            return resolution
        try:
            self._resolve(ascii_name(hostName), resolution)
        except ValueError as error:
            logger.debug("%s", error, extra={"action": "dns_failed"})
            resolution.answer([])
        return resolution

    def _resolve(self, name: str, resolution: Resolution) -> None:
        entry = self._cache.get(name, self._clock.now())
        if entry is not None:
            resolution.answer(entry.addresses)
            return
        resolution.end_in(self._reactor.callLater, self.options.timeout_s)
        waiting = self._waiting.get(name)
        if waiting is not None:
            waiting.append(resolution)
            return
        self._waiting[name] = [resolution]
        maybeDeferred(self._look_up, name).addBoth(self._found, name)

    def _found(self, result: Answer | Failure, name: str) -> None:
        answer = _failed(result, name) if isinstance(result, Failure) else result
        entry = self._cache.put(name, answer, self._clock.now())
        if answer.addresses:
            hosts = ", ".join(address.host for address in answer.addresses)
            logger.debug(
                "%s is at %s, kept for %g s",
                name,
                hosts,
                entry.lifetime_s,
                extra={"action": "dns_found"},
            )
        else:
            logger.debug(
                "No address of %s, remembered for %g s: %s",
                name,
                entry.lifetime_s,
                answer.failure,
                extra={"action": "dns_failed"},
            )
        for resolution in self._waiting.pop(name):
            resolution.answer(answer.addresses)


def _failed(failure: Failure, name: str) -> Answer:
    """What nobody has foreseen must not leave the requests waiting."""
    logger.error(
        "The look-up of %s failed: %s",
        name,
        failure.getErrorMessage(),
        exc_info=failure.value,
        extra={"action": "dns_failed"},
    )
    return Answer(failure=failure.getErrorMessage())
