"""A case: a web that sets a trap, what is requested of it, and what must come of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.spidermiddlewares.httperror import HttpError

from scrapy_frontier import HopRefused

from .web import Web

if TYPE_CHECKING:
    from twisted.python.failure import Failure


class AtLeast(int):
    """So often or more."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and int(other) >= int(self)

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        return f"AtLeast({int(self)})"


SETTINGS: Final[Mapping[str, Any]] = {
    "ROBOTSTXT_OBEY": False,
    "USER_AGENT": "hostilebot/1.0 (+https://example.com/bot)",
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 0.01,
    "DOWNLOAD_DELAY_JITTER": 0,
    "DOWNLOAD_TIMEOUT": 2,
    "RETRY_TIMES": 1,
    "FRONTIER_RETRY_DELAY": 0.05,
    "TELNETCONSOLE_ENABLED": False,
}
"""Of both sides."""

FRONTIER_SETTINGS: Final[Mapping[str, Any]] = {
    "FRONTIER_SYNCHRONOUS": "NORMAL",
    "FRONTIER_MAX_INTERVAL": 0.05,
    "FRONTIER_ROBOTS_MAX_TRIES": 2,
    "FRONTIER_ROBOTS_BACKOFF": 0.1,
}

OBEY: Final[Mapping[str, Any]] = {"ROBOTSTXT_OBEY": True}

AT_ONCE: Final[Mapping[str, Any]] = {"CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DOWNLOAD_DELAY": 0}


@dataclass
class Seen:
    """What came of a crawl, for the spider and for the servers."""

    web: Web
    delivered: list[str] = field(default_factory=list)
    """What a callback got, by label."""
    failed: dict[str, str] = field(default_factory=dict)
    """What an errback was told, by label of the request."""
    responses: list[Any] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    def take(self, response: Any) -> None:
        """A callback was called."""
        self.responses.append(response)
        self.delivered.append(self.web.label(response.request.url))

    def lose(self, failure: Failure) -> None:
        """An errback was called."""
        self.failures.append(failure.value)
        self.failed[self.web.label(failure.request.url)] = why(failure.value)


def why(error: BaseException) -> str:
    """An exception in a word or two: the rule, where it names one."""
    if isinstance(error, HopRefused):
        return error.rule
    if isinstance(error, HttpError):
        return f"HTTP {error.response.status}"
    return str(error) if isinstance(error, IgnoreRequest) else type(error).__name__


@dataclass(frozen=True)
class Plan:
    """What is requested, and what must come of it.

    `asked`: each request that must reach a server, how often, and no other. `delivered` and `failed`: what callbacks
    and errbacks get; None where that does not matter. `proof`: what must be true besides. `fates`: how the identities
    must stand in the ledger, as "state rule" or "disposition". `shows` says in words what the proof looks at.
    """

    requests: Sequence[str | Request] = ()
    asked: Mapping[str, int] = field(default_factory=dict)
    delivered: Sequence[str] | None = ()
    failed: Mapping[str, str] | None = field(default_factory=dict)
    proof: Callable[[Seen], bool] = lambda seen: True
    shows: Callable[[Seen], str] = lambda seen: ""
    fates: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    follows: bool = False
    is_over: bool = True
    """Whether nothing is left to do at the end."""

    def misses(self, seen: Seen) -> list[str]:
        """What is not as it must be, for the servers and for the spider. The proof rests on all the rest."""
        found = []
        asked = dict(seen.web.asked())
        if asked != dict(self.asked):
            found.append(f"asked {asked} for {dict(self.asked)}")
        if self.delivered is not None and sorted(seen.delivered) != sorted(self.delivered):
            found.append(f"delivered {seen.delivered} for {list(self.delivered)}")
        if self.failed is not None and set(seen.failed) != set(self.failed):
            found.append(f"failed {seen.failed} for {dict(self.failed)}")
        if not found and not self.proof(seen):
            found.append("the proof fails")
        if seen.web.trespasses:
            found.append(f"trespasses {seen.web.trespasses}")
        return found


class Probe(Spider):
    """Makes the requests of a plan and notes what comes of them."""

    name = "probe"
    second: Request | None = None
    """What the first callback requests."""

    def __init__(self, plan: Plan, seen: Seen, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan = plan
        self.seen = seen
        for name, value in plan.attributes.items():
            setattr(self, name, value)

    async def start(self) -> Any:
        if self.start_urls:
            async for request in super().start():
                yield request
        for request in self.plan.requests:
            yield self.watched(request)

    def watched(self, request: str | Request) -> Request:
        """The request, told to report here."""
        if isinstance(request, str):
            request = Request(request)
        return request.replace(callback=self.parse, errback=self.lose)

    def parse(self, response: Any) -> Any:
        self.seen.take(response)
        if self.second is not None:
            request, self.second = self.second, None
            yield self.watched(request)
        if self.plan.follows and hasattr(response, "follow_all"):
            yield from response.follow_all(css="a", callback=self.parse, errback=self.lose)

    def lose(self, failure: Failure) -> None:
        self.seen.lose(failure)


@dataclass(frozen=True)
class Case:
    """One trap. `number` is that of tests/data/cases.json, with a letter per variant, or a name of our own."""

    number: str
    title: str
    right: str
    stage: Callable[[Web], Plan]

    def __str__(self) -> str:
        return self.number


class Cases(dict[str, Case]):
    """Cases by their numbers."""

    def add(
        self, number: str, title: str, right: str
    ) -> Callable[[Callable[[Web], Plan]], Callable[[Web], Plan]]:
        """Decorate the function that stages a case."""

        def register(stage: Callable[[Web], Plan]) -> Callable[[Web], Plan]:
            assert number not in self, number
            self[number] = Case(number, title, right, stage)
            return stage

        return register

    def of(self, prefix: str) -> list[Case]:
        """The variants of a case."""
        return [case for number, case in self.items() if number.split(".")[0] == prefix]
