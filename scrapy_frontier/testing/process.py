"""A scripted server in a process of its own: the witness of tests that kill the crawler."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from scrapy_frontier.testing.log import RequestLog


class ServerProcess:
    """Runs `python -m scrapy_frontier.testing.server` and reads its log file.

        with ServerProcess(log_path, "script.json") as server:
            crawl(server.urls["docs"] + "/")
            server.read_log().hits_by_url()

    The process ends with the block, and also when the process that started it dies.
    """

    def __init__(self, log_path: Path, *arguments: str | Path) -> None:
        self.log_path = log_path
        self.urls: dict[str, str] = {}
        self._arguments: Sequence[str] = [str(argument) for argument in arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ServerProcess:
        command = [sys.executable, "-m", "scrapy_frontier.testing.server", *self._arguments]
        self._process = subprocess.Popen(
            [*command, "--log", str(self.log_path), "--stop-on-eof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            self.stop()
            raise RuntimeError(
                f"the server did not start: see above; its arguments were {self._arguments}"
            )
        self.urls = json.loads(ready)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process and wait until its log is complete. Safe to call twice."""
        if self._process:
            self._process.communicate()
            self._process = None

    def read_log(self) -> RequestLog:
        """The requests that have departed so far; complete after `stop()`."""
        return RequestLog.load(self.log_path)

    def wait_for(self, count: int, *, timeout_s: float = 10.0) -> RequestLog:
        """Block until `count` requests have departed. Raises TimeoutError if they do not come."""
        deadline = time.monotonic() + timeout_s
        while len(log := self.read_log()) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(log)} of {count} requests came within {timeout_s} s")
            time.sleep(0.02)
        return log
