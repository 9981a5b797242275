"""A clock that was set back between two sessions of a run.

What the ledger says of the future - when a retry is due, how long an origin must be left alone - is meant by the clock
of the session that wrote it. By one that was set back, an hour's step would be an hour's wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

if TYPE_CHECKING:
    from scrapy_frontier.clock import SystemClock
    from scrapy_frontier.frontier.runs import OpenRun
    from scrapy_frontier.store.opening import Store

from scrapy_frontier.logs import get_logger

logger = get_logger(__name__)

_SESSIONS: Final = "SELECT max(started_ms), max(ended_ms) FROM session WHERE run_id = :run"
_LAST: Final = "SELECT at_ms FROM transition ORDER BY seq DESC LIMIT 1"

_UNTOLD_S: Final = 1.0
"""Steps that keep a clock right are not worth a warning."""


def carry_on(clock: SystemClock, store: Store, run: OpenRun) -> None:
    """Have the clock of a resumed run tell no time before that of its ledger's last entry."""
    if not run.is_resumed:
        return
    with store.reader() as connection:
        known = [*connection.execute(text(_SESSIONS), {"run": run.run_id}).one()]
        known.append(connection.scalar(text(_LAST)))
    last_at = max(at_ms or 0 for at_ms in known) / 1000
    behind_s = last_at - clock.now()
    if behind_s <= 0:
        return
    clock.tell_none_before(last_at)
    if behind_s > _UNTOLD_S:
        logger.warning(
            "The clock of this machine is %.0f s behind the last entry of the ledger: it was set back, or was ahead"
            " then. The run goes on by the time of its ledger; set the clock right before the next one begins",
            behind_s,
            extra={"action": "clock_set_back"},
        )
