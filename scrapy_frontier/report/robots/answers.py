"""What the record of an origin holds, and what it says of a URL to the agent of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from scrapy_frontier.errors import ConfigError, IdentityError
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve
from scrapy_frontier.policy.robots import (
    IntervalFloor,
    Judge,
    RobotsRecord,
    RobotsState,
    Ruling,
    Verdict,
    decide,
    robots_url,
)
from scrapy_frontier.policy.robots.lines import split_lines
from scrapy_frontier.report.instants import instant
from scrapy_frontier.report.robots.records import entry_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.policy.robots import Decision
    from scrapy_frontier.report.robots.records import Entry
    from scrapy_frontier.report.robots.run_policy import RunPolicy


@dataclass(frozen=True, slots=True)
class Subject:
    """What was asked about: an origin, or a URL of it."""

    origin: str
    url: str | None


def read_subject(connection: Connection, asked: str) -> Subject:
    """Understand an argument: an origin, the URL of a robots.txt, or any other URL.

    Without a scheme that origin is meant of which there is a record. Raises `IdentityError` for what
    has no robots.txt, `ConfigError` for what may mean two origins.
    """
    if "://" in asked:
        return _subject(asked)
    subjects = [_subject(asked, f"{scheme}://") for scheme in ("https", "http")]
    known = [one for one in subjects if entry_of(connection, one.origin) is not None]
    if len(known) > 1:
        raise ConfigError(f"{asked!r} may be {known[0].origin} or {known[1].origin}: name one")
    return known[0] if known else subjects[0]


def _subject(asked: str, scheme: str = "") -> Subject:
    resolved = resolve(scheme + asked)
    if isinstance(resolved, Rejection):
        raise IdentityError(f"{asked!r} has no robots.txt: {resolved.rule}")
    is_bare = not any(mark in (scheme + asked).partition("://")[2] for mark in "/?#")
    if is_bare or resolved.url == robots_url(resolved.url):
        return Subject(resolved.origin, None)
    return Subject(resolved.origin, resolved.url)


@dataclass(frozen=True, slots=True)
class RecordAnswer:
    """The record of one origin as it is `now`, and what of it holds for the agent of a run.

    `record` is None where what is stored cannot be read, and then `fault` says why. `group`: the
    token of the group that holds for the agent, "" where there is none; `floor`: its Crawl-delay.
    """

    origin: str
    record: RobotsRecord | None
    fault: str
    now: float
    group: str = ""
    floor: IntervalFloor | None = None
    sitemaps: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Entry, policy: RunPolicy, now: float) -> RecordAnswer:
        """What is stored of an origin."""
        if entry.record is None:
            return cls(entry.origin, None, entry.fault, now)
        judge = Judge(entry.record)
        return cls(
            entry.origin,
            entry.record,
            "",
            now,
            judge.rules.for_agent(policy.agent.token).token,
            policy.interval_floor(judge),
            tuple(sitemap.url for sitemap in judge.rules.sitemaps),
        )

    def lines(self) -> list[str]:
        """The lines of the text, which decisions number from 1."""
        text = b"" if self.record is None else self.record.text
        return [line.decode("utf-8", "replace") for line in split_lines(text)]

    def to_json(self) -> dict[str, Any]:
        """The record as plain data, without its text. Durations are in seconds from now."""
        if self.record is None:
            return {"origin": self.origin, "state": None, "fault": self.fault}
        record = self.record
        return {
            "origin": self.origin,
            "state": record.state.label,
            "reason": record.reason or None,
            "status": record.status,
            "fetched_at": instant(record.fetched_at),
            "age_s": self.age_s,
            "expires_at": instant(record.expires_at),
            "expires_in_s": self.expires_in_s,
            "is_in_force": record.is_in_force(self.now),
            "is_standing_in": record.is_standing_in,
            "hops": [{"status": hop.status, "url": hop.target} for hop in record.hops],
            "tried_at": instant(record.tried_at),
            "next_try_at": instant(record.next_try_at),
            "failures": record.failures,
            "trouble": record.trouble or None,
            "unreachable_since": instant(record.unreachable_since),
            "is_closed": record.is_closed,
            "digest": record.digest or None,
            "size": len(record.text),
            "is_cut": record.is_cut,
            "content_type": record.content_type or None,
            "etag": record.etag or None,
            "last_modified": record.last_modified or None,
            "parser_version": record.parser_version,
            "group": self.group or None,
            "crawl_delay_s": self.floor.asked_s if self.floor else None,
            "crawl_delay_line": self.floor.line_number if self.floor else None,
            "interval_floor_s": self.floor.floor_s if self.floor else None,
            "sitemaps": list(self.sitemaps),
        }

    @property
    def age_s(self) -> float | None:
        """How long ago what is in force was fetched."""
        fetched = None if self.record is None else self.record.fetched_at
        return None if fetched is None else round(self.now - fetched, 3)

    @property
    def expires_in_s(self) -> float | None:
        """When it expires; below 0 for what has."""
        expires = 0.0 if self.record is None else self.record.expires_at
        return round(expires - self.now, 3) if expires else None


@dataclass(frozen=True, slots=True)
class Word:
    """What one side says of a URL: its ruling, the code of it, and the line that decides, if one does."""

    ruling: str
    rule: str
    group: str | None
    line: int | None
    text: str | None
    waiver: str | None


@dataclass(frozen=True, slots=True)
class UrlAnswer:
    """What robots.txt and the operator say of a URL, side by side, and what follows.

    `ruling` is `allowed`, `forbidden` or `waiting`. `is_expired`: the copy is asked for again before
    the URL is fetched; the answer is what it says. `operator` is None where the operator says
    nothing, `record` where nothing is known.
    """

    url: str
    ruling: str
    rule: str
    is_expired: bool
    protocol: Word
    operator: Word | None
    record: RecordAnswer | None

    @classmethod
    def of(cls, url: str, known: RecordAnswer | None, policy: RunPolicy) -> UrlAnswer:
        """Judge a URL by the record of its origin, for the agent and the operator of a run."""
        now = 0.0 if known is None else known.now
        record = None if known is None else known.record
        has_expired = record is not None and not record.is_in_force(now)
        if record is not None and has_expired and record.state is not RobotsState.DISALLOW_ALL:
            record = replace(record, expires_at=now + 1)
        decision = decide(record, policy.agent.token, url, policy.operator, now)
        return cls(
            url,
            decision.ruling.value,
            decision.rule,
            has_expired,
            _protocol(decision),
            _operator(decision),
            known,
        )

    @property
    def is_allowed(self) -> bool:
        """Whether the URL may be fetched."""
        return self.ruling == Ruling.ALLOWED.value

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "url": self.url,
            "ruling": self.ruling,
            "rule": self.rule,
            "is_expired": self.is_expired,
            "protocol": asdict(self.protocol),
            "operator": None if self.operator is None else asdict(self.operator),
            "record": None if self.record is None else self.record.to_json(),
        }


def _protocol(decision: Decision) -> Word:
    answer = decision.protocol
    return _word(answer.ruling, answer.rule, answer.verdict, answer.group)


def _operator(decision: Decision) -> Word | None:
    answer = decision.operator
    if answer.ruling is None:
        return None
    return _word(answer.ruling, decision.rule, answer.verdict, "", answer.waiver)


def _word(ruling: Ruling, rule: str, verdict: Verdict | None, group: str, waiver: str = "") -> Word:
    line = None if verdict is None else verdict.line_number
    text = None if verdict is None or line is None else verdict.line_text
    return Word(ruling.value, rule, group or None, line, text, waiver or None)
