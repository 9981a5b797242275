"""One process of the world: the package's own writer, dispatch and recovery on a store, without threads and sockets."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from scrapy_frontier import failpoints
from scrapy_frontier.frontier import runs
from scrapy_frontier.frontier.cut_off import cut_off
from scrapy_frontier.frontier.dispatch import Dispatch
from scrapy_frontier.frontier.recovery import Recovery
from scrapy_frontier.frontier.spending import Allowance, Spending
from scrapy_frontier.frontier.wall_time import carry_on
from scrapy_frontier.policy.leases import LeasePolicy
from scrapy_frontier.scheduling import Schedule
from scrapy_frontier.settings import FrontierSettings
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.messages import Committed
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.rows import cursor_of
from scrapy_frontier.store.writer import Writer

from .web import OUT_OF_SCOPE, RULES, is_excluded

LEASE_S: Final = 60.0
LEASES: Final = LeasePolicy(LEASE_S, 3)

CRASH_POINTS: Final = ("commit.begun", "commit.ledger_written", "commit.before", "commit.after")
"""Where the writer dies; after the last of them the log of the store may be torn."""


class Crashed(BaseException):
    """The process is dead."""


class Waker:
    """Nobody is woken: the world asks when it likes."""

    after_ring: Callable[[], None] | None = None

    def wake(self) -> None:
        """Nothing."""

    def wake_in(self, delay_s: float) -> None:
        """Nothing."""

    def call_soon(self, function: Callable[[], None]) -> None:
        """At once."""
        function()


class Clock:
    """A process's clock: true time, and how wrong it is."""

    def __init__(self, at: float) -> None:
        self.true = at
        self.wrong_by = 0.0

    def now(self) -> float:
        """What the process believes."""
        return self.true + self.wrong_by

    def tell_none_before(self, at: float) -> None:
        """As the package's own clock does."""
        self.wrong_by = max(self.wrong_by, at - self.true)


class Process:
    """A session of the run, from its opening to its end."""

    def __init__(self, path: Path, clock: Clock, policy: int, seed: int) -> None:
        self.path = path
        self.commits = 0
        if not path.exists():
            path.write_bytes(_empty_store())
        self.store: Store = open_store(f"sqlite:///{path}")
        run_id = runs.find_unfinished(self.store, "spider", "run", is_own=False)
        with runs.transaction(self.store, "opening a run") as connection:
            self.run = runs.open_run(
                connection, run_id, spider="spider", name="run", policy={"n": policy}, versions={}
            )
        applier = Applier(self.run.run_id, self.run.context_id, self.run.session_id, LEASES)
        with runs.transaction(self.store, "loading") as connection:
            applier.load(cursor_of(connection))
        carry_on(clock, self.store, self.run)  # type: ignore[arg-type]
        if self.run.is_resumed:
            judge = None
            if self.run.has_new_policy:
                judge = lambda url, _: OUT_OF_SCOPE if is_excluded(url, policy) else None  # noqa: E731
            now_ms = round(clock.now() * 1000)
            Recovery(self.store, applier, self.run.run_id, now_ms, cut_off(RULES, None)).run(judge)
        self.applier = applier
        self.writer = Writer(
            self.store, applier, post=lambda call: call(), deliver=self._deliver, failed=_fail
        )
        self.dispatch = Dispatch(
            Schedule(window=8, lane_heads=4, max_hot_origins=2, idle_origins=1),
            RULES,
            self.writer,
            clock,
            Waker(),  # type: ignore[arg-type]
            self.run.run_id,
            random.Random(seed),
            Spending(Allowance.of(FrontierSettings()), _fail),
        )
        with self.store.reader() as connection:
            self.dispatch.resume(connection)

    @property
    def queued(self) -> int:
        """Messages that are not on disk."""
        return len(self.writer._queue)

    def commit(self, limit: int, crash_at: str | None = None) -> None:
        """Commit up to `limit` messages as the writer's thread does; raises `Crashed` at a crash point."""
        queue = self.writer._queue
        messages = [queue.popleft()[1] for _ in range(min(limit, len(queue)))]
        if not messages:
            return
        reach = failpoints.reach

        def reached(name: str) -> None:
            if name == crash_at:
                raise Crashed(name)

        failpoints.reach = reached
        try:
            self.writer._commit(messages)
            self.commits += 1
        finally:
            failpoints.reach = reach

    def wal_size(self) -> int:
        """Bytes in the write-ahead log; all of them are synced between two transactions."""
        wal = Path(f"{self.path}-wal")
        return wal.stat().st_size if wal.exists() else 0

    def image(self, to: Path, synced: int, cut: float, luck: random.Random) -> None:
        """What a power cut leaves: the store, and of the log what was synced and any part of what followed.

        `cut` is the part that was written; the bytes at the cut may be any.
        """
        shutil.copyfile(self.path, to)
        log = Path(f"{self.path}-wal").read_bytes()
        kept = synced + round((len(log) - synced) * cut) if len(log) > synced else len(log)
        torn = min(luck.randrange(600), len(log) - kept)
        Path(f"{to}-wal").write_bytes(log[:kept] + luck.randbytes(torn))

    def die(self) -> None:
        """Nothing that is not on disk survives; the file stays for whoever looks."""
        self.store.close()

    def close(self) -> None:
        """End in order: all that is queued is written, and the run can be resumed."""
        while self.queued:
            self.commit(50)
        with runs.transaction(self.store, "closing the run") as connection:
            runs.close_run(connection, self.run, runs.STOPPED, "operator", {})
        self.store.close()

    def _deliver(self, committed: Committed) -> None:
        self.dispatch.take(committed)
        for answer, value in committed.answers:
            answer(value)


def _fail(error: Any) -> None:
    raise AssertionError(f"the writer failed: {error}")


@cache
def _empty_store() -> bytes:
    """A store without a run; it takes a while to make one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        open_store(f"sqlite:///{path}", create=True).close()
        return path.read_bytes()


def remove(path: Path) -> None:
    """A store's files."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
