"""What the fetch of a robots.txt means (RFC 9309, section 2.3.1).

==================================  ================================================================
what came                           what it means
==================================  ================================================================
2xx                                 its rules; without any group in it, everything is allowed
304 to a conditional request        the copy at hand is still right
4xx but 429, whatever its body      unavailable: everything is allowed
a sixth redirect, a circle, a       unavailable: everything is allowed
redirect that leads nowhere
429, 5xx, any other status          unreachable: everything waits
no response, or half a 2xx          unreachable: everything waits
a redirect that we must not follow  unreachable: everything waits
==================================  ================================================================

Two choices beyond the letter: 429 is a 4xx there, but a server that asks for less is not to be
taken as having no rules (Google reads it likewise); and half a file may lack the half that forbids.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from scrapy_frontier.policy.robots.lines import read_text
from scrapy_frontier.policy.robots.rules import Rules

MAX_REDIRECTS: Final = 5
"""How many redirects are followed from one robots.txt (RFC 9309, section 2.3.1.2)."""

FETCHED: Final = "fetched"
"""Reason: the text has rules."""
NO_GROUPS: Final = "no_groups"
"""Reason: it came, but no line of it addresses anybody."""
NOT_MODIFIED: Final = "not_modified"
"""Reason: the server confirmed the copy at hand."""
TOO_MANY_REDIRECTS: Final = "redirect.too_many"
REDIRECT_LOOP: Final = "redirect.loop"
REDIRECT_UNUSABLE: Final = "redirect.unusable"
"""Reason: the target of the redirect is missing, or is no http(s) URL."""
REDIRECT_REFUSED: Final = "redirect.refused"
"""Reason: a policy of ours forbids the target."""

REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})

_UNAVAILABLE: Final = frozenset({TOO_MANY_REDIRECTS, REDIRECT_LOOP, REDIRECT_UNUSABLE})


class Hop(NamedTuple):
    """A redirect that was followed: the status that asked for it, and the URL it led to."""

    status: int
    target: str


def hop_refusal(robots_url: str, hops: Iterable[Hop], target: str) -> str | None:
    """Return why a further redirect to `target` is not followed, None if it may be.

    `robots_url` is where the fetch began, `hops` what has been followed since. The answer goes into
    `RobotsFetch.stop`.
    """
    known = [robots_url, *(hop.target for hop in hops)]
    if target in known:
        return REDIRECT_LOOP
    return TOO_MANY_REDIRECTS if len(known) > MAX_REDIRECTS else None


@dataclass(frozen=True, slots=True)
class RobotsFetch:
    """All that the fetch of a robots.txt gave.

    `status`: of the last response, None where none came. `body`: decompressed, all of it or more
    than twice `LIMIT`. `hops`: the redirects that were followed. `stop`: why the last one was not
    (`hop_refusal`, `REDIRECT_UNUSABLE`, `REDIRECT_REFUSED`), or "". `failure`: the kind of the
    failure of the download (`dns`, `refused`, `reset`, `timeout`, `truncated`, ...), or ""; with a
    status it means that the body broke off. `retry_after_s`: the Retry-After of the response in
    seconds. `cache_control`, `age`, `etag`, `last_modified`, `content_type`: the headers of these
    names, "" where there are none.
    """

    status: int | None = None
    body: bytes = b""
    hops: tuple[Hop, ...] = ()
    stop: str = ""
    failure: str = ""
    retry_after_s: float | None = None
    cache_control: str = ""
    age: str = ""
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""


class Meaning(Enum):
    """What a fetch says about the rules of its origin."""

    RULES = "rules"
    ALLOW_ALL = "allow_all"
    DISALLOW_ALL = "disallow_all"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class RobotsOutcome:
    """A fetch, judged.

    `reason`: `fetched`, `no_groups`, `not_modified`, `http.{status}`, `download.{kind}` or
    `redirect.{why}`. `text`: the part of the body that counts, empty unless it was read; `is_cut`:
    there was more of it.
    """

    meaning: Meaning
    reason: str
    fetch: RobotsFetch
    text: bytes = b""
    is_cut: bool = False

    @property
    def is_unreachable(self) -> bool:
        """Whether it is to be tried again soon, and nothing known about the rules meanwhile."""
        return self.meaning is Meaning.DISALLOW_ALL


def classify(fetch: RobotsFetch, *, has_copy: bool = False) -> RobotsOutcome:
    """Judge a fetch; `has_copy`: it was conditional on a copy at hand."""
    status = fetch.status
    if status is None:
        return _unreachable(fetch, f"download.{fetch.failure or 'failed'}")
    if fetch.stop or status in REDIRECT_STATUSES:
        return _stopped(fetch, fetch.stop or _why_stopped(fetch))
    if 400 <= status < 500 and status != 429:
        return RobotsOutcome(Meaning.ALLOW_ALL, f"http.{status}", fetch)
    if status == 304 and has_copy:
        return RobotsOutcome(Meaning.UNCHANGED, NOT_MODIFIED, fetch)
    if not 200 <= status < 300:
        return _unreachable(fetch, f"http.{status}")
    if fetch.failure:
        return _unreachable(fetch, f"download.{fetch.failure}")
    return _read(fetch)


def _read(fetch: RobotsFetch) -> RobotsOutcome:
    text, is_cut = read_text(fetch.body)
    if Rules.parse(text).has_groups:
        return RobotsOutcome(Meaning.RULES, FETCHED, fetch, text, is_cut)
    return RobotsOutcome(Meaning.ALLOW_ALL, NO_GROUPS, fetch, text, is_cut)


def _why_stopped(fetch: RobotsFetch) -> str:
    """A redirect that was not followed, and nobody said why: if it was not the sixth, it must not
    pass for a server without a robots.txt.
    """
    return TOO_MANY_REDIRECTS if len(fetch.hops) >= MAX_REDIRECTS else f"http.{fetch.status}"


def _stopped(fetch: RobotsFetch, stop: str) -> RobotsOutcome:
    if stop in _UNAVAILABLE:
        return RobotsOutcome(Meaning.ALLOW_ALL, stop, fetch)
    return _unreachable(fetch, stop)


def _unreachable(fetch: RobotsFetch, reason: str) -> RobotsOutcome:
    return RobotsOutcome(Meaning.DISALLOW_ALL, reason, fetch)
