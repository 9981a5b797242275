"""Robots.txt in the explanation of a URL: which line excludes it, and why it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.policy.robots import ROBOTS_DISALLOW, ROBOTS_OPERATOR, RobotsState
from scrapy_frontier.report.instants import clock, instant
from scrapy_frontier.report.layout import counted, duration, printable
from scrapy_frontier.report.robots.run_policy import RULES_SETTING

if TYPE_CHECKING:
    from scrapy_frontier.policy.robots import RobotsRecord
    from scrapy_frontier.report.explain import RunStanding

DIGEST_SHOWN: Final = 16
"""Digits of a digest that are enough to tell one copy from another."""


def exclusion(rule: str | None, inputs: Any) -> str | None:
    """Which line of which copy excludes a URL, None where the inputs of the rule do not tell."""
    protocol = inputs.get("protocol") if isinstance(inputs, dict) else None
    if not isinstance(protocol, dict):
        return None
    if rule == ROBOTS_OPERATOR:
        operator = inputs.get("operator")
        line = _line(operator if isinstance(operator, dict) else {}, RULES_SETTING)
        return f"{line} forbids it; {_said(protocol)} ({_copy(protocol)})"
    if rule != ROBOTS_DISALLOW:
        return None
    return f"{_line(protocol, 'robots.txt')} forbids it ({_copy(protocol)})"


def _line(data: dict[str, Any], text: str) -> str:
    """The line that decides; a parser of the project's own choice does not name it."""
    if data.get("line") is None:
        return f"{text} (with no line on record)"
    group = f", in the group for {data['group']}" if data.get("group") else ""
    return f'line {data["line"]} of {text} ("{printable(str(data.get("text", "")))}"{group})'


def _said(protocol: dict[str, Any]) -> str:
    """What robots.txt itself says of a URL that the operator forbids."""
    if protocol.get("rule") == ROBOTS_DISALLOW:
        return f"{_line(protocol, 'robots.txt')} does, too"
    if protocol.get("line") is not None:
        return f"{_line(protocol, 'robots.txt')} allows it"
    return f"robots.txt has no line for it ({protocol.get('rule')})"


def _copy(protocol: dict[str, Any]) -> str:
    """Which copy decided."""
    fetched = clock(instant(protocol.get("fetched_at")))
    if not protocol.get("digest"):
        return f"no text, known since {fetched}" if protocol.get("fetched_at") else "no text known"
    trouble = protocol.get("trouble")
    old = f", standing in for one that could not be had: {trouble}" if trouble else ""
    return f"the copy {protocol['digest'][:DIGEST_SHOWN]}, fetched {fetched}{old}"


def robots_gate(
    origin: str, record: RobotsRecord | None, run: RunStanding, now_ms: int
) -> str | None:
    """Why the URLs of an origin wait for its robots.txt, and when it is asked for again; None where
    that is not what they wait for.
    """
    now = now_ms / 1000
    if run.state == "running" and run.is_live is not False:
        if record is None:
            return f"The gate of {origin} is shut until its robots.txt is read, which is asked for first."
        return _live(origin, record, run, now)
    how = "stopped" if run.state == "stopped" else "interrupted"
    if record is not None and record.state is RobotsState.DISALLOW_ALL:
        return (
            f"The run is {how}: the robots.txt of {origin} could not be had ({trouble(record)})."
            f" Resumed, it asks again {asked_again(record, now)}; its URLs there wait until then."
        )
    if record is None or not record.is_in_force(now):
        return f"The run is {how}: resumed, it asks for the robots.txt of {origin} first."
    return None


def _live(origin: str, record: RobotsRecord, run: RunStanding, now: float) -> str | None:
    if record.state is RobotsState.DISALLOW_ALL:
        tried = record.tried_at or 0.0
        if record.is_closed and tried * 1000 >= run.opened_ms:
            return (
                f"The gate of {origin} is closed for this run: its robots.txt could not be had"
                f" ({trouble(record)}), and this run asks no more. A resumed run asks again"
                f" {asked_again(record, now)}."
            )
        return (
            f"The gate of {origin} is shut: its robots.txt cannot be had ({trouble(record)});"
            f" it is asked for again {asked_again(record, now)}."
        )
    if not record.is_in_force(now):
        expired = clock(instant(record.expires_at))
        return (
            f"The gate of {origin} is shut until its robots.txt, which expired {expired},"
            " is asked for again."
        )
    return None


def trouble(record: RobotsRecord) -> str:
    """Why a robots.txt cannot be had, how often it was tried, and since when."""
    since = record.unreachable_since
    return ", ".join(
        [
            record.trouble or record.reason,
            *([f"{counted(record.failures, 'try', 'tries')} in a row"] if record.failures else []),
            *([f"since {clock(instant(since))}"] if since else []),
        ]
    )


def asked_again(record: RobotsRecord, now: float) -> str:
    """When a robots.txt that cannot be had is asked for again."""
    left_s = record.next_try_at - now
    if left_s <= 0:
        return "at once"
    return f"not before {clock(instant(record.next_try_at))} (in {duration(left_s)})"
