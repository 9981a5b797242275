"""Warnings while a run is open: what is going wrong with its store, why, and the remedy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from scrapy_frontier.logs import get_logger
from scrapy_frontier.store.readers import readers_of
from scrapy_frontier.store.sqlite import PAGE_BYTES

if TYPE_CHECKING:
    from scrapy_frontier.frontier.life import Open

logger = get_logger(__name__)

QUIET_S: Final = 60.0
"""A warning of one kind is not given again before this time has passed."""

HELD_UP_S: Final = 60.0
"""How long checkpoints may be held up before it is worth a warning."""

SLOW_COMMIT_S: Final = 2.0
"""A transaction that takes longer holds up the crawl."""


ACTIONS: Final[Mapping[str, str]] = {
    "log_held_up": "store_log_held_up",
    "queue_old": "store_queue_old",
    "commits_slow": "store_commits_slow",
}
"""What the records of each kind of warning are known by."""


class Watch:
    """Looks at the writer from time to time; `look` is called by whoever writes the statistics."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._warned_at: dict[str, float] = {}
        self._commits = 0
        self._commit_s = 0.0

    def look(self, opened: Open) -> None:
        """Warn of what is wrong now, each kind at most once in `QUIET_S`."""
        now = self._clock()
        for kind, message in self._wrong(opened):
            if now - self._warned_at.get(kind, -QUIET_S) >= QUIET_S:
                self._warned_at[kind] = now
                logger.warning("%s", message, extra={"action": ACTIONS[kind]})

    def _wrong(self, opened: Open) -> Iterator[tuple[str, str]]:
        url, writer, vitals = opened.store.url, opened.writer, opened.writer.vitals
        if vitals.held_up_s >= HELD_UP_S:
            readers = ", ".join(map(str, readers_of(opened.store.path)))
            who = readers or "a reader that cannot be named on this system"
            yield (
                "log_held_up",
                f"The write-ahead log of {url} cannot be emptied and grows:"
                f" {vitals.log_frames_left * PAGE_BYTES / 1e6:.1f} MB wait since {vitals.held_up_s:.0f} s."
                f" It is being read by {who}; end that read. Nothing is lost",
            )
        lag_s, limit_s = writer.lag_s, opened.frontier.settings.max_lag_s
        if lag_s > limit_s:
            yield (
                "queue_old",
                f"The oldest message for {url} has waited {lag_s:.1f} s to be written, and no request is"
                f" handed out above {limit_s:g} s (FRONTIER_MAX_LAG): look for another process that"
                " holds the store, or a slow disk; a faster one, or fewer CONCURRENT_REQUESTS, help",
            )
        commits, commit_s = vitals.commits - self._commits, vitals.commit_s - self._commit_s
        self._commits, self._commit_s = vitals.commits, vitals.commit_s
        if commits and commit_s / commits > SLOW_COMMIT_S:
            yield (
                "commits_slow",
                f"A transaction of {url} takes {commit_s / commits:.1f} s: the disk is slow or busy;"
                " put the store on a local disk of its own",
            )
