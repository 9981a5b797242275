"""How a run ended, or that it goes on, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.report.layout import counted
from scrapy_frontier.report.robots.records import robots_origin
from scrapy_frontier.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_frontier.report.account import Coverage, OriginAccount

_STOPS: Final = {
    "exhausted": "Finished: nothing was left to do.",
    "operator": "Stopped by the operator; it can be resumed.",
    "deadline": "Stopped at its deadline; it can be resumed.",
    "error": "Stopped by an error; it can be resumed.",
    "interrupted": "Interrupted: its process ended without closing it. It can be resumed.",
}

_WAYS_SHOWN: Final = 3


def stop_sentence(account: Coverage) -> str:
    """How the run ended, or that it goes on."""
    reason = account.stop.reason
    if reason == "exhausted":
        return _exhausted(account)
    if reason is not None:
        if reason.startswith("budget:"):
            return _by_budget(reason.partition(":")[2])
        return _STOPS.get(reason, f"Ended: {reason}.")
    if account.run.state != "running":
        return f"Ended, state {account.run.state}, without a reason on record."
    if account.run.is_live:
        return "Running."
    return "Running, or interrupted: from here it cannot be told whether its process lives."


def _by_budget(rule: str) -> str:
    if rule == "urls":
        return (
            "Stopped by the budget urls: all that it accepted is done. With a higher"
            " FRONTIER_MAX_URLS it goes on."
        )
    return f"Stopped by the budget {rule}; it can be resumed."


def _exhausted(account: Coverage) -> str:
    """All that could be done is done, which need not be all."""
    held_back = sum(account.identities.deferred.values())
    left = sum(account.identities.unresolved.values())
    if account.run.state == "stopped" and left:
        return f"Nothing more could be done now: {_left_over(account)} A resumed run tries again."
    if held_back:
        held = counted(held_back, "URL is", "URLs are")
        return f"Finished: all that was admitted is done, and {held} held back."
    return _STOPS["exhausted"]


def _left_over(account: Coverage) -> str:
    """A run ends so, with URLs in its queues, only where their origins were closed: their robots.txt could not be had,
    or they did nothing but fail.
    """
    failing = [one for one in account.origins if one.health and one.health.is_closed and _left(one)]
    others = [one for one in account.origins if _left(one) and one not in failing]
    parts = []
    if others:
        whose = "its" if len({robots_origin(one.origin) for one in others}) == 1 else "their"
        parts.append(f"{_stay(others)} for {whose} robots.txt could not be had{_why(account)}")
    if failing:
        whose = "which" if len(failing) == 1 else "which each"
        causes = sorted({one.health.cause or "" for one in failing if one.health})
        parts.append(f"{_stay(failing)} {whose} did nothing but fail ({', '.join(causes)})")
    return f"{'; '.join(parts)}."


def _left(origin: OriginAccount) -> int:
    """URLs of an origin that wait for their turn, or for a time."""
    waiting = (State.SCHEDULED.label, State.RETRYABLE.label)
    return sum(origin.identities.get(state, 0) for state in waiting)


def _stay(origins: Sequence[OriginAccount]) -> str:
    left = sum(map(_left, origins))
    names = {robots_origin(one.origin) for one in origins}
    where = min(names) if len(names) == 1 else counted(len(names), "origin")
    return f"{counted(left, 'URL')} of {where} {'stays' if left == 1 else 'stay'} scheduled,"


def _why(account: Coverage) -> str:
    ways = sorted({one.trouble or one.reason or "" for one in account.robots if one.waiting})
    more = f" and {len(ways) - _WAYS_SHOWN} more" if len(ways) > _WAYS_SHOWN else ""
    return f" ({', '.join(ways[:_WAYS_SHOWN])}{more})" if ways else ""
