"""Processes forked from one that has imported everything: a crawl starts in milliseconds, and dies as any other.

The process that forks holds no connection, no thread and no event loop, for a fork takes none of them along in order.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIRST_OTHER_FILE = 3
LAST_OTHER_FILE = 256


class Child:
    """A process of ours: `status` is its exit status once it has ended, negative for the signal that ended it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.ended_at = 0.0
        """The end, by the system's monotonic clock."""

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._end(status)
        return self.status

    def wait(self, patience_s: float) -> bool:
        """Wait for its end; False where it did not come in time."""
        deadline = time.monotonic() + patience_s
        while self.poll() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._end(os.waitpid(self.pid, 0)[1])

    def _end(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)
        self.ended_at = time.monotonic()


def fork(work: Callable[[], Any], log: Path, *, stdin: int | None = None) -> Child:
    """Run `work` in a process of its own, its output in `log`. It never returns here."""
    pid = os.fork()
    if pid:
        return Child(pid)
    status = 1
    try:
        _take_over(log, stdin)
        status = _run(work)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def _take_over(log: Path, stdin: int | None) -> None:
    """Standard streams of its own, and nothing else that the parent has open."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    source = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
    os.dup2(source, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(FIRST_OTHER_FILE, LAST_OTHER_FILE)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _run(work: Callable[[], Any]) -> int:
    try:
        code = work()
    except SystemExit as error:
        code = error.code
    return code if isinstance(code, int) else 0 if code is None else 1


def ask(question: Callable[[], Any], folder: Path, patience_s: float = 120.0) -> Any:
    """The answer of a function that runs in a process of its own, as JSON carries it.

    So the store is never opened in the process that forks. Raises RuntimeError with what it wrote where it failed.
    """
    reader, writer = os.pipe()
    log = folder / "questions.log"
    keep = os.dup2(writer, LAST_OTHER_FILE + 1)
    os.close(writer)

    def work() -> None:
        with os.fdopen(keep, "w") as answer:
            json.dump(question(), answer)

    child = fork(work, log)
    os.close(keep)
    received = _read(reader, time.monotonic() + patience_s)
    os.close(reader)
    if not child.wait(5) or child.status != 0:
        child.kill()
        raise RuntimeError(f"no answer: {log.read_text().strip()[-400:]}")
    return json.loads(received)


def _read(source: int, deadline: float) -> bytes:
    parts = []
    while time.monotonic() < deadline:
        if select.select([source], [], [], 1.0)[0]:
            part = os.read(source, 1 << 16)
            if not part:
                break
            parts.append(part)
    return b"".join(parts)
