"""The resolver of this process, as crawls see it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.error import ConnectError

from scrapy_frontier.logs import get_logger
from scrapy_frontier.resolver.ageing import AgeingResolver
from scrapy_frontier.resolver.options import SETTINGS, ResolverOptions

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

logger = get_logger(__name__)


def installed() -> AgeingResolver | None:
    """The resolver of ours that this process uses, None if it uses another."""
    if not is_reactor_installed():
        return None
    from twisted.internet import reactor

    resolver = getattr(reactor, "nameResolver", None)
    return resolver if isinstance(resolver, AgeingResolver) else None


def forget(host: str) -> bool:
    """A connection to `host` failed, so that the next one looks it up again; not for a failed look-up. Whether its
    address came out of the cache.

    `host` is what was connected to: the proxy's, where there is one. Does nothing with a resolver of another kind.
    """
    resolver = installed()
    if resolver is None or not resolver.forget(host):
        return False
    logger.debug("%s will be looked up again", host, extra={"action": "dns_forgotten"})
    return True


def forget_unreached(request: Request, error: BaseException) -> bool:
    """Forget the host that a failed download connected to, where a connection is what failed; whether it was known.

    (Twisted has one error for a connection that took too long and for a download that did: the latter costs a look-up.)
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ConnectError):
        cause = cause.__cause__
    host = urlsplit(request.meta.get("proxy") or request.url).hostname
    return cause is not None and bool(host) and forget(str(host))


def look_up_fault(request: Request) -> str | None:
    """Why the look-up of a request's host has just failed, as a kind of fault: `dns.not_found`, `dns.timeout`.

    None where that is not known: Twisted hands on no reason, so only a resolver of ours can tell.
    """
    resolver = installed()
    host = urlsplit(request.meta.get("proxy") or request.url).hostname
    return None if resolver is None or not host else resolver.fault_of(host)


def warn_of_unused(settings: BaseSettings) -> None:
    """Warn where a crawl's settings ask for another resolver than its process has: Scrapy reads them once, for all.

    To be called when the reactor runs. That is how settings in a spider's `custom_settings` or in an add-on are found.
    """
    resolver = installed()
    chosen = load_object(settings["TWISTED_DNS_RESOLVER"])
    is_ours = isinstance(chosen, type) and issubclass(chosen, AgeingResolver)
    if (is_ours or resolver is not None) and chosen is not type(resolver):
        logger.warning(
            "TWISTED_DNS_RESOLVER = %r is not in force: it is a setting of the process, so write it into settings.py or"
            " give it with -s, not in custom_settings; a script without CrawlerProcess installs the resolver itself",
            settings["TWISTED_DNS_RESOLVER"],
            extra={"action": "setting_unused"},
        )
    elif resolver is not None:
        _warn_of_options(resolver, settings)
    else:
        _warn_of_lone(settings)


def _warn_of_options(resolver: AgeingResolver, settings: BaseSettings) -> None:
    names = resolver.options.differing(ResolverOptions.from_settings(settings))
    if names:
        logger.warning(
            "%s of this crawl is not in force, that of the process is: write it into settings.py or give it with -s,"
            " not in custom_settings",
            ", ".join(names),
            extra={"action": "setting_unused"},
        )


def _warn_of_lone(settings: BaseSettings) -> None:
    names = [name for name in SETTINGS.values() if name.startswith("FRONTIER_")]
    given = [name for name in names if settings.get(name) is not None]
    if given:
        logger.warning(
            "%s has no effect without TWISTED_DNS_RESOLVER = 'scrapy_frontier.resolver.AgeingResolver'",
            ", ".join(given),
            extra={"action": "setting_unused"},
        )
