"""What robots.txt does to the URLs of a run, origin by origin."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.policy.robots import (
    ROBOTS_CLOSED,
    ROBOTS_DISALLOW,
    ROBOTS_PENDING,
    ROBOTS_UNREACHABLE,
    RobotsRecord,
    RobotsState,
)
from scrapy_frontier.report.account import RobotsAccount
from scrapy_frontier.report.causes import is_of
from scrapy_frontier.report.instants import instant
from scrapy_frontier.report.names import pairs, urls
from scrapy_frontier.report.robots.records import records_of, robots_origin
from scrapy_frontier.report.robots.run_policy import obeys_robots
from scrapy_frontier.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from scrapy_frontier.report.account import Counted
    from scrapy_frontier.report.figures import Figures, Standing, StandingCount
    from scrapy_frontier.report.names import Codes

ROBOTS_RULES: Final = "robots"
"""First word of the rules about robots.txt."""

WAIVER: Final = "dont_obey_robotstxt"

_NO_IDENTITY: Final = 2**63


@dataclass(slots=True)
class _Kept:
    """Identities of one origin that are not fetched; an example is the least id."""

    by_rule: Counter[str] = field(default_factory=Counter)
    suppressed: int = _NO_IDENTITY
    queued_count: int = 0
    queued: int = _NO_IDENTITY

    def add(self, standing: Standing, found: StandingCount, rule: str) -> None:
        """Count identities that stand alike."""
        if standing.state == State.SUPPRESSED and is_of(rule, ROBOTS_RULES):
            self.by_rule[rule] += found.count
            self.suppressed = min(self.suppressed, found.example)
        elif standing.state == State.SCHEDULED or (
            standing.state == State.DEFERRED and rule == ROBOTS_PENDING
        ):
            self.queued_count += found.count
            self.queued = min(self.queued, found.example)


def robots_accounts(
    connection: Connection,
    run_id: int,
    figures: Figures,
    codes: Codes,
    waivers: Sequence[Counted],
) -> tuple[RobotsAccount, ...]:
    """The origins that have a record, if the run obeys it, or URLs that a rule about robots.txt
    keeps out: first those whose URLs wait, then those with the most exclusions.
    """
    names = pairs(connection, f"SELECT origin_id, origin FROM origin WHERE run_id = {run_id:d}")
    kept: defaultdict[str, _Kept] = defaultdict(_Kept)
    for standing, found in figures.standing.items():
        origin = robots_origin(names.get(standing.origin_id, ""))
        kept[origin].add(standing, found, codes[standing.reason_id])
    records = records_of(connection, kept) if obeys_robots(connection, run_id) else {}
    told = {origin: found for origin, found in kept.items() if found.by_rule or origin in records}
    examples = urls(connection, (one for found in told.values() for one in _examples(found)))
    waived = _waived(waivers, len(kept))
    accounts = [
        _account(origin, found, records.get(origin), examples, waived)
        for origin, found in told.items()
    ]
    return tuple(sorted(accounts, key=lambda one: (-one.waiting, -one.suppressed, one.origin)))


def _examples(kept: _Kept) -> Iterator[int]:
    return (number for number in (kept.suppressed, kept.queued) if number != _NO_IDENTITY)


def _waived(waivers: Sequence[Counted], origins: int) -> int | None:
    """Requests let through per origin: the ledger counts them for the run as a whole."""
    count = sum(waiver.count for waiver in waivers if waiver.name == WAIVER)
    return count if origins == 1 or not count else None


def _account(
    origin: str,
    kept: _Kept,
    record: RobotsRecord | None,
    examples: Mapping[int, str],
    waived: int | None,
) -> RobotsAccount:
    must_wait = record is not None and record.state is RobotsState.DISALLOW_ALL
    waiting = kept.queued_count if must_wait else 0
    rule = min(kept.by_rule, key=lambda name: (-kept.by_rule[name], name), default=None)
    if rule is None and record is not None and waiting:
        rule = ROBOTS_CLOSED if record.is_closed else ROBOTS_UNREACHABLE
    return RobotsAccount(
        origin=origin,
        rule=rule,
        suppressed=kept.by_rule.total(),
        example=examples.get(kept.suppressed if kept.by_rule or not waiting else kept.queued),
        by_rule=dict(sorted(kept.by_rule.items())),
        excluded=kept.by_rule[ROBOTS_DISALLOW],
        waiting=waiting,
        waived=waived,
        **_facts(record),
    )


def _facts(record: RobotsRecord | None) -> dict[str, Any]:
    """What the account says of a record; of none, that there is none."""
    known = RobotsRecord("") if record is None else record
    return {
        "state": None if record is None else known.state.label,
        "reason": known.reason or None,
        "status": known.status,
        "fetched_at": instant(known.fetched_at),
        "expires_at": instant(known.expires_at),
        "digest": known.digest or None,
        "is_standing_in": known.is_standing_in,
        "failures": known.failures,
        "trouble": known.trouble or None,
        "unreachable_since": instant(known.unreachable_since),
        "next_try_at": instant(known.next_try_at),
        "is_closed": known.is_closed,
    }
