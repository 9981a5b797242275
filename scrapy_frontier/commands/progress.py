"""How far a long command is: a bar where somebody watches, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from tqdm import tqdm

from scrapy_frontier.commands.output import write
from scrapy_frontier.report.layout import number
from scrapy_frontier.store.progress import Progress

INTERVAL_S: Final = 10.0
"""Between two lines where nobody watches; a command that is done before says nothing."""


class _Bar(tqdm):  # type: ignore[misc]
    monitor_interval = 0  # no thread that watches the bar


@contextmanager
def shown(stream: TextIO | None = None) -> Iterator[Progress]:
    """Show progress on standard error, or another stream, until the end of the block."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield lines(stream)
        return
    bars = _Bars(stream)
    try:
        yield bars
    finally:
        bars("", 0, 0)


class _Bars:
    """One bar after the other, each gone when its step is done."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._step = ""
        self._bar: _Bar | None = None

    def __call__(self, step: str, done: int, total: int) -> None:
        if step != self._step:
            self._end()
            self._step = step
            if step:
                self._bar = _Bar(
                    desc=step,
                    total=total or None,
                    file=self._stream,
                    leave=False,
                    unit_scale=True,
                    unit="",
                    dynamic_ncols=True,
                )
        if self._bar is not None:
            self._bar.total = total or None
            self._bar.update(done - self._bar.n)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def lines(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress as plain lines, `INTERVAL_S` apart."""
    last_at = clock()

    def tell(step: str, done: int, total: int) -> None:
        nonlocal last_at
        now = clock()
        if not step or now - last_at < INTERVAL_S:
            return
        last_at = now
        counts = f": {number(done)} of {number(total)}, {100 * done // total} %" if total else ""
        write(stream, f"{step}{counts}\n")

    return tell
