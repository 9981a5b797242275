"""Named interruption points: where a process is killed on purpose, to see what a crash at that moment leaves behind.

    FRONTIER_FAILPOINT=commit.after:3 scrapy crawl shop

kills the crawl (SIGKILL, no handler runs) when it comes to that point for the third time; several pairs may be given,
with commas between them. `FRONTIER_FAILPOINT_TRACE=FILE` appends to FILE the name of each point that is reached, once
for each process. Neither is meant for anything but tests; without both, a point is a call of an empty function.

A boundary of the code names itself by `failpoints.reach("commit.after")`, and here with what it lies between.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Final

from scrapy_frontier.errors import ConfigError

VARIABLE: Final = "FRONTIER_FAILPOINT"
"""Environment: which points kill the process, as `name:hit` with commas between; a name alone means its first hit."""

TRACE_VARIABLE: Final = "FRONTIER_FAILPOINT_TRACE"
"""Environment: a file that the names of the points reached are appended to."""

POINTS: Final[Mapping[str, str]] = {
    "create.before_commit": "the tables of a new store are made, and not committed",
    "migrate.begun": "the transaction of a migration has begun, nothing is changed",
    "migrate.step": "one migration is applied, and not committed",
    "migrate.before_commit": "all migrations are applied and checked, and not committed",
    "migrate.committed": "a migrated store is committed, nothing is written in it yet",
    "open.run_committed": "the run and its session are in the store, nothing is recovered yet",
    "recover.begun": "a resumed run is about to take back what was under way",
    "recover.part": "a part of the recovery is committed, others are to follow",
    "recover.marked": "lost attempts are marked",
    "recover.done": "the recovery is committed, nothing is dispatched yet",
    "dispatch.sent": "a dispatch is handed to the writer, and not committed",
    "commit.begun": "the writer's transaction has begun, nothing is written",
    "commit.ledger_written": "transitions are written, the projection is not",
    "commit.before": "all rows of a transaction are written, and not committed",
    "commit.after": "a transaction is committed, nobody knows of it yet",
    "ack.after": "a commit is acknowledged, and what waited for it may go on",
    "wire.before": "a dispatch is committed, its request is not on the wire",
    "wire.charged": "a request goes on the wire, the time of its origin is not on record",
    "artifact.before": "a response has come, nothing of its evidence is written",
    "artifact.synced": "an artifact is written and synced under a temporary name",
    "artifact.named": "an artifact has its name, its directory is not synced",
    "artifact.kept": "the evidence of a response is durable, no transaction names it",
    "respond.before": "a response has come, nothing of it is in the ledger",
    "respond.committed": "a response is committed, the spider has not seen it",
    "page.children_sent": "all that a page yielded is handed to the writer, its end is not",
    "page.end_sent": "the end of a page is handed to the writer, and not committed",
    "hop.sent": "the next hop of a redirect is handed to the writer, the end of the redirect is not",
    "retry.sent": "a failed attempt and its retry are handed to the writer, and not committed",
    "robots.before": "an answer for robots.txt has come, nothing of it is in the store",
    "robots.sent": "the rules of a robots.txt are handed to the writer, and not committed",
    "checkpoint.before": "the write-ahead log is about to be copied into the store",
    "checkpoint.after": "the write-ahead log is copied",
    "export.page": "a page of an export is written, others are to follow",
    "file.written": "a backup or an export is written under a temporary name, and not synced",
    "file.synced": "a backup or an export is synced under a temporary name",
    "file.named": "a backup or an export has its name, its directory is not synced",
    "restore.log_gone": "the log of the store that a backup replaces is removed, the backup is not in place",
    "close.begun": "the spider is closed, queued messages are not written",
    "close.drained": "all messages are committed, the run is still open",
    "close.run_committed": "the end of the run is committed, its report is not made",
    "close.half_reported": "one file of the report is written",
    "close.reported": "the report is written, the log is not emptied",
    "close.closed": "the store is closed, the lock of the run is not released",
}
"""Every interruption point, and the moment it stands for."""


def _pass(_name: str) -> None:
    """Points do nothing: the state of every process that is not tested."""


reach: Callable[[str], None] = _pass
"""Called by name at each boundary. Look it up in this module at each call: `arm` replaces it."""


def arm(kills: str = "", trace: str = "") -> None:
    """Set the points that kill this process, and the file that tells which were reached; "" for none.

    Raises `ConfigError` for a point that does not exist.
    """
    global reach
    reach = _Armed(_parse(kills), trace) if kills or trace else _pass


class _Armed:
    """Counts down to each kill."""

    def __init__(self, left: dict[str, int], trace: str) -> None:
        self._left = left
        self._trace = trace
        self._traced: set[str] = set()

    def __call__(self, name: str) -> None:
        if self._trace and name not in self._traced:
            self._traced.add(name)
            _append(self._trace, f"{name}\n")
        if name in self._left:
            self._left[name] -= 1
            if self._left[name] == 0:
                # Windows has no SIGKILL, and ends a process as hard for SIGTERM.
                os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def _parse(kills: str) -> dict[str, int]:
    left = {}
    for pair in filter(None, kills.split(",")):
        name, _, hit = pair.strip().partition(":")
        if name not in POINTS or not (hit or "1").isdecimal():
            raise ConfigError(
                f"{VARIABLE}={kills!r}: {pair!r} is not a point and its hit, as commit.after:3;"
                f" the points are {', '.join(POINTS)}"
            )
        left[name] = int(hit or 1)
    return left


def _append(path: str, line: str) -> None:
    """One write of a whole line: it stands even if the process is killed at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


arm(os.environ.get(VARIABLE, ""), os.environ.get(TRACE_VARIABLE, ""))
