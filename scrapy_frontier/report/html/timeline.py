"""Throughput and latency of a run over its time."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.report.html.facts import Slice, Timeline
from scrapy_frontier.report.names import streamed

if TYPE_CHECKING:
    from sqlalchemy import Connection

SLICES_WANTED: Final = 60

_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_WIDTHS: Final = (
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 30)),
)
"""Widths of a slice that read well."""

_OF_RUN: Final = (
    " FROM attempt AS a JOIN session AS s ON s.session_id = a.session_id WHERE s.run_id = :run"
)
_SPAN: Final = f"SELECT min(a.dispatched_ms), max(a.dispatched_ms){_OF_RUN}"
_ATTEMPTS: Final = f"SELECT a.dispatched_ms, a.finished_ms, a.status{_OF_RUN}"


@dataclass(slots=True)
class _Slice:
    by_class: Counter[str] = field(default_factory=Counter)
    took_ms: array[int] = field(default_factory=lambda: array("q"))


def timeline(connection: Connection, run_id: int) -> Timeline:
    """All attempts of the run, in at most about `SLICES_WANTED` slices, those without any included."""
    first, last = connection.execute(text(_SPAN), {"run": run_id}).one()
    if first is None:
        return Timeline(_WIDTHS[0], ())
    width = slice_width(last - first)
    start = first - first % width
    slices = [_Slice() for _ in range((last - start) // width + 1)]
    for dispatched, finished, status in connection.execute(streamed(_ATTEMPTS), {"run": run_id}):
        one = slices[(dispatched - start) // width]
        one.by_class[f"{status // 100}xx" if status else "none"] += 1
        if finished is not None:
            one.took_ms.append(max(finished - dispatched, 0))
    return Timeline(
        width, tuple(_facts(start + place * width, one) for place, one in enumerate(slices))
    )


def slice_width(span_ms: int) -> int:
    """The narrowest width that reads well and makes no more slices than wanted."""
    fitting = (width for width in _WIDTHS if span_ms // width < SLICES_WANTED)
    return next(fitting, (span_ms // SLICES_WANTED // _DAY + 1) * _DAY)


def _facts(start_ms: int, one: _Slice) -> Slice:
    took = sorted(one.took_ms)
    return Slice(start_ms, dict(one.by_class), percentile_s(took, 50), percentile_s(took, 95))


def percentile_s(took_ms: list[int], percent: int) -> float | None:
    """The smallest latency that `percent` of the attempts do not exceed, in seconds."""
    if not took_ms:
        return None
    return took_ms[max(-(-len(took_ms) * percent // 100) - 1, 0)] / 1000
