"""Judging URLs by the record of their origin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import FrontierError, IdentityError
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve
from scrapy_frontier.policy.robots.decisions import (
    NO_POLICY,
    ROBOTS_ALLOW,
    ROBOTS_CLOSED,
    ROBOTS_DISALLOW,
    ROBOTS_PENDING,
    ROBOTS_UNREACHABLE,
    SILENT,
    Decision,
    OperatorAnswer,
    OperatorPolicy,
    ProtocolAnswer,
    Ruling,
)
from scrapy_frontier.policy.robots.groups import ROBOTS_PATH
from scrapy_frontier.policy.robots.records import RobotsRecord, RobotsState
from scrapy_frontier.policy.robots.rules import Rules

_FREE: Final = ProtocolAnswer(Ruling.ALLOWED, ROBOTS_ALLOW)
_PENDING: Final = ProtocolAnswer(Ruling.WAITING, ROBOTS_PENDING)
_UNREACHABLE: Final = ProtocolAnswer(Ruling.WAITING, ROBOTS_UNREACHABLE)
_CLOSED: Final = ProtocolAnswer(Ruling.WAITING, ROBOTS_CLOSED)

_USERINFO = re.compile(r"(?<=://)[^/?#]*@")


class TextMissing(FrontierError):
    """A record whose text decides came without its text; nothing may be judged by it."""


@dataclass(frozen=True, slots=True)
class IntervalFloor:
    """A Crawl-delay: what is asked for, what is granted at most, and the number of its line."""

    asked_s: float
    cap_s: float
    line_number: int | None = None

    @property
    def floor_s(self) -> float:
        """The shortest interval that the origin is to be given."""
        return min(self.asked_s, self.cap_s)

    @property
    def is_capped(self) -> bool:
        """Whether more was asked for than is granted."""
        return self.asked_s > self.cap_s


class Judge:
    """One record, its text parsed once: for whoever judges many URLs of an origin by it."""

    __slots__ = ("record", "rules")

    def __init__(self, record: RobotsRecord) -> None:
        if record.state is RobotsState.RULES and not record.text:
            raise TextMissing(
                f"the robots.txt of {record.origin} has rules, but its text was not read: load the"
                " record with its text"
            )
        self.record = record
        self.rules = Rules.parse(record.text)

    def decide(
        self, agent_token: str, url: str, now: float, operator: OperatorPolicy = NO_POLICY
    ) -> Decision:
        """Decide on a request URL of the record's origin, for the agent of this product token.

        Raises ValueError for a URL of another origin: its own robots.txt holds for it.
        """
        if not url.startswith(f"{self.record.origin}/"):
            raise ValueError(f"{url!r} is no request URL of {self.record.origin}")
        target = target_of(url)
        protocol = self._ask_protocol(agent_token, target, now)
        return Decision(protocol, _ask_operator(operator, target), self.record)

    def interval_floor(self, agent_token: str, cap_s: float) -> IntervalFloor | None:
        """What Crawl-delay asks for, None where it is not in the rules of this agent."""
        if self.record.state is not RobotsState.RULES:
            return None
        group = self.rules.for_agent(agent_token)
        if group.crawl_delay_s is None:
            return None
        return IntervalFloor(group.crawl_delay_s, cap_s, group.crawl_delay_line)

    def _ask_protocol(self, agent_token: str, target: str, now: float) -> ProtocolAnswer:
        if target == ROBOTS_PATH:
            return _FREE
        if self.record.state is RobotsState.DISALLOW_ALL:
            return _CLOSED if self.record.is_closed else _UNREACHABLE
        if not self.record.is_in_force(now):
            return _PENDING
        if self.record.state is RobotsState.ALLOW_ALL:
            return _FREE
        group = self.rules.for_agent(agent_token)
        verdict = group.decide(target)
        if verdict.allowed:
            return ProtocolAnswer(Ruling.ALLOWED, ROBOTS_ALLOW, verdict, group.token)
        return ProtocolAnswer(Ruling.FORBIDDEN, ROBOTS_DISALLOW, verdict, group.token)


def decide(
    record: RobotsRecord | None,
    agent_token: str,
    url: str,
    operator: OperatorPolicy,
    now: float,
) -> Decision:
    """Decide on one request URL; no record means that nothing is known of its origin yet. Whoever
    has many to decide on keeps a `Judge`.
    """
    if record is not None:
        return Judge(record).decide(agent_token, url, now, operator)
    target = target_of(url)
    protocol = _FREE if target == ROBOTS_PATH else _PENDING
    return Decision(protocol, _ask_operator(operator, target), None)


def interval_floor(record: RobotsRecord, agent_token: str, cap_s: float) -> IntervalFloor | None:
    """What Crawl-delay asks for, None where it is not in the rules of this agent."""
    return Judge(record).interval_floor(agent_token, cap_s)


def robots_url(url: str) -> str:
    """Return the URL of the robots.txt that holds for a URL: that of its scheme, host and port;
    user names are no part of it. Raises `IdentityError` for what is no http(s) URL.
    """
    resolved = resolve(_USERINFO.sub("", url, count=1))
    if isinstance(resolved, Rejection):
        raise IdentityError(f"{url!r} has no robots.txt: {resolved.rule}")
    return f"{resolved.origin}{ROBOTS_PATH}"


def target_of(url: str) -> str:
    """Return path and query of an absolute URL, as rules are matched with them."""
    _, separator, rest = url.partition("://")
    rest = (rest if separator else url).partition("#")[0]
    ends = [end for end in (rest.find("/"), rest.find("?")) if end >= 0]
    return rest[min(ends) :] if ends else "/"


def _ask_operator(operator: OperatorPolicy, target: str) -> OperatorAnswer:
    if operator.rules is not None:
        verdict = operator.rules.decide(target)
        if not verdict.allowed:
            return OperatorAnswer(Ruling.FORBIDDEN, operator.waiver, verdict)
    if operator.waiver:
        return OperatorAnswer(Ruling.ALLOWED, operator.waiver)
    return SILENT
