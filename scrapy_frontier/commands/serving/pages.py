"""What is served, read from the store when somebody asks, and kept for a while.

However many read, and however often they reload, one reading follows the other with a rest between them, so that the
log of the crawl can be emptied in between; and none lasts longer than `LIMIT_S`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.errors import FrontierError
from scrapy_frontier.report import coverage
from scrapy_frontier.report.html import read_facts, render_html
from scrapy_frontier.report.layout import duration
from scrapy_frontier.report.live import View
from scrapy_frontier.report.redacted import redacted
from scrapy_frontier.report.render_live import render_frame
from scrapy_frontier.report.situation import parts
from scrapy_frontier.store.deadline import Deadline, ReadTooLong
from scrapy_frontier.store.redaction import redaction_in

if TYPE_CHECKING:
    from scrapy_frontier.policy.redaction import RedactionRule
    from scrapy_frontier.report.live import Frame
    from scrapy_frontier.store.opening import Store

FRESH_S: Final = 5.0
"""For so long a report is given again as it is."""

REST: Final = 10
"""After a reading none is begun before so many times what it took have passed."""

LIMIT_S: Final = 30.0
"""A reading that takes longer is ended."""

FRAME_S: Final = 1.0

T = TypeVar("T")


class Kept(Generic[T]):
    """Something that is made anew when somebody asks and it is old; an error is kept too. From any thread."""

    def __init__(
        self,
        make: Callable[[], T],
        fresh_s: float,
        rest: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._make = make
        self._fresh_s = fresh_s
        self._rest = rest
        self._lock = threading.Lock()
        self._value: T | None = None
        self._error: FrontierError | None = None
        self._until = float("-inf")

    def get(self) -> T:
        """The thing. Raises the `FrontierError` for which there is none."""
        with self._lock:
            if self._clock() >= self._until:
                self._renew()
            if self._error is not None:
                raise self._error
            assert self._value is not None
            return self._value

    def _renew(self) -> None:
        began = self._clock()
        self._error = None
        try:
            self._value = self._make()
        except FrontierError as error:
            self._error = error
        ended = self._clock()
        self._until = ended + max(self._fresh_s, self._rest * (ended - began))


@dataclass(frozen=True, slots=True)
class Report:
    """One reading of a run, as a page and as data."""

    page: str
    data: str


class Pages:
    """The pages of one store; `wanted` names the run, None is whatever run is the latest.

    `rule`: what is hidden in URLs; None for what the store's latest crawl hid.
    """

    def __init__(
        self,
        store: Store,
        wanted: str | None,
        limit_s: float = LIMIT_S,
        rule: RedactionRule | None = None,
    ) -> None:
        self._store = store
        self._rule = rule
        self._limit_s = limit_s
        self._view = View(store, wanted, partial(is_live, store))
        self._frame: Kept[Frame] = Kept(self._view.frame, FRAME_S, 1)
        self._report = Kept(self._read, FRESH_S, REST)
        self._deadline: Deadline | None = None
        self._is_closed = False

    def page(self) -> str:
        """The report as HTML."""
        return self._report.get().page

    def data(self) -> str:
        """The report as JSON."""
        return self._report.get().data

    def frame_text(self) -> str:
        """What `frontier top` shows."""
        return "\n".join([*render_frame(self._frame.get()), ""])

    def frame_data(self) -> str:
        """The same as JSON."""
        return json.dumps(self._frame.get().to_json(), indent=2, ensure_ascii=False) + "\n"

    def close(self) -> None:
        """End a reading that is under way, and allow no other."""
        self._is_closed = True
        if self._deadline is not None:
            self._deadline.end()

    def _read(self) -> Report:
        frame = self._frame.get()
        began = time.monotonic()
        self._deadline = deadline = Deadline(self._limit_s)
        if self._is_closed:
            deadline.end()
        try:
            with self._store.reader(deadline) as connection:
                redaction = redaction_in(connection, self._rule)
                account = redacted(
                    coverage(connection, frame.run, is_live=frame.is_live), redaction
                )
                facts = redacted(read_facts(connection, frame.run), redaction)
        except ReadTooLong as error:
            raise ReadTooLong(
                f"{error}. /live has what can be told at once; `scrapy frontier report` reads the whole, best from a"
                " backup or when the run has ended"
            ) from error
        took_s = time.monotonic() - began
        page = render_html(account, facts, notice=_notice(frame, took_s))
        return Report(page, json.dumps(account.to_json(), indent=2, ensure_ascii=False) + "\n")


def _notice(frame: Frame, took_s: float) -> str:
    """What stands above the report: that it is of a moment, and how the crawl stood then."""
    rest_s = max(FRESH_S, REST * took_s)
    now = ""
    if frame.is_live is not False and frame.told is not None:
        now = f" Now: {', '.join(parts(frame.told, frame.read_ms))}."
    return f"Live: read in {duration(took_s)}; a reload after {duration(rest_s)} reads again.{now}"
