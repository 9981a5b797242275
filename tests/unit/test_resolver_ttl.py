"""The name servers' own word on how long an answer holds."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import dns.asyncresolver
import dns.name
import dns.resolver
import pytest
from pytest_twisted import ensureDeferred
from resolver_dns import NameServer, ask, hosts, ttl_resolver
from twisted.internet.address import IPv6Address

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.resolver import ttl
from scrapy_frontier.resolver.files import HostsFile
from scrapy_frontier.resolver.options import ResolverOptions
from scrapy_frontier.resolver.ttl import DnsLookUp, has_route_to
from scrapy_frontier.testing import MovedClock


@pytest.fixture
def server() -> Iterator[NameServer]:
    """A name server of our own."""
    with NameServer() as server:
        yield server


async def assert_held_for(
    server: NameServer, name: str, seconds: float, addresses: list[str]
) -> None:
    """The answer is used for so many seconds, and then asked for again."""
    clock = MovedClock()
    resolver = ttl_resolver(server, clock)
    assert await hosts(resolver, name) == addresses
    clock.advance(seconds - 0.5)
    assert await hosts(resolver, name) == addresses
    assert server.asked[name, "A"] == 1
    clock.advance(0.5)
    assert await hosts(resolver, name) == addresses
    assert server.asked[name, "A"] == 2


@pytest.mark.parametrize(
    ("ttl_s", "held_s"), [(0, 10), (3, 10), (10, 10), (77, 77), (1000, 1000), (86400, 1000)]
)
@ensureDeferred
async def test_ttl_decides_between_floor_and_ceiling(
    server: NameServer, ttl_s: int, held_s: float
) -> None:
    """An answer is used for its own TTL; at least for the floor, at most for the ceiling."""
    server.on("www.test", "A", ttl_s, "192.0.2.1")
    await assert_held_for(server, "www.test", held_s, ["192.0.2.1"])


@ensureDeferred
async def test_shortest_ttl_on_the_way_decides(server: NameServer) -> None:
    """An alias may hold for less long than the address it leads to."""
    server.on("www.test", "CNAME", 40, "cdn.test.")
    server.on("cdn.test", "A", 900, "192.0.2.1")
    await assert_held_for(server, "www.test", 40, ["192.0.2.1"])


@ensureDeferred
async def test_moved_host_is_found_when_the_ttl_is_over(server: NameServer) -> None:
    """The new addresses count from then on."""
    clock = MovedClock()
    resolver = ttl_resolver(server, clock)
    server.on("www.test", "A", 60, "192.0.2.1")
    assert await hosts(resolver, "www.test") == ["192.0.2.1"]
    server.on("www.test", "A", 60, "192.0.2.2", "192.0.2.3")
    assert await hosts(resolver, "www.test") == ["192.0.2.1"]
    clock.advance(60)
    assert sorted(await hosts(resolver, "www.test")) == ["192.0.2.2", "192.0.2.3"]


@pytest.mark.parametrize("has_route", [True, False])
@ensureDeferred
async def test_addresses_of_both_families(server: NameServer, has_route: bool) -> None:
    """All addresses are told; IPv6 goes first unless there is no way to it. The shorter TTL holds for both."""
    server.on("www.test", "A", 300, "192.0.2.1", "192.0.2.2")
    server.on("www.test", "AAAA", 50, "2001:db8::1")
    clock = MovedClock()
    resolver = ttl_resolver(server, clock, has_route=lambda address: has_route)
    found = await hosts(resolver, "www.test")
    assert set(found) == {"192.0.2.1", "192.0.2.2", "2001:db8::1"}
    assert found.index("2001:db8::1") == (0 if has_route else 2)
    clock.advance(50)
    await hosts(resolver, "www.test")
    assert server.asked["www.test", "AAAA"] == 2


@ensureDeferred
async def test_one_family_suffices(server: NameServer) -> None:
    """A host with IPv6 only is a host."""
    server.on("six.test", "AAAA", 50, "2001:db8::1")
    assert await hosts(ttl_resolver(server, MovedClock()), "six.test") == ["2001:db8::1"]


@ensureDeferred
async def test_unanswered_question_for_one_family_costs_little(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name servers that ignore questions for AAAA do not make every request wait for the time-out."""
    monkeypatch.setattr(ttl, "OTHER_FAMILY_S", 0.05)
    server.on("www.test", "A", 300, "192.0.2.1")
    server.silent.add(("www.test", "AAAA"))
    resolver = ttl_resolver(server, MovedClock(), ResolverOptions(timeout_s=30))
    assert await hosts(resolver, "www.test") == ["192.0.2.1"]


@ensureDeferred
async def test_family_is_waited_for_where_the_other_has_nothing(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That there is no IPv4 address does not cut short the question for IPv6, be its first datagram lost."""
    monkeypatch.setattr(ttl, "OTHER_FAMILY_S", 0.01)
    server.on("six.test", "AAAA", 300, "2001:db8::1")
    server.lost.add(("six.test", "AAAA"))
    assert await hosts(ttl_resolver(server, MovedClock()), "six.test") == ["2001:db8::1"]


@pytest.mark.parametrize("reason", ["no such name", "no address", "broken"])
@ensureDeferred
async def test_failures_are_remembered_for_a_short_time(server: NameServer, reason: str) -> None:
    """No such name and no address: as the setting says. A server that fails: for 5 seconds."""
    if reason == "no address":
        server.on("gone.test", "TXT", 300, '"hello"')
    if reason == "broken":
        server.broken.add("gone.test")
    clock = MovedClock()
    resolver = ttl_resolver(server, clock)
    assert await hosts(resolver, "gone.test") == []
    asked = server.asked["gone.test", "A"]
    clock.advance(4 if reason == "broken" else 29)
    assert await hosts(resolver, "gone.test") == []
    assert server.asked["gone.test", "A"] == asked
    clock.advance(1)
    server.broken.clear()
    server.on("gone.test", "A", 300, "192.0.2.1")
    assert await hosts(resolver, "gone.test") == ["192.0.2.1"]


@ensureDeferred
async def test_silent_server_ends_in_the_timeout(server: NameServer) -> None:
    """DNS_TIMEOUT holds for name servers that say nothing at all; that is a failure to find out, of the look-up too."""
    server.silent |= {("dead.test", "A"), ("dead.test", "AAAA")}
    resolver = ttl_resolver(server, MovedClock(), ResolverOptions(timeout_s=0.05))
    assert await hosts(resolver, "dead.test") == []
    answer = await DnsLookUp(0.05, server.stub)("dead.test")
    assert answer.addresses == ()
    assert not answer.is_lasting


@ensureDeferred
async def test_concurrent_questions_reach_the_server_once(server: NameServer) -> None:
    """However many requests wait, the server sees one question for each family."""
    server.on("www.test", "A", 300, "192.0.2.1")
    server.may_answer.clear()
    resolver = ttl_resolver(server, MovedClock())
    asked = [ask(resolver, "www.test") for _ in range(20)]
    server.may_answer.set()
    for told in asked:
        assert [address.host for address in await told.done] == ["192.0.2.1"]
    assert server.asked == {("www.test", "A"): 1, ("www.test", "AAAA"): 1}


@ensureDeferred
async def test_forgotten_name_is_asked_of_the_server(server: NameServer) -> None:
    """No cache further down answers in its place."""
    server.on("www.test", "A", 300, "192.0.2.1")
    resolver = ttl_resolver(server, MovedClock())
    await hosts(resolver, "www.test")
    server.on("www.test", "A", 300, "192.0.2.2")
    assert resolver.forget("www.test")
    assert await hosts(resolver, "www.test") == ["192.0.2.2"]


@ensureDeferred
async def test_hosts_file_is_read_first(server: NameServer, tmp_path: Path) -> None:
    """What it lists is not asked of a name server; an edit counts when the floor has passed."""
    path = tmp_path / "hosts"
    path.write_text("192.0.2.50 www.test\n")
    server.on("www.test", "A", 300, "192.0.2.1")
    clock = MovedClock()
    resolver = ttl_resolver(server, clock, hosts=HostsFile(path))
    assert await hosts(resolver, "www.test") == ["192.0.2.50"]
    assert not server.asked
    path.write_text("192.0.2.51 elsewhere.test www.test\n")
    clock.advance(10)
    assert await hosts(resolver, "www.test") == ["192.0.2.51"]
    path.unlink()
    clock.advance(10)
    assert await hosts(resolver, "www.test") == ["192.0.2.1"]


@ensureDeferred
async def test_localhost_is_never_asked_of_a_server(server: NameServer) -> None:
    """RFC 6761, section 6.3: it is this machine, as the hosts file of this machine says, or without it."""
    resolver = ttl_resolver(server, MovedClock())
    assert "127.0.0.1" in await hosts(resolver, "localhost")
    assert "127.0.0.1" in await hosts(resolver, "app.localhost")
    assert not server.asked


@pytest.mark.parametrize("host", ["a" * 64 + ".test", "a..test", "x" * 300])
@ensureDeferred
async def test_what_is_no_name_fails_at_once(
    server: NameServer, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not asked for, no request waits for it, and it is nobody's error."""
    assert await hosts(ttl_resolver(server, MovedClock()), host) == []
    assert not server.asked
    assert not caplog.records


@ensureDeferred
async def test_search_domains_are_those_of_the_system(server: NameServer) -> None:
    """A name without a dot is looked for in the domains that resolv.conf names."""
    server.on("wiki.corp.test", "A", 300, "192.0.2.1")

    def stub() -> dns.asyncresolver.Resolver:
        resolver = server.stub()
        resolver.search = [dns.name.from_text("corp.test.")]
        return resolver

    look_up = DnsLookUp(5, stub, HostsFile())
    answer = await look_up("wiki")
    assert [address.host for address in answer.addresses] == ["192.0.2.1"]


@ensureDeferred
async def test_change_of_resolv_conf_is_noticed(
    server: NameServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other name servers count from the next look-up on; a file that says nothing changes nothing."""
    path = tmp_path / "resolv.conf"
    monkeypatch.setattr(ttl, "RESOLV_CONF", path)
    path.write_text("nameserver 127.0.0.1\n")
    server.on("www.test", "A", 300, "192.0.2.1")
    made = []

    def stub() -> dns.asyncresolver.Resolver:
        made.append(path.read_text())
        if not made[-1]:
            raise dns.resolver.NoResolverConfiguration
        return server.stub()

    look_up = DnsLookUp(5, stub, HostsFile())
    for text in ("", "nameserver 127.0.0.2\n"):
        await look_up("www.test")
        await look_up("www.test")
        path.write_text(text)
        assert (await look_up("www.test")).addresses
    assert made == ["nameserver 127.0.0.1\n", "", "nameserver 127.0.0.2\n"]


def test_machine_without_name_servers_is_told_so() -> None:
    """The refusal names the setting, the file and the remedy."""

    def stub() -> dns.asyncresolver.Resolver:
        raise dns.resolver.NoResolverConfiguration

    with pytest.raises(ConfigError, match=r"TWISTED_DNS_RESOLVER.*resolv\.conf.*AgeingResolver"):
        DnsLookUp(5, stub)


def test_way_to_an_address_is_found_without_sending() -> None:
    """This machine has a way to its own IPv6 address if it has one, and to a malformed address it has none."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            has_loopback = True
    except OSError:
        has_loopback = False
    assert has_route_to(IPv6Address("TCP", "::1", 0)) is has_loopback
    assert has_route_to(IPv6Address("TCP", "nowhere", 0)) is False
