"""Requests that were under way when their process died: each may have reached its origin a moment ago.

The time of an origin is written when its request goes on the wire, a moment before or after which the process can die.
So where a lease was cut off, the origin's interval counts from the resumption (invariant 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier.dispatch import gate_key_of
from scrapy_frontier.identity import host_of
from scrapy_frontier.policy.leases import EXHAUSTED, EXPIRED
from scrapy_frontier.policy.robots import Judge, RecordUnreadable, TextMissing, load, reread
from scrapy_frontier.states import State
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import OriginTiming

if TYPE_CHECKING:
    from scrapy_frontier.frontier.robots import RobotsRules
    from scrapy_frontier.policy.politeness import PolitenessRules

_TAKEN_BACK: Final = (
    "SELECT DISTINCT o.origin_id, o.origin FROM attempt AS a JOIN reason AS r ON r.reason_id = a.outcome_id"
    " JOIN current AS c ON c.identity_id = a.identity_id JOIN origin AS o ON o.origin_id = c.origin_id"
    " WHERE c.run_id = ? AND r.code IN (?, ?)"
)

CutOff = Callable[[rows.Cursor, int, int], list[OriginTiming]]
"""(cursor, run, now in ms) to the times before which origins with a request cut off are not asked again."""


def cut_off(rules: PolitenessRules, robots: RobotsRules | None) -> CutOff:
    """The times of the origins of a run, by the intervals that settings and robots.txt ask for."""

    def timings(cursor: rows.Cursor, run_id: int, now_ms: int) -> list[OriginTiming]:
        cursor.execute(
            "SELECT DISTINCT o.origin_id, o.origin FROM current AS c JOIN origin AS o"
            " ON o.origin_id = c.origin_id"
            f" WHERE c.run_id = ? AND c.state = {State.FETCHING:d}"
            # What was being answered from evidence was not on the wire.
            " AND NOT EXISTS (SELECT 1 FROM transition AS t WHERE t.seq = c.last_seq AND t.evidence IS NOT NULL)",
            (run_id,),
        )
        found = dict(cursor.fetchall())
        # A transfer whose lease was taken back may have been on the wire until the process died, however long after.
        cursor.execute(_TAKEN_BACK, (run_id, EXPIRED, EXHAUSTED))
        found.update(cursor.fetchall())
        intervals = {
            origin_id: _interval_s(cursor, origin, rules, robots)
            for origin_id, origin in found.items()
        }
        return [
            OriginTiming(origin_id, now_ms + milliseconds(interval_s))
            for origin_id, interval_s in intervals.items()
            if interval_s > 0
        ]

    return timings


def _interval_s(
    cursor: rows.Cursor, queue: str, rules: PolitenessRules, robots: RobotsRules | None
) -> float:
    gate_key = gate_key_of(queue)
    host = host_of(gate_key) if "://" in gate_key else ""
    interval_s = rules.for_origin(gate_key, host).longest_interval_s
    if robots is None:
        return interval_s
    return max(interval_s, _floor_s(cursor, queue.partition(" (")[0], robots))


def _floor_s(cursor: rows.Cursor, origin: str, robots: RobotsRules) -> float:
    """What the Crawl-delay on record asks for; a record that cannot be read is fetched again before any page is."""
    row = rows.robots_record(cursor, origin)
    if row is None:
        return 0.0
    try:
        judge = Judge(reread(load(*row)))
    except (RecordUnreadable, TextMissing):
        return 0.0
    floor = judge.interval_floor(robots.agent.token, robots.delay_cap_s)
    return 0.0 if floor is None else floor.floor_s
