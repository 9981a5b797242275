"""Shows how far a crawl is: a live line at a terminal, elsewhere a line in the log now and then."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_frontier.extensions.terminal import LiveLine, is_terminal
from scrapy_frontier.frontier import Frontier
from scrapy_frontier.frontier.situation import situation_of
from scrapy_frontier.logs import get_logger
from scrapy_frontier.report.situation import Pace, Situation, parts
from scrapy_frontier.store.messages import SituationTold

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    # typing.Self requires Python 3.11
    from typing_extensions import Self

    from scrapy_frontier.frontier.life import Open

logger = get_logger(__name__)

TICK_S: Final = 1.0
"""The live line changes once a second."""

TELL_S: Final = 2.0
"""Who watches by way of the store is told every other second, as long as anything changes."""

ALIVE_S: Final = 30.0
"""And so often where nothing does."""


class FrontierProgress:
    """Progress of one crawl, out of what its process keeps in memory: `FRONTIER_PROGRESS_INTERVAL`."""

    def __init__(self, crawler: Crawler, frontier: Frontier) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._interval_s = frontier.settings.progress_interval_s
        self._name = ""
        self._pace = Pace()
        self._loop: Any = None
        self._line: LiveLine | None = None
        self._told: Situation | None = None
        self._told_at = -ALIVE_S
        self._is_logged = False
        self._logged_at = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension of a crawl."""
        extension = cls(crawler, Frontier.of(crawler))
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """Begin to show progress."""
        self._name = spider.name
        is_watched = bool(self._interval_s) and is_terminal(sys.stderr)
        # A log that goes to a file is read by somebody else than the terminal.
        self._is_logged = bool(self._interval_s) and not (
            is_watched and not self._crawler.settings.get("LOG_FILE")
        )
        if is_watched:
            self._line = LiveLine(sys.stderr)
        self._logged_at = time.monotonic()
        self._loop = create_looping_call(self._tick)
        self._loop.start(TICK_S, now=False)

    def spider_closed(self, spider: Spider) -> None:
        """Leave the terminal as it was."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        self._drop_line()

    def _tick(self) -> None:
        frontier = self._frontier
        if not frontier.is_open or frontier.is_closed or frontier.error is not None:
            return
        opened, now = frontier.opened, time.monotonic()
        situation = situation_of(opened, self._pace.rate(now, opened.answered))
        self._tell(opened, situation)
        phrases = parts(situation, situation.at_ms)
        if self._is_logged and now - self._logged_at >= self._interval_s:
            self._logged_at = now
            logger.info("Progress: %s", ", ".join(phrases), extra={"action": "progress"})
        if self._line is not None:
            try:
                self._line.show([f"{self._name} {situation.rate:.1f}/s", *phrases[1:]])
            except (OSError, ValueError):  # the terminal has gone, or the stream is closed
                self._drop_line()

    def _tell(self, opened: Open, situation: Situation) -> None:
        """Write it into the store, in a transaction that is made anyway where there is work."""
        age_s = time.monotonic() - self._told_at
        if age_s < (ALIVE_S if situation.is_like(self._told) else TELL_S):
            return
        self._told, self._told_at = situation, time.monotonic()
        opened.writer.send(SituationTold(situation.at_ms, situation.to_text()))

    def _drop_line(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
