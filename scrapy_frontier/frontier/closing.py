"""The end of a run: what is queued is committed, how it ended is written down, and its report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from scrapy_frontier import failpoints, logs
from scrapy_frontier.errors import FrontierError
from scrapy_frontier.frontier import reports, runs
from scrapy_frontier.frontier.spending import BYTES_REASON, DEADLINE_REASON
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.budgets import URLS

if TYPE_CHECKING:
    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.frontier.life import Open

logger = get_logger(__name__)

STOP_REASONS: Final[Mapping[str, str]] = {
    "finished": "exhausted",
    "shutdown": "operator",
    "cancelled": "operator",
    "closespider_timeout": "deadline",
    DEADLINE_REASON: "deadline",
    BYTES_REASON: "budget:bytes",
    "closespider_itemcount": "budget:items",
    "closespider_pagecount": "budget:pages",
    "closespider_errorcount": "budget:errors",
    "closespider_pagecount_no_item": "budget:pages_without_item",
    "closespider_timeout_no_item": "budget:time_without_item",
    "memusage_exceeded": "budget:memory",
    "start_error": "error",
    "frontier_error": "error",
}
"""Scrapy's reasons for closing a spider as stop reasons of a run (design, section 9)."""


async def close_frontier(frontier: Frontier, opened: Open, reason: str) -> None:
    """Commit what is queued, write how the run ended, and its report; runs also after a failure of the frontier."""
    opened.is_closing = True
    opened.waker.cancel()
    opened.leases.stop()
    if opened.reparse is not None:
        opened.reparse.stop()
    if frontier.error is None:
        opened.intake.flush_loose()
    frontier.is_closed = True
    failpoints.reach("close.begun")
    if opened.evidence is not None:
        await opened.evidence.close()
    await opened.loop.run_in_executor(None, opened.writer.stop)
    failpoints.reach("close.drained")
    # What the last commits mean for the loop is still on its way to it.
    await asyncio.sleep(0)
    opened.spending.stop()
    stop = STOP_REASONS.get(reason, "operator")
    is_finished = stop == "exhausted" and not frontier.has_work_left
    if stop == "exhausted" and not is_finished:
        stop = "error"
    try:
        state = runs.STOPPED
        if is_finished and runs.is_held_by(opened.store, opened.run, URLS):
            stop = "budget:urls"
        elif is_finished and not opened.dispatch.has_unresolved:
            state = runs.FINISHED
        detail = {"scrapy": reason, **({"error": str(frontier.error)} if frontier.error else {})}
        with runs.transaction(opened.store, "closing the run") as connection:
            runs.close_run(connection, opened.run, state, stop, detail)
        failpoints.reach("close.run_committed")
    except FrontierError as error:
        frontier.error = frontier.error or error
        logger.critical(
            "The run could not be closed; what is committed stays, and the run can be resumed: %s",
            error,
            extra={"action": "close_failed"},
        )
    try:
        _report(opened)
        failpoints.reach("close.reported")
        if frontier.error is None:
            opened.store.checkpoint("TRUNCATE")
        opened.store.close()
    except FrontierError as error:
        logger.error("%s", error, extra={"action": "close_failed"})
    finally:
        failpoints.reach("close.closed")
        opened.lock.release()
        logs.end(opened.redaction)


def _report(opened: Open) -> None:
    """Made also where the run could not be closed: a report that fails costs a line in the log, and can be made again
    from the store.
    """
    try:
        reports.write(opened.store, opened.run, opened.frontier.settings, opened.redaction)
    except Exception as error:
        logger.error(
            "The report could not be made: %r; `scrapy frontier report` makes it from the store",
            error,
            exc_info=error,
            extra={"action": "report_failed"},
        )
