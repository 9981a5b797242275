"""One line at the bottom of a terminal that changes in place, while a log goes on above it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, TextIO

from tqdm import tqdm
from tqdm.utils import disp_len, disp_trim

SEPARATOR: Final = " | "


class _Bar(tqdm):  # type: ignore[misc]
    monitor_interval = 0  # no thread that watches the bar


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody watches who sees a line change in place."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return False


class LiveLine:
    """The line. What else is written to the terminal meanwhile stands above it.

    Several may be shown at once, one for each crawl of a process.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream.stream if isinstance(stream, Above) else stream
        self._bar = _Bar(bar_format="{desc}", file=self._stream, leave=False)
        _terminal.begin(self._stream)

    def show(self, parts: Sequence[str]) -> None:
        """Show as many of the parts as there is room for, the first ones first. Raises `OSError` where the terminal
        has gone.
        """
        encoding = self._stream.encoding or "utf-8"
        line = fit(parts, _columns(self._stream)).encode(encoding, "replace").decode(encoding)
        self._bar.set_description_str(line)

    def close(self) -> None:
        """Take the line away, and leave the terminal as it was."""
        try:
            self._bar.close()
        except (OSError, ValueError):
            self._bar.disable = True
        _terminal.end()


def fit(parts: Sequence[str], columns: int) -> str:
    """The parts in one line that is shorter than the terminal is wide."""
    line = parts[0]
    for part in parts[1:]:
        longer = f"{line}{SEPARATOR}{part}"
        if disp_len(longer) >= columns:
            break
        line = longer
    return str(disp_trim(line, columns - 1))


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class Above:
    """A stream to the terminal whose whole lines are written above the live line."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._part = ""

    def write(self, text: str) -> int:
        """Write the whole lines, and keep the rest until it is whole, or until `flush`."""
        head, newline, self._part = (self._part + text).rpartition("\n")
        if newline:
            with _Bar.external_write_mode(file=_terminal.stream):
                self.stream.write(head + newline)
                self.stream.flush()
        return len(text)

    def flush(self) -> None:
        """Write the rest too: the prompt of a debugger, say."""
        part, self._part = self._part, ""
        if part:
            self.stream.write(f"\r{part}")
        self.stream.flush()

    @property
    def buffer(self) -> _Bytes:
        """For those who write bytes, as a feed to standard output does."""
        return _Bytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Bytes:
    """The binary side of a stream above the live line."""

    def __init__(self, above: Above) -> None:
        self._above = above

    def write(self, data: bytes) -> int:
        self._above.write(data.decode(self._above.stream.encoding or "utf-8", "backslashreplace"))
        return len(data)

    def flush(self) -> None:
        self._above.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._above.stream.buffer, name)


class _Terminal:
    """Stands before all that writes to the terminal while a live line is shown."""

    def __init__(self) -> None:
        self._lines = 0
        self.stream: TextIO | None = None
        """Where the live lines are."""
        self._handlers: list[tuple[Any, Above]] = []

    def begin(self, stream: TextIO) -> None:
        """A live line appears on a stream."""
        self._lines += 1
        if self._lines > 1:
            return
        self.stream = stream
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and is_terminal(handler.stream):
                above = Above(handler.stream)
                handler.setStream(above)
                self._handlers.append((handler, above))
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if is_terminal(stream):
                setattr(sys, name, Above(stream))

    def end(self) -> None:
        """A live line has gone."""
        self._lines -= 1
        if self._lines:
            return
        for handler, above in self._handlers:
            if handler.stream is above:
                handler.setStream(above.stream)
        self._handlers.clear()
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, Above):
                stream.flush()
                setattr(sys, name, stream.stream)


_terminal: Final = _Terminal()
