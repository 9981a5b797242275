"""The record of an origin's robots.txt: which copy is in force, how old it is, when to ask again.

An instant is in seconds since the epoch. The copy and the trouble are two things: a record that has
a copy of a robots.txt keeps it while later fetches fail (RFC 9309, section 2.4), and says since
when they do.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from scrapy_frontier.policy.robots.outcomes import Hop
from scrapy_frontier.policy.robots.rules import PARSER_VERSION

MAX_AGE_S: Final = 24 * 3600.0
"""How long a copy may be in force while robots.txt can be reached (RFC 9309, section 2.4)."""

CLOCK_SKEW_S: Final = 60.0
"""How far the clocks of two workers may be apart. A record from further ahead is not believed."""

_DIGEST_SIZE: Final = 16


class RobotsState(Enum):
    """What is known of the rules of an origin."""

    PENDING = "pending"
    """Nothing yet."""
    RULES = "rules"
    """The text decides."""
    ALLOW_ALL = "allow_all"
    """There is no robots.txt, or none that addresses anybody."""
    DISALLOW_ALL = "disallow_all"
    """It could not be fetched, and there is no copy: everything waits."""

    @property
    def label(self) -> str:
        """The name used in reports and documentation."""
        return self.value


def digest_of(text: bytes) -> str:
    """Return the digest of the text of a robots.txt, in hexadecimal digits."""
    return hashlib.blake2b(text, digest_size=_DIGEST_SIZE).hexdigest()


@dataclass(frozen=True, slots=True)
class RobotsRecord:
    """All that is known of the robots.txt of one origin (scheme, host and port).

    Of what is in force: `state`, its `reason` (`RobotsOutcome.reason`), the `status` of the
    response, `fetched_at`, `expires_at`, the `digest` of the `text` in force ("" where no text is),
    whether the text `is_cut`, the redirects that led to it (`hops`), and the headers `etag`,
    `last_modified` and `content_type`. The text may be held apart from the record: the digest tells
    whether there is one.

    Of the last fetches: `tried_at`, `next_try_at` (the instant before which robots.txt is not asked
    for again), `failures` (in a row, since the run began), `trouble` (the reason of the last one)
    and `unreachable_since`, both gone with a fetch that does not fail. `is_closed`: this run tries
    no more.
    """

    origin: str
    state: RobotsState = RobotsState.PENDING
    reason: str = ""
    status: int | None = None
    fetched_at: float | None = None
    expires_at: float = 0.0
    parser_version: int = PARSER_VERSION
    digest: str = ""
    text: bytes = field(default=b"", repr=False)
    is_cut: bool = False
    hops: tuple[Hop, ...] = ()
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    tried_at: float | None = None
    next_try_at: float = 0.0
    failures: int = 0
    trouble: str = ""
    unreachable_since: float | None = None
    is_closed: bool = False

    @property
    def has_copy(self) -> bool:
        """Whether there is a text that a server gave as its robots.txt."""
        return bool(self.digest)

    @property
    def is_standing_in(self) -> bool:
        """Whether the copy is in force because no newer one can be had."""
        return self.has_copy and self.unreachable_since is not None

    def is_fresh(self, now: float) -> bool:
        """Whether what is known has not expired; what is not known is never fresh."""
        left_s = self.expires_at - now
        return self.state is not RobotsState.PENDING and 0 < left_s <= MAX_AGE_S + CLOCK_SKEW_S

    def is_in_force(self, now: float) -> bool:
        """Whether URLs may be judged by it: it is fresh, or its copy stands in."""
        return self.is_fresh(now) or self.is_standing_in

    def needs_fetch(self, now: float) -> bool:
        """Whether robots.txt is to be asked for now. That a fetch is on its way already, only the
        caller knows.
        """
        if self.is_closed:
            return False
        if self.unreachable_since is not None:
            return now >= self.next_try_at
        return not self.is_fresh(now)

    def conditions(self) -> dict[str, str]:
        """The request headers that ask for a newer text only.

        None where redirects led to the copy: its validators are those of another URL.
        """
        if not self.has_copy or self.hops:
            return {}
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


def changes_rulings(old: RobotsRecord, new: RobotsRecord) -> bool:
    """Whether URLs of the origin that were judged by `old` must be judged again by `new`."""
    return _judges_by(old) != _judges_by(new)


def _judges_by(record: RobotsRecord) -> tuple[RobotsState, int, str]:
    if record.state is RobotsState.RULES:
        return record.state, record.parser_version, record.digest
    return record.state, 0, ""
