"""One resolver for the whole process: how it is chosen, what crawls are warned of, and that connections use it."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_twisted import ensureDeferred
from resolver_dns import NameServer, hosts, resolver_of, ttl_resolver
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import Settings
from scrapy.utils._download_handlers import wrap_twisted_exceptions
from scrapy.utils.misc import load_object
from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import succeed
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import ConnectError, DNSLookupError, NoRouteError, TCPTimedOutError
from twisted.internet.error import ConnectionRefusedError as TxConnectionRefusedError
from twisted.internet.error import TimeoutError as TxTimeoutError
from twisted.internet.protocol import Factory, Protocol
from twisted.web.client import ResponseFailed

from scrapy_frontier import resolver as package
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.resolver import (
    AgeingResolver,
    TtlResolver,
    forget,
    forget_unreached,
    warn_of_unused,
)
from scrapy_frontier.resolver.answers import Answer
from scrapy_frontier.resolver.options import ResolverOptions
from scrapy_frontier.testing import MovedClock, Origin, ScriptedServer, page

AGEING = "scrapy_frontier.resolver.AgeingResolver"
TTL = "scrapy_frontier.resolver.TtlResolver"

Install = Callable[[AgeingResolver], AgeingResolver]


@pytest.fixture
def install() -> Iterator[Install]:
    """Installs a resolver on the reactor for one test."""
    previous = reactor.nameResolver

    def put(resolver: AgeingResolver) -> AgeingResolver:
        resolver.install_on_reactor()
        return resolver

    yield put
    reactor.installNameResolver(previous)


def nothing(options: ResolverOptions) -> AgeingResolver:
    """A resolver with these options that finds nothing."""
    return resolver_of(lambda _: succeed(Answer()), MovedClock(), options)


def project(**values: Any) -> Settings:
    """The settings of a project."""
    return Settings(values, priority="project")


def test_options_are_settings_of_scrapy_and_of_the_frontier() -> None:
    """Scrapy's three keep their meaning; floor, ceiling and negative are the frontier's."""
    assert ResolverOptions.from_settings(Settings()) == ResolverOptions()
    read = ResolverOptions.from_settings(
        project(
            FRONTIER_DNS_FLOOR=5,
            FRONTIER_DNS_CEILING="50",
            FRONTIER_DNS_NEGATIVE=1.5,
            DNSCACHE_SIZE=7,
            DNS_TIMEOUT=3,
        )
    )
    assert read == ResolverOptions(floor_s=5, ceiling_s=50, negative_s=1.5, limit=7, timeout_s=3)
    assert ResolverOptions.from_settings(project(DNSCACHE_ENABLED=False)).limit == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"FRONTIER_DNS_FLOOR": 7200}, r"FRONTIER_DNS_FLOOR = 7200 .* FRONTIER_DNS_CEILING = 3600"),
        ({"FRONTIER_DNS_NEGATIVE": "soon"}, r"FRONTIER_DNS_NEGATIVE = 'soon'"),
        ({"FRONTIER_DNS_FLOOR": 0}, r"FRONTIER_DNS_FLOOR = 0.*above 0"),
    ],
)
def test_contradictions_are_refused(values: dict[str, Any], message: str) -> None:
    """A setting that makes no sense is named when the process starts."""
    with pytest.raises(ConfigError, match=message):
        ResolverOptions.from_settings(project(**values))


def test_both_are_found_by_their_paths() -> None:
    """The value of TWISTED_DNS_RESOLVER is a path into the package."""
    assert load_object(AGEING) is AgeingResolver
    assert load_object(TTL) is TtlResolver
    with pytest.raises(AttributeError, match="OtherResolver"):
        _ = package.OtherResolver


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dnspython the refusal says what to install."""
    monkeypatch.setitem(sys.modules, "dns.asyncresolver", None)
    monkeypatch.delitem(sys.modules, "scrapy_frontier.resolver.ttl")
    with pytest.raises(ConfigError, match=r"scrapy-frontier\[dns\]"):
        load_object(TTL)


def test_fitting_settings_are_no_cause_for_a_warning(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither those of a process with a resolver of ours, nor Scrapy's defaults without one."""
    warn_of_unused(Settings())
    install(nothing(ResolverOptions(floor_s=5)))
    warn_of_unused(project(TWISTED_DNS_RESOLVER=AGEING, FRONTIER_DNS_FLOOR=5))
    assert not caplog.records


@pytest.mark.parametrize("path", [AGEING, TTL])
def test_resolver_in_custom_settings_is_warned_of(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Scrapy reads the setting once for the process; a crawl that asks for it is told that it does not get it."""
    warn_of_unused(project(TWISTED_DNS_RESOLVER=path))
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "custom_settings" in record.message
    assert path in record.message


def test_other_resolver_in_custom_settings_is_warned_of(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """Also a crawl that asks for Scrapy's own, in a process that has ours."""
    install(nothing(ResolverOptions()))
    warn_of_unused(Settings())
    assert "CachingThreadedResolver" in caplog.text


def test_other_options_in_custom_settings_are_warned_of(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning names those settings that differ from the process's."""
    install(nothing(ResolverOptions()))
    settings = project(TWISTED_DNS_RESOLVER=AGEING, FRONTIER_DNS_FLOOR=5, DNS_TIMEOUT=60)
    settings.set("DNSCACHE_SIZE", 3, priority="spider")
    warn_of_unused(settings)
    [record] = caplog.records
    assert record.message.startswith("FRONTIER_DNS_FLOOR, DNSCACHE_SIZE of this crawl")


def test_settings_without_the_resolver_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """FRONTIER_DNS_* alone changes nothing."""
    warn_of_unused(project(FRONTIER_DNS_CEILING=600))
    assert "FRONTIER_DNS_CEILING has no effect without TWISTED_DNS_RESOLVER" in caplog.text


class Greets(Protocol):
    """Says on which address it was reached."""

    def connectionMade(self) -> None:
        self.transport.loseConnection()


@ensureDeferred
async def test_failed_connection_leads_to_the_new_address(install: Install) -> None:
    """A host that moves while its answer is still young is found again by the request after the failed one."""
    factory = Factory.forProtocol(Greets)
    port = reactor.listenTCP(0, factory, interface="127.0.0.1")
    number = port.getHost().port
    with NameServer() as server:
        server.on("moved.test", "A", 900, "127.0.0.2")
        clock = MovedClock()
        install(ttl_resolver(server, clock))
        endpoint = HostnameEndpoint(reactor, b"moved.test", number)
        with pytest.raises(ConnectError):
            await endpoint.connect(factory)
        server.on("moved.test", "A", 900, "127.0.0.1")
        with pytest.raises(ConnectError):
            await endpoint.connect(factory)
        forget("Moved.test")
        connected = await endpoint.connect(factory)
        assert connected.transport.getPeer().host == "127.0.0.1"
    await port.stopListening()


@ensureDeferred
async def test_host_without_address_is_a_failed_lookup(install: Install) -> None:
    """Twisted's error for it, at once and while it is remembered."""
    install(nothing(ResolverOptions()))
    for _ in range(2):
        with pytest.raises(DNSLookupError, match=r"gone\.test"):
            await HostnameEndpoint(reactor, b"gone.test", 80).connect(Factory())


@ensureDeferred
async def test_old_interface_is_served_too(install: Install) -> None:
    """`reactor.resolve()`, for one IPv4 address, asks the same cache."""
    with NameServer() as server:
        server.on("www.test", "A", 900, "192.0.2.1")
        server.on("www.test", "AAAA", 900, "2001:db8::1")
        resolver = install(ttl_resolver(server, MovedClock()))
        assert await reactor.resolve("www.test") == "192.0.2.1"
        assert len(await hosts(resolver, "www.test")) == 2
        assert server.asked["www.test", "A"] == 1


def test_forgetting_is_harmless_with_other_resolvers() -> None:
    """A process with Scrapy's resolver, or with none, has nothing to forget."""
    forget("www.test")


def wrapped(cause: Exception) -> Exception:
    """An error of Scrapy, as its download handlers make it of one of Twisted's."""
    try:
        with wrap_twisted_exceptions():
            raise cause
    except Exception as error:
        return error


def noting(names: list[str]) -> AgeingResolver:
    """A resolver that finds every host, and notes which it looks up."""

    def look_up(name: str) -> Any:
        names.append(name)
        return succeed(Answer((IPv4Address("TCP", "192.0.2.1", 0),)))

    return resolver_of(look_up, MovedClock())


@pytest.mark.parametrize(
    ("error", "is_forgotten"),
    [
        (TxConnectionRefusedError(), True),
        (wrapped(TxConnectionRefusedError()), True),
        (wrapped(TxTimeoutError()), True),
        (TCPTimedOutError(), True),
        (NoRouteError(), True),
        (wrapped(DNSLookupError()), False),
        (wrapped(ResponseFailed([])), False),
        (IgnoreRequest(), False),
    ],
)
@ensureDeferred
async def test_only_failed_connections_make_a_host_forgotten(
    install: Install, error: Exception, is_forgotten: bool
) -> None:
    """A host that was reached, or of which is known that it has no address, is not looked up anew."""
    names: list[str] = []
    resolver = install(noting(names))
    await hosts(resolver, "www.test")
    forget_unreached(Request("http://www.test:8080/"), error)
    await hosts(resolver, "www.test")
    assert len(names) == (2 if is_forgotten else 1)


@ensureDeferred
async def test_behind_a_proxy_it_is_the_proxy_that_was_not_reached(install: Install) -> None:
    """The connection goes to the proxy: its name is the one that was looked up."""
    names: list[str] = []
    resolver = install(noting(names))
    await hosts(resolver, "www.test")
    await hosts(resolver, "proxy.test")
    request = Request("http://www.test/", meta={"proxy": "http://proxy.test:3128"})
    forget_unreached(request, NoRouteError())
    await hosts(resolver, "www.test")
    await hosts(resolver, "proxy.test")
    assert names == ["www.test", "proxy.test", "proxy.test"]


CRAWL = """
import sys
from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess

class Asks(Spider):
    name = "asks"

    async def start(self):
        from scrapy import Request
        for number in range(3):
            yield Request(f"{sys.argv[1]}?{number}", dont_filter=True)

    def parse(self, response):
        from twisted.internet import reactor
        print(response.status, repr(reactor.nameResolver))

process = AsyncCrawlerProcess({
    "TWISTED_DNS_RESOLVER": sys.argv[2], "FRONTIER_DNS_FLOOR": 7, "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Asks)
process.start()
"""


@pytest.mark.slow
@pytest.mark.parametrize("path", [AGEING, TTL])
def test_scrapy_process_installs_it(path: str) -> None:
    """One setting is enough: the requests of a real process are resolved by it."""
    with ScriptedServer() as server:
        origin: Origin = server.origin("main")
        origin.on("/", page("Home", []))
        url = f"http://localhost:{origin.port}/"
        crawl = subprocess.run(
            [sys.executable, "-c", CRAWL, url, path], capture_output=True, text=True, timeout=60
        )
    lines = crawl.stdout.splitlines()
    assert len(lines) == 3, crawl.stderr
    name = path.rpartition(".")[2]
    assert all(line.startswith(f"200 <{name} (1 names, 0 being looked up") for line in lines)
    assert "floor_s=7" in lines[0]
    assert crawl.stderr.count("localhost is at") == 1
