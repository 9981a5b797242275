"""A host that moves during a crawl is found again, and a resolver that is asked for in vain is warned of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from crawls import Lab
from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed

from scrapy_frontier.resolver import AgeingResolver
from scrapy_frontier.resolver.answers import Answer
from scrapy_frontier.resolver.options import ResolverOptions
from scrapy_frontier.testing import page


class Moving:
    """The host of every name has left 127.0.0.2, where nothing listens, when it is looked up again."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> Deferred[Answer]:
        self.names.append(name)
        host = "127.0.0.1" if len(self.names) > 1 else "127.0.0.2"
        return succeed(Answer((IPv4Address("TCP", host, 0),)))


@pytest.fixture
def moving() -> Iterator[Moving]:
    """Names are looked up there while the test runs."""
    look_ups, previous = Moving(), reactor.nameResolver
    AgeingResolver(reactor, ResolverOptions(), look_ups).install_on_reactor()
    yield look_ups
    reactor.installNameResolver(previous)


async def test_moved_host_costs_one_attempt(lab: Lab, moving: Moving) -> None:
    """After a failed connection the next attempt looks the host up again, though its answer was good for long."""
    lab.main.on("/", page("Home", []))
    url = f"http://moved.test:{lab.main.port}/"
    result = await lab.crawl(seeds=[url], settings={"RETRY_TIMES": 1})
    assert moving.names == ["moved.test", "moved.test"]
    assert result.fate(url).end == "succeeded"
    assert result.fate(url).attempts == 2


@pytest.mark.parametrize(
    ("answer", "reason", "attempts"),
    [
        (succeed(Answer(failure="no such name", is_lasting=True)), "download.dns.not_found", 1),
        (succeed(Answer(failure="server failure")), "download.dns", 2),
        (Deferred(), "download.dns.timeout", 2),
    ],
    ids=["not_found", "failure", "timeout"],
)
async def test_why_a_look_up_failed_decides_whether_it_is_tried_again(
    lab: Lab, answer: Deferred[Answer], reason: str, attempts: int
) -> None:
    """That there is no such host is certain; that nobody answered may be over with the next try."""
    previous = reactor.nameResolver
    options = replace(ResolverOptions(), timeout_s=0.2)
    AgeingResolver(reactor, options, lambda name: answer).install_on_reactor()
    try:
        url = "http://nowhere.test/"
        result = await lab.crawl(seeds=[url], settings={"RETRY_TIMES": 1})
    finally:
        reactor.installNameResolver(previous)
    fate = result.assert_finished().fate(url)
    assert (fate.end, fate.reason, fate.attempts) == ("failed", reason, attempts)


async def test_resolver_of_one_crawl_is_warned_of(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """In a spider's custom_settings it comes too late for the process."""
    lab.main.on("/", page("Home", []))
    resolver = "scrapy_frontier.resolver.AgeingResolver"
    await lab.crawl(seeds=[lab.main / ""], settings={"TWISTED_DNS_RESOLVER": resolver})
    assert f"TWISTED_DNS_RESOLVER = '{resolver}' is not in force" in caplog.text
