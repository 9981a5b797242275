"""The one writer of a store connection: a thread that commits in groups what the event loop sends it.

Contract (design, section 5): messages are applied in the order sent, in short transactions; answers reach the loop only
after the commit that holds them; what fails for good is latched, and nothing is written after it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from scrapy_frontier import failpoints
from scrapy_frontier.errors import StoreError
from scrapy_frontier.logs import get_logger
from scrapy_frontier.store.messages import (
    Committed,
    Emission,
    Message,
    OriginTiming,
    PageRendered,
    RobotsFetched,
    SituationTold,
    Tally,
)
from scrapy_frontier.store.rows import cursor_of
from scrapy_frontier.store.trouble import store_errors
from scrapy_frontier.store.vitals import Vitals

if TYPE_CHECKING:
    from scrapy_frontier.store.apply import Applier
    from scrapy_frontier.store.opening import Store

logger = get_logger(__name__)

GROUP_LIMIT: Final = 2000
"""Messages in one transaction at the most: about 10,000 rows, some tenths of a second."""

LINGER_S: Final = 0.002
"""How long the writer lets messages gather once there is one: short beside any network, and half the transactions."""

BUSY_TRIES: Final = 5
"""How often a transaction is tried while another process holds the store."""

CHECKPOINT_FRAMES: Final = 16_000
"""Pages in the write-ahead log after which a checkpoint is made between two transactions (64 MB)."""

CHECKPOINT_INTERVAL_S: Final = 60.0
"""The log is taken into the store at least this often while something is written."""

RECORDS: Final = frozenset(
    {Emission, OriginTiming, PageRendered, RobotsFetched, SituationTold, Tally}
)
"""Messages that record something and can never bring anything to fetch."""

_PAGE_ROWS: Final = 40
"""Rows to a page of the log, roughly: tells when asking for the log's size is worth while."""


class Writer:
    """Owns the store's writing connection while a run is open.

    `post` calls a function on the event loop from the writer's thread. `deliver` and `failed` are called on the loop:
    with what a commit means for it, and once with the error that stopped the writer.
    """

    def __init__(
        self,
        store: Store,
        applier: Applier,
        *,
        post: Callable[[Callable[[], None]], None],
        deliver: Callable[[Committed], None],
        failed: Callable[[StoreError], None],
    ) -> None:
        self._store = store
        self._applier = applier
        self._post = post
        self._deliver = deliver
        self._failed = failed
        self._queue: deque[tuple[float, Message]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._oldest_at: float | None = None
        self._rows_since_checkpoint = 0
        self._checkpointed_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="frontier-writer", daemon=True)
        self.error: StoreError | None = None
        self.sent: int = 0
        self.delivered: int = 0
        self._owing: int = 0
        self.rows: int = 0
        self.busy_retries: int = 0
        self.vitals: Vitals = Vitals()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def send(self, message: Message) -> None:
        """Queue a message. Never blocks, never raises; after a failure the message is dropped."""
        if self.error is None:
            self.sent += 1
            self._owing += type(message) not in RECORDS
            self._queue.append((time.monotonic(), message))
            self._wake.set()

    @property
    def lag_s(self) -> float:
        """Age of the oldest message that is not on disk yet, in seconds."""
        oldest = self._oldest_at
        if oldest is None:
            try:
                oldest = self._queue[0][0]
            except IndexError:
                return 0.0
        return time.monotonic() - oldest

    @property
    def owes_work(self) -> bool:
        """Whether a message is under way that may bring something to fetch."""
        return self._owing > 0

    @property
    def refused(self) -> int:
        """Moves that the transition table did not allow; each is an error in the program."""
        return self._applier.refused

    def spent(self, rule: str, pattern: str) -> int | None:
        """What is used of a budget on admission; None until something is spent of it in this process."""
        return self._applier.spent(rule, pattern)

    @property
    def pending(self) -> int:
        """Messages sent whose commit has not reached the loop yet."""
        return self.sent - self.delivered

    def stop(self) -> None:
        """Commit what is queued, then end the thread. Blocks until it has ended."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                self._wake.wait()
                if not self._stopping:
                    time.sleep(LINGER_S)
                self._wake.clear()
                while self._queue:
                    self._commit(self._drain())
                    self._checkpoint_if_long()
                if self._stopping and not self._queue:
                    return
        except BaseException as error:  # the thread must never die unheard
            self._latch(error)

    def _drain(self) -> list[Message]:
        self._oldest_at = self._queue[0][0]
        return [self._queue.popleft()[1] for _ in range(min(len(self._queue), GROUP_LIMIT))]

    def _commit(self, messages: Sequence[Message]) -> None:
        started_at = time.monotonic()
        waited_s = started_at - (self._oldest_at or started_at)
        for attempt in range(1, BUSY_TRIES + 1):
            try:
                committed = self._transact(messages)
                break
            except StoreError as error:
                if not error.is_retryable or attempt == BUSY_TRIES:
                    raise
                self.busy_retries += 1
                time.sleep(random.uniform(0.5, 1.5) * 0.05 * 2**attempt)
        self._oldest_at = None
        self.vitals.committed(time.monotonic() - started_at, waited_s)
        committed.messages = len(messages)
        committed.settled = sum(type(message) not in RECORDS for message in messages)
        self.rows += committed.rows
        self._rows_since_checkpoint += committed.rows
        self._post(lambda: self._hand_over(committed))

    def _hand_over(self, committed: Committed) -> None:
        """On the loop: nothing of this commit is under way any more."""
        self.delivered += committed.messages
        self._owing -= committed.settled
        self._deliver(committed)

    def _transact(self, messages: Sequence[Message]) -> Committed:
        connection = self._store.writer_connection()
        self._store.check_place()
        with store_errors(f"writing to {self._store.url}"), connection.begin():
            cursor = cursor_of(connection)
            failpoints.reach("commit.begun")
            self._applier.refresh(self._store)
            batch = self._applier.apply(cursor, messages)
            failpoints.reach("commit.before")
        failpoints.reach("commit.after")
        self._applier.keep(batch)
        return batch.committed

    def _checkpoint_if_long(self) -> None:
        """Where the log may be long, or is not young any more: a reader that holds it up is noticed early."""
        now = time.monotonic()
        is_long = self._rows_since_checkpoint >= CHECKPOINT_FRAMES * _PAGE_ROWS // 10
        if not is_long and now - self._checkpointed_at < CHECKPOINT_INTERVAL_S:
            return
        self._rows_since_checkpoint = 0
        self._checkpointed_at = now
        with store_errors(f"checkpointing {self._store.url}"):
            _, frames, copied = self._store.checkpoint("PASSIVE")
        self.vitals.checkpointed(frames, copied)

    def _latch(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self.error = error
        else:
            self.error = StoreError(
                f"the writer of {self._store.url} failed: {error!r}; nothing is written after this"
            )
            self.error.__cause__ = error
        logger.critical("%s", self.error, exc_info=error, extra={"action": "writer_failed"})
        self._queue.clear()
        self._oldest_at = None
        latched = self.error
        self._post(lambda: self._failed(latched))
