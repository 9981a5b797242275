"""How the open run stands now. Nothing here asks the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.policy import budgets
from scrapy_frontier.report.situation import Situation, Spent

if TYPE_CHECKING:
    from scrapy_frontier.frontier.life import Open


def situation_of(opened: Open, rate: float) -> Situation:
    """The situation; takes time in proportion to the origins in memory. `rate`: responses per second."""
    dispatch, now = opened.dispatch, opened.frontier.clock.now()
    counts = dispatch.counts()
    left_s = opened.spending.left_s
    return Situation(
        at_ms=milliseconds(now),
        answered=opened.answered,
        failed=opened.failed,
        rate=round(rate, 2),
        in_flight=opened.wire.in_flight,
        scheduled=dispatch.scheduled,
        timed=dispatch.timed,
        held_back=dispatch.backpressure.held_back,
        await_robots=dispatch.robots.deferred_count,
        closed=dispatch.closed.scheduled + dispatch.closed.timed,
        gates={state.label: count for state, count in counts.gates_by_state.items()},
        cold=counts.cold_waiting,
        budgets=tuple(_budgets(opened)),
        ends_ms=None if left_s is None else round((now + left_s) * 10) * 100,
        lag_s=round(opened.writer.lag_s, 1),
    )


def _budgets(opened: Open) -> Iterator[Spent]:
    limit = opened.frontier.settings.max_urls
    if limit is not None:
        used = opened.writer.spent(budgets.URLS, "")
        if used is not None:
            yield Spent(budgets.URLS, used, limit)
    limit = opened.spending.allowance.total_bytes
    if limit is not None:
        yield Spent(budgets.BYTES, opened.spending.total_bytes, limit)
