"""One question for each name, an answer for every request, and a look-up when it is time."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any

import pytest
from pytest_twisted import ensureDeferred
from resolver_dns import OPTIONS, Told, ask, hosts, resolver_of
from twisted.internet import reactor
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import DNSLookupError
from twisted.internet.protocol import Factory

from scrapy_frontier.resolver.ageing import AgeingResolver
from scrapy_frontier.resolver.answers import Answer
from scrapy_frontier.resolver.options import ResolverOptions
from scrapy_frontier.resolver.system import SystemLookUp
from scrapy_frontier.testing import MovedClock

BOTH = Answer((IPv4Address("TCP", "192.0.2.1", 0), IPv6Address("TCP", "2001:db8::1", 0)))


class LookUps:
    """Look-ups whose answers the test gives; `names` are those asked for."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.names: list[str] = []
        self.answer = answer
        self.pending: list[Deferred[Answer]] = []

    def __call__(self, name: str) -> Deferred[Answer]:
        self.names.append(name)
        if self.answer is not None:
            return succeed(self.answer)
        self.pending.append(Deferred())
        return self.pending[-1]


@ensureDeferred
async def test_system_knows_localhost() -> None:
    """The operating system is asked, with its hosts file."""
    resolver = resolver_of(SystemLookUp(reactor), MovedClock())
    found = await ask(resolver, "localhost", 8080).done
    expected = {
        place[0] for *_, place in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)
    }
    assert {address.host for address in found} == expected
    assert {address.port for address in found} == {8080}


@ensureDeferred
async def test_all_addresses_of_both_families_are_kept() -> None:
    """IPv4 and IPv6, in the system's order, each once, and the same from the cache."""

    def getaddrinfo(*args: Any) -> Any:
        six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0))
        four = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))
        return [six, four, six]

    resolver = resolver_of(SystemLookUp(reactor, getaddrinfo), MovedClock())
    for _ in range(2):
        assert await hosts(resolver, "www.test") == ["2001:db8::1", "192.0.2.1"]


@ensureDeferred
async def test_cached_answer_serves_every_port_family_and_transport() -> None:
    """A name is asked for once, whatever its addresses are wanted for."""
    look_ups = LookUps(BOTH)
    resolver = resolver_of(look_ups, MovedClock())
    assert await ask(resolver, "www.test", 80, [IPv4Address]).done == [
        IPv4Address("TCP", "192.0.2.1", 80)
    ]
    assert await ask(resolver, "www.test", 443, [IPv6Address]).done == [
        IPv6Address("TCP", "2001:db8::1", 443)
    ]
    assert await ask(resolver, "WWW.test", 53, None, "UDP").done == [
        IPv4Address("UDP", "192.0.2.1", 53),
        IPv6Address("UDP", "2001:db8::1", 53),
    ]
    assert look_ups.names == ["www.test"]


@ensureDeferred
async def test_name_is_looked_up_again_when_its_time_is_over() -> None:
    """An unchanged answer lives from the floor upwards to the ceiling, and never past it."""
    clock, look_ups = MovedClock(), LookUps(BOTH)
    resolver = resolver_of(look_ups, clock)
    asked_at = []
    begun = clock.now()
    while clock.now() < begun + 5000:
        before = len(look_ups.names)
        await hosts(resolver, "www.test")
        if len(look_ups.names) > before:
            asked_at.append(clock.now() - begun)
        clock.advance(5)
    assert asked_at == [0, 10, 30, 70, 150, 310, 630, 1270, 2270, 3270, 4270]


@ensureDeferred
async def test_concurrent_questions_are_one_look_up() -> None:
    """However many requests wait for a name, it is asked for once, and each gets all addresses."""
    look_ups = LookUps()
    resolver = resolver_of(look_ups, MovedClock())
    asked = [ask(resolver, "www.test", port) for port in range(1, 6)]
    assert look_ups.names == ["www.test"]
    look_ups.pending[0].callback(BOTH)
    for port, told in enumerate(asked, 1):
        assert {(found.host, found.port) for found in await told.done} == {
            ("192.0.2.1", port),
            ("2001:db8::1", port),
        }


@ensureDeferred
async def test_names_do_not_wait_for_each_other() -> None:
    """A name that does not answer holds up itself only."""
    look_ups = LookUps()
    resolver = resolver_of(look_ups, MovedClock())
    slow = ask(resolver, "slow.test")
    quick = ask(resolver, "quick.test")
    look_ups.pending[1].callback(BOTH)
    assert len(await quick.done) == 2
    assert not slow.done.called
    slow.resolution.cancel()


@ensureDeferred
async def test_request_waits_no_longer_than_the_timeout() -> None:
    """DNS_TIMEOUT ends the wait of a request; the look-up goes on, is not begun anew, and its answer is kept."""
    look_ups = LookUps()
    options = ResolverOptions(timeout_s=0.02)
    resolver = resolver_of(look_ups, MovedClock(), options)
    assert await hosts(resolver, "slow.test") == []
    assert await hosts(resolver, "slow.test") == []
    assert look_ups.names == ["slow.test"]
    look_ups.pending[0].callback(BOTH)
    assert len(await hosts(resolver, "slow.test")) == 2
    assert look_ups.names == ["slow.test"]


@ensureDeferred
async def test_threads_are_not_used_up_by_one_dead_name() -> None:
    """A name on which the system hangs costs one thread, however often it is asked for."""
    may_answer = threading.Event()
    calls = []

    def getaddrinfo(name: str, *args: Any) -> Any:
        calls.append(name)
        may_answer.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    resolver = resolver_of(
        SystemLookUp(reactor, getaddrinfo), MovedClock(), ResolverOptions(timeout_s=0.02)
    )
    for _ in range(4):
        assert await hosts(resolver, "dead.test") == []
    may_answer.set()
    assert await hosts(resolver, "dead.test") == []
    assert calls == ["dead.test"]


@ensureDeferred
async def test_answered_request_leaves_no_timer() -> None:
    """A thousand names a second must not leave a minute's worth of calls behind."""
    look_ups = LookUps()
    resolver = resolver_of(look_ups, MovedClock())
    told = ask(resolver, "www.test")

    def timers() -> list[Any]:
        calls = reactor.getDelayedCalls()
        return [call for call in calls if getattr(call.func, "__self__", 0) is told.resolution]

    assert len(timers()) == 1
    look_ups.pending[0].callback(BOTH)
    await told.done
    assert timers() == []


@ensureDeferred
async def test_cancelled_request_is_told_nothing() -> None:
    """What is cancelled gets no answer, and the others get theirs."""
    look_ups = LookUps()
    resolver = resolver_of(look_ups, MovedClock())
    given_up, waiting = ask(resolver, "www.test"), ask(resolver, "www.test")
    given_up.resolution.cancel()
    look_ups.pending[0].callback(BOTH)
    assert len(await waiting.done) == 2
    assert not given_up.done.called
    assert given_up.addresses == []


@pytest.mark.parametrize(
    ("error", "remembered_s"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no such name"), 30),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), 5),
        (OSError(24, "too many open files"), 5),
    ],
)
@ensureDeferred
async def test_failures_of_the_system_are_remembered(error: OSError, remembered_s: float) -> None:
    """A name without an address is not asked for again for a while; less long where nobody knows."""
    calls = []

    def getaddrinfo(name: str, *args: Any) -> Any:
        calls.append(name)
        raise error

    clock = MovedClock()
    resolver = resolver_of(SystemLookUp(reactor, getaddrinfo), clock)
    assert await hosts(resolver, "gone.test") == []
    clock.advance(remembered_s - 1)
    assert await hosts(resolver, "gone.test") == []
    assert len(calls) == 1
    clock.advance(1)
    assert await hosts(resolver, "gone.test") == []
    assert len(calls) == 2


@pytest.mark.parametrize("host", ["a" * 64 + ".test", "a..test", "nul\0.test", "\udcff.test", "."])
@ensureDeferred
async def test_what_is_no_name_fails_at_once(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """A name that cannot be encoded has no address; the request is told so instead of waiting."""
    resolver = resolver_of(SystemLookUp(reactor), MovedClock())
    assert await hosts(resolver, host) == []
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@ensureDeferred
async def test_unforeseen_failure_is_an_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    """No fault of a look-up leaves a request waiting, be it raised or failed; the log shows it."""

    def broken(name: str) -> Deferred[Answer]:
        if name == "raised.test":
            raise RuntimeError("raised by the look-up")
        return fail(RuntimeError("failed in the look-up"))

    resolver = resolver_of(broken, MovedClock())
    assert await hosts(resolver, "raised.test") == []
    assert await hosts(resolver, "failed.test") == []
    assert "raised by the look-up" in caplog.text
    assert "failed in the look-up" in caplog.text


@ensureDeferred
async def test_fault_of_one_receiver_is_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """A receiver that raises does not keep the answer from the others."""

    class Raises(Told):
        def addressResolved(self, address: Any) -> None:
            raise RuntimeError("not today")

    look_ups = LookUps()
    resolver = resolver_of(look_ups, MovedClock())
    resolver.resolveHostName(Raises(), "www.test")
    waiting = ask(resolver, "www.test")
    look_ups.pending[0].callback(BOTH)
    assert len(await waiting.done) == 2
    assert "not today" in caplog.text


@pytest.mark.parametrize(
    ("literal", "kind"), [("192.0.2.7", IPv4Address), ("2001:db8::7", IPv6Address)]
)
@ensureDeferred
async def test_addresses_are_not_looked_up(literal: str, kind: type) -> None:
    """A host that is an address already is its own answer."""
    look_ups = LookUps()
    resolver = resolver_of(look_ups, MovedClock())
    assert await ask(resolver, literal, 80).done == [kind("TCP", literal, 80)]
    assert look_ups.names == []


@ensureDeferred
async def test_international_names_are_those_of_the_url_standard() -> None:
    """Twisted hands over `straße.test` for `xn--strae-oqa.test`; `strasse.test` is another host."""
    look_ups = LookUps(BOTH)
    resolver = resolver_of(look_ups, MovedClock())
    previous = reactor.installNameResolver(resolver)
    try:
        look_ups.answer = Answer(failure="no such name")
        with pytest.raises(DNSLookupError):
            await HostnameEndpoint(reactor, b"xn--strae-oqa.test", 80).connect(Factory())
    finally:
        reactor.installNameResolver(previous)
    assert look_ups.names == ["xn--strae-oqa.test"]


@ensureDeferred
async def test_cache_that_is_switched_off_keeps_nothing() -> None:
    """DNSCACHE_ENABLED = False: each request looks up, and concurrent ones still do so together."""
    look_ups = LookUps(BOTH)
    resolver = resolver_of(look_ups, MovedClock(), ResolverOptions(limit=0))
    await hosts(resolver, "www.test")
    await hosts(resolver, "www.test")
    assert len(look_ups.names) == 2
    look_ups.answer = None
    asked = [ask(resolver, "www.test"), ask(resolver, "www.test")]
    assert len(look_ups.names) == 3
    look_ups.pending[0].callback(BOTH)
    assert [len(await told.done) for told in asked] == [2, 2]


@ensureDeferred
async def test_forgotten_name_is_looked_up_again() -> None:
    """After `forget` the next request asks anew, however young the answer was."""
    look_ups = LookUps(BOTH)
    resolver = resolver_of(look_ups, MovedClock())
    await hosts(resolver, "xn--strae-oqa.test")
    assert resolver.forget("STRASSE.test") is False
    assert resolver.forget("Straße.test") is True
    await hosts(resolver, "xn--strae-oqa.test")
    assert len(look_ups.names) == 2


def test_repr_tells_the_situation() -> None:
    """How many names are known, and how many are being asked for."""
    resolver = AgeingResolver(reactor, OPTIONS, LookUps(), MovedClock())
    told = ask(resolver, "www.test")
    assert "0 names, 1 being looked up" in repr(resolver)
    assert repr(told.resolution) == "<Resolution of www.test, waiting>"
    told.resolution.cancel()
