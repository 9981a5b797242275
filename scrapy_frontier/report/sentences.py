"""Why a URL waits, or why it does not, in two sentences: its own state, and its origin's gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.budgets import PENDING, SETTING_OF
from scrapy_frontier.policy.robots import ROBOTS_PENDING
from scrapy_frontier.report.families import TRAP
from scrapy_frontier.report.health import closed_sentence, pace_words
from scrapy_frontier.report.instants import clock, iso
from scrapy_frontier.report.layout import printable
from scrapy_frontier.report.robots.records import robots_origin
from scrapy_frontier.report.robots.words import exclusion, robots_gate
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from scrapy_frontier.report.explain import Gate, RunStanding
    from scrapy_frontier.report.history import Step

_ENDS: Final = {
    Disposition.SUCCEEDED.label: "It was fetched and its page processed",
    Disposition.REDIRECTED.label: "It was fetched and sent the client on to another URL",
    Disposition.NOT_MODIFIED.label: "It was asked for and has not changed",
    Disposition.GONE.label: "It was asked for and is gone",
    Disposition.HTTP_ERROR.label: "It was asked for and answered with an error",
    Disposition.FAILED.label: "It failed for good",
    Disposition.CALLBACK_ERROR.label: "It was fetched, but its callback raised an error",
    Disposition.CANCELLED.label: "It was cancelled",
}


def state_sentence(
    last: Step, *, is_over: bool, is_live: bool, attempts: int, ahead: int, due_at: str | None
) -> str:
    """Say where an identity stands, from its last transition.

    `is_live`: its run may be working on it; `is_over`: its run is finished. `ahead`: how many stand
    before it in its origin's queue.
    """
    rule = f" ({last.reason})" if last.reason else ""
    match last.target:
        case State.TERMINAL.label:
            end = _ENDS.get(last.disposition or "", "It came to its end")
            return f"{end}{rule}, at {clock(last.at)}, after {_counted(attempts, 'attempt')}."
        case State.SUPPRESSED.label:
            line = exclusion(last.reason, last.detail)
            why = f": {line}" if line else _inputs(last)
            return f"It is excluded by the rule {last.reason or 'that has no name'}{why}."
        case State.DEFERRED.label:
            until = f"until {clock(due_at)}" if due_at else _release(last)
            why = _held_for(last)
            return f"It is held back by the rule {last.reason or 'that has no name'}{why} {until}."
        case State.RETRYABLE.label:
            return f"Its last attempt failed{rule}; it is tried again {_when(due_at)}."
        case State.FETCHING.label if is_live:
            return f"An attempt is under way since {clock(last.at)}."
        case State.FETCHING.label:
            return f"An attempt was under way when the process ended{_fate(is_over)}."
        case State.FETCHED.label if is_live:
            return (
                f"Its response is in{rule} since {clock(last.at)}, and its page is being processed."
            )
        case State.FETCHED.label:
            return (
                f"Its response came{rule}, but the process ended within its page{_fate(is_over)}."
            )
        case State.SCHEDULED.label:
            return (
                f"It waits in its origin's queue since {clock(last.at)}, behind {ahead:,} others."
            )
        case state:
            return f"It is {state} since {clock(last.at)} and does not stand in a queue yet."


def gate_sentence(gate: Gate, run: RunStanding, now_ms: int) -> str:
    """Say whether the origin's gate lets a request through, as far as the store knows."""
    waits = gate.next_eligible_ms > now_ms
    seconds = (gate.next_eligible_ms - now_ms) / 1000
    until = f"not before {clock(iso(gate.next_eligible_ms))} (in {seconds:,.1f} s)"
    if run.state == "finished":
        return f"The run is finished: no request goes to {gate.origin}."
    if gate.is_waiting and gate.obeys_robots:
        waits_for_robots = robots_gate(robots_origin(gate.origin), gate.robots, run, now_ms)
        if waits_for_robots is not None:
            return waits_for_robots
    closed = closed_sentence(gate.origin, gate.health, is_over=False) if gate.is_waiting else None
    if closed is not None:
        return closed
    pace = pace_words(gate.health)
    if run.state == "stopped" or run.is_live is False:
        how = "stopped" if run.state == "stopped" else "interrupted"
        then = until if waits else "at once"
        return f"The run is {how}: resumed, it may send to {gate.origin} {then}.{pace}"
    busy = f"{_counted(gate.in_flight, 'request')} in flight" if gate.in_flight else ""
    if waits:
        return f"The gate of {gate.origin} is shut: {until}{', ' + busy if busy else ''}.{pace}"
    if busy:
        return f"The gate of {gate.origin} has {busy}, and its interval is over.{pace}"
    return f"The gate of {gate.origin} is open: nothing in flight, and its interval is over.{pace}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _when(due_at: str | None) -> str:
    return f"not before {clock(due_at)}" if due_at else "as soon as its turn comes"


def _held_for(last: Step) -> str:
    """The family that a trap holds, or the part of the run whose budget is spent."""
    detail = last.detail if isinstance(last.detail, dict) else {}
    if _is_trap(last) and detail.get("family"):
        return f", as are others of its family {printable(str(detail['family']))},"
    if last.reason in SETTING_OF and "limit" in detail:
        part = printable(str(detail.get("pattern") or "the run"))
        return f" (limit {detail['limit']:,} for {part})"
    return ""


def _release(last: Step) -> str:
    """What lets a held URL go."""
    if last.reason == ROBOTS_PENDING:
        return "until its origin's robots.txt is there"
    if last.reason == PENDING:
        return "until there is room in the queue"
    setting = SETTING_OF.get(last.reason or "")
    if setting is not None:
        return f"until {setting} is raised, or `scrapy frontier release` lets it go"
    if _is_trap(last):
        return "until `scrapy frontier release` lets it, its family or its origin go"
    return "until it is released"


def _is_trap(last: Step) -> bool:
    return (last.reason or "").startswith(TRAP)


def _fate(is_over: bool) -> str:
    return "" if is_over else "; a resume takes it into the queue again"


def _inputs(last: Step) -> str:
    """The inputs of the rule that are words, in brackets."""
    if not isinstance(last.detail, dict):
        return ""
    words = [f"{name} {value}" for name, value in last.detail.items() if isinstance(value, str)]
    return f" ({', '.join(words)})" if words else ""
