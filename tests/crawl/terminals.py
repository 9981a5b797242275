"""Programs at a terminal of their own, and what that shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE_S = 30.0


class Screen:
    """A terminal as far as a live line needs one: carriage return, line feed, and a width at which lines wrap."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[str] = [""]
        self.column = 0
        self.shown: list[str] = []
        """What stood on the last row each time it was left by a carriage return."""

    def feed(self, text: str) -> None:
        """Take in what a program writes."""
        for char in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text):
            if char == "\r":
                self.shown.append(self.rows[-1].rstrip())
                self.column = 0
            elif char == "\n":
                self._next_row()
            else:
                if self.column == self.columns:
                    self._next_row()
                row = self.rows[-1].ljust(self.column)
                self.rows[-1] = row[: self.column] + char + row[self.column + 1 :]
                self.column += 1

    def _next_row(self) -> None:
        self.rows.append("")
        self.column = 0

    @property
    def text(self) -> list[str]:
        """All rows, without what only blanks out."""
        return [row.rstrip() for row in self.rows]


class AtTerminal:
    """A program whose standard streams are a terminal."""

    def __init__(self, command: Sequence[str], folder: Path, columns: int = 120) -> None:
        self._parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {
            **os.environ,
            "TERM": "xterm",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=child,
            stdout=child,
            stderr=child,
            env=environment,
            start_new_session=True,
        )
        os.close(child)
        self.screen = Screen(columns)
        self.written = ""

    def read_until(self, pattern: str | None = None) -> bool:
        """Read until the pattern has been written, or until the program ends; whether the pattern was found."""
        deadline = time.monotonic() + PATIENCE_S
        while pattern is None or not re.search(pattern, self.written):
            assert time.monotonic() < deadline, self.written[-4000:]
            if not select.select([self._parent], [], [], 0.1)[0]:
                if self.process.poll() is not None:
                    return False
                continue
            try:
                data = os.read(self._parent, 65_536).decode("utf-8", "replace")
            except OSError:  # the other side has gone
                self.process.wait(PATIENCE_S)
                return False
            self.written += data
            self.screen.feed(data)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """The terminal goes away."""
        os.close(self._parent)
        self._parent = -1

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._parent >= 0:
            os.close(self._parent)
