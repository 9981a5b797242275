"""A frame of the live view as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report.health import cause_words
from scrapy_frontier.report.instants import clock, iso
from scrapy_frontier.report.layout import (
    counted,
    duration,
    labelled,
    number,
    printable,
    section,
    some,
)
from scrapy_frontier.report.situation import BEHIND_S, gates, waiting

if TYPE_CHECKING:
    from scrapy_frontier.report.account import OriginHealth
    from scrapy_frontier.report.live import Frame, Standings
    from scrapy_frontier.report.situation import Situation

MARGIN: Final = 11


def render_frame(frame: Frame) -> list[str]:
    """The lines of a frame."""
    lines = [
        f"Run {frame.run} ({printable(frame.name)}) of spider {printable(frame.spider)}",
        f"{_state(frame)} Read at {clock(iso(frame.read_ms))}.",
        "",
    ]
    if frame.told is not None and frame.is_live is not False:
        lines += _situation(frame.told, frame)
    if frame.standings is not None:
        lines += _standings(frame.standings)
    return lines + _troubled(frame)


def _state(frame: Frame) -> str:
    if frame.state != "running":
        why = f" ({frame.stop_reason})" if frame.stop_reason else ""
        return f"{frame.state.capitalize()}{why}, after {counted(frame.sessions, 'session')}."
    if frame.is_live is False:
        return "Interrupted: no process works on it; a resumed run goes on."
    for_s = max(0.0, (frame.read_ms - frame.started_ms) / 1000)
    return f"Running for {duration(for_s)}, session {frame.sessions}."


def _situation(told: Situation, frame: Frame) -> Iterator[str]:
    failures = f", {counted(told.failed, 'failure')}" if told.failed else ""
    age_s = max(0.0, (frame.read_ms - told.at_ms) / 1000)
    rows = {
        "pace": f"{told.rate:.1f} responses/s, {number(told.in_flight)} in flight,"
        f" {counted(told.answered, 'response')}{failures} in this session, as told {duration(age_s)} ago",
        "waiting": ", ".join(waiting(told)) + _of_closed(told),
        "origins": ", ".join(gates(told)) or "none with work",
        "limits": ", ".join(_limits(told, frame.read_ms)),
        "store": f"{told.lag_s:.1f} s behind" if told.lag_s >= BEHIND_S else "",
    }
    for name, words in rows.items():
        if words:
            yield from labelled(name, [words], MARGIN)
    yield ""


def _of_closed(told: Situation) -> str:
    return f"; {number(told.closed)} of closed origins" if told.closed else ""


def _limits(told: Situation, now_ms: int) -> Iterator[str]:
    left_s = told.left_s(now_ms)
    if left_s is not None:
        yield f"{duration(left_s)} left"
    yield from (spent.amounts() for spent in told.budgets)


def _standings(standings: Standings) -> list[str]:
    total = sum(standings.states.values())
    lines = labelled(
        "URLs", [f"{number(total)} found, at {clock(iso(standings.counted_ms))}"], MARGIN
    )
    lines += labelled("", _counts(standings.states), MARGIN)
    lines += labelled("ended", _counts(standings.dispositions), MARGIN)
    return lines + labelled("held by", _counts(standings.deferred), MARGIN)


def _counts(counts: Mapping[str, int]) -> list[str]:
    """All in one line, the largest first; no line where there are none."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [", ".join(f"{number(count)} {name}" for name, count in order)] if order else []


def _troubled(frame: Frame) -> list[str]:
    rows = [
        (printable(gate), _pace(health), cause_words(health) if health.cause else "")
        for gate, health in frame.troubled.items()
    ]
    lines = some(("origin", "held to", "because"), rows, len(rows))
    more = frame.troubled_total - len(rows)
    if more > 0:
        lines.append(f"  ... and {number(more)} more")
    return section(f"Asked for less ({number(frame.troubled_total)})", lines)


def _pace(health: OriginHealth) -> str:
    if health.is_closed:
        return "closed"
    return f"{counted(health.concurrency, 'request')}, {health.interval_s:g} s apart"
