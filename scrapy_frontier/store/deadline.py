"""A read that ends in time: one that goes on holds back the write-ahead log, and so the crawl that writes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from scrapy_frontier.errors import StoreError

AGAIN_S: Final = 0.05
"""A read that has begun its next statement meanwhile is told again."""


class ReadTooLong(StoreError):
    """A read was ended before it was done."""


class Deadline:
    """When one read is ended: after some seconds, or at once by `end`, from any thread."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._wake = threading.Event()
        self._has_passed = limit_s <= 0
        self._is_done = False

    def end(self) -> None:
        """Let the time be over now."""
        self._has_passed = True
        self._wake.set()

    @contextmanager
    def kept(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """End what is done in this block when the time is over: `interrupt` ends the statement that runs.

        Raises `ReadTooLong` then.
        """
        if self._has_passed:
            raise ReadTooLong("the read was ended before it had begun")
        thread = threading.Thread(target=self._watch, args=(interrupt,), daemon=True)
        thread.start()
        try:
            yield
        except Exception as exc:
            if self._has_passed:
                raise ReadTooLong(
                    f"the read took longer than {self.limit_s:g} s and was ended: while it lasts, the log of who"
                    " writes to the store cannot be emptied"
                ) from exc
            raise
        finally:
            self._is_done = True
            self._wake.set()
            thread.join()

    def _watch(self, interrupt: Callable[[], None]) -> None:
        if not self._wake.wait(self.limit_s):
            self._has_passed = True
        while not self._is_done:
            interrupt()
            time.sleep(AGAIN_S)
