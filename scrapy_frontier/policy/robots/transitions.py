"""How the record of a robots.txt changes: by a fetch, by a new run, by a newer parser."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.robots.freshness import lifetime_s
from scrapy_frontier.policy.robots.outcomes import (
    FETCHED,
    NO_GROUPS,
    Meaning,
    RobotsFetch,
    RobotsOutcome,
)
from scrapy_frontier.policy.robots.records import MAX_AGE_S, RobotsRecord, RobotsState, digest_of
from scrapy_frontier.policy.robots.rules import PARSER_VERSION, Rules

if TYPE_CHECKING:
    from random import Random

UNREACHABLE_TOO_LONG: Final = "unreachable_too_long"
"""Reason: after so many days without a robots.txt the policy takes it as unavailable."""

_DAY_S: Final = 86_400.0
_DOUBLINGS: Final = 30


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """How long records live and how a robots.txt that cannot be reached is tried again.

    `min_age_s`: the shortest life of a record, whatever Cache-Control says; `max_age_s`: the
    longest, at most a day. `backoff_s`: the first wait behind a failure, doubled with each, up to
    `max_backoff_s`, varied by `jitter` (0.2: by 20 % up or down). The origin is closed for this run
    after `max_tries` failures in a row, or where the server asks for a longer wait than
    `patience_s`, unless a copy stands in (`stands_in`). `gives_way`: after `unreachable_days` the
    origin counts as one without a robots.txt (an option of RFC 9309, section 2.3.1.4).
    """

    min_age_s: float = 3600.0
    max_age_s: float = MAX_AGE_S
    backoff_s: float = 15.0
    max_backoff_s: float = 3600.0
    jitter: float = 0.2
    max_tries: int = 5
    patience_s: float = 3600.0
    stands_in: bool = True
    gives_way: bool = False
    unreachable_days: float = 30.0

    def __post_init__(self) -> None:
        if not 0 <= self.min_age_s <= self.max_age_s <= MAX_AGE_S:
            raise ValueError(
                f"min_age_s {self.min_age_s!r}, max_age_s {self.max_age_s!r}: must be"
                f" 0 <= min_age_s <= max_age_s <= {MAX_AGE_S:g}"
            )
        if not 0 < self.backoff_s <= self.max_backoff_s <= MAX_AGE_S:
            raise ValueError(
                f"backoff_s {self.backoff_s!r}, max_backoff_s {self.max_backoff_s!r}: must be"
                f" 0 < backoff_s <= max_backoff_s <= {MAX_AGE_S:g}"
            )
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter {self.jitter!r}: must be at least 0 and below 1")
        if self.max_tries < 1:
            raise ValueError(f"max_tries {self.max_tries!r}: at least 1 try must be allowed")
        for name, value in (
            ("patience_s", self.patience_s),
            ("unreachable_days", self.unreachable_days),
        ):
            if not value >= 0:
                raise ValueError(f"{name} {value!r}: must be a number of at least 0")


def after_fetch(
    record: RobotsRecord, outcome: RobotsOutcome, now: float, policy: RobotsPolicy, random: Random
) -> RobotsRecord:
    """Return the record after a fetch of its robots.txt that ended at `now`.

    `record` of an origin without one is `RobotsRecord(origin)`. `random` varies the wait behind a
    failure. Raises ValueError where the outcome confirms a copy that the record does not have.
    """
    if outcome.meaning is Meaning.UNCHANGED and not record.has_copy:
        raise ValueError(f"{record.origin} has no copy of its robots.txt that could be unchanged")
    if outcome.is_unreachable:
        return _fail(record, outcome, now, policy, random)
    fetch = outcome.fetch
    life_s = lifetime_s(fetch.cache_control, fetch.age, policy.min_age_s, policy.max_age_s)
    if outcome.meaning is Meaning.UNCHANGED:
        return _confirm(record, fetch, now, now + life_s)
    return _take(record.origin, outcome, now, now + life_s)


def reopen(record: RobotsRecord) -> RobotsRecord:
    """Return the record as a new run, or a resumed one, takes it over: what was closed is tried
    again, though not before the time that the server or the backoff has set.
    """
    return replace(record, failures=0, is_closed=False)


def reread(record: RobotsRecord) -> RobotsRecord:
    """Return the record with its text as this version of the parser reads it; the text must be
    there.
    """
    if record.parser_version == PARSER_VERSION:
        return record
    if not record.has_copy:
        return replace(record, parser_version=PARSER_VERSION)
    has_groups = Rules.parse(record.text).has_groups
    return replace(
        record,
        state=RobotsState.RULES if has_groups else RobotsState.ALLOW_ALL,
        reason=FETCHED if has_groups else NO_GROUPS,
        parser_version=PARSER_VERSION,
    )


def _take(origin: str, outcome: RobotsOutcome, now: float, expires_at: float) -> RobotsRecord:
    """What came replaces all that was known."""
    fetch = outcome.fetch
    is_text = outcome.reason in (FETCHED, NO_GROUPS)
    return RobotsRecord(
        origin=origin,
        state=RobotsState(outcome.meaning.value),
        reason=outcome.reason,
        status=fetch.status,
        fetched_at=now,
        expires_at=expires_at,
        digest=digest_of(outcome.text) if is_text else "",
        text=outcome.text,
        is_cut=outcome.is_cut,
        hops=fetch.hops,
        etag=fetch.etag,
        last_modified=fetch.last_modified,
        content_type=fetch.content_type,
        tried_at=now,
        next_try_at=expires_at,
    )


def _confirm(
    record: RobotsRecord, fetch: RobotsFetch, now: float, expires_at: float
) -> RobotsRecord:
    """The copy is as good as new; headers that came with the answer replace those of the copy."""
    return replace(
        record,
        fetched_at=now,
        expires_at=expires_at,
        etag=fetch.etag or record.etag,
        last_modified=fetch.last_modified or record.last_modified,
        tried_at=now,
        next_try_at=expires_at,
        failures=0,
        trouble="",
        unreachable_since=None,
        is_closed=False,
    )


def _fail(
    record: RobotsRecord, outcome: RobotsOutcome, now: float, policy: RobotsPolicy, random: Random
) -> RobotsRecord:
    failures = record.failures + 1
    since = now if record.unreachable_since is None else record.unreachable_since
    asked_s = _asked_wait(outcome.fetch)
    failed = replace(
        record,
        tried_at=now,
        next_try_at=now + max(asked_s, _backoff(failures, policy, random)),
        failures=failures,
        trouble=outcome.reason,
        unreachable_since=since,
    )
    if record.has_copy and policy.stands_in:
        return failed
    if policy.gives_way and now - since >= policy.unreachable_days * _DAY_S:
        return _without_copy(
            failed,
            RobotsState.ALLOW_ALL,
            UNREACHABLE_TOO_LONG,
            outcome.fetch,
            now + policy.max_age_s,
        )
    is_closed = failures >= policy.max_tries or asked_s > policy.patience_s
    waiting = _without_copy(
        failed, RobotsState.DISALLOW_ALL, outcome.reason, outcome.fetch, failed.next_try_at
    )
    return replace(waiting, is_closed=is_closed)


def _without_copy(
    failed: RobotsRecord, state: RobotsState, reason: str, fetch: RobotsFetch, expires_at: float
) -> RobotsRecord:
    return RobotsRecord(
        origin=failed.origin,
        state=state,
        reason=reason,
        status=fetch.status,
        fetched_at=failed.tried_at,
        expires_at=expires_at,
        hops=fetch.hops,
        content_type=fetch.content_type,
        tried_at=failed.tried_at,
        next_try_at=failed.next_try_at,
        failures=failed.failures,
        trouble=failed.trouble,
        unreachable_since=failed.unreachable_since,
    )


def _asked_wait(fetch: RobotsFetch) -> float:
    """What Retry-After asks for, within a day: after that the file may be asked for anew anyway."""
    asked_s = fetch.retry_after_s
    if asked_s is None or math.isnan(asked_s):
        return 0.0
    return min(max(asked_s, 0.0), MAX_AGE_S)


def _backoff(failures: int, policy: RobotsPolicy, random: Random) -> float:
    doubled_s: float = policy.backoff_s * 2 ** min(failures - 1, _DOUBLINGS)
    return min(doubled_s, policy.max_backoff_s) * random.uniform(
        1 - policy.jitter, 1 + policy.jitter
    )
