"""The writer: what was answered is on disk, in the order sent; what fails is latched, and nothing follows it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apply_bench import LINK, Bench, needs_two_writers, reference
from rough import be_patient, hold_write_lock, refuse_writes

from scrapy_frontier.errors import StoreError
from scrapy_frontier.report.verify import verify
from scrapy_frontier.store import writer as writer_module
from scrapy_frontier.store.messages import (
    Committed,
    Emission,
    Known,
    OriginTiming,
    Read,
    Rejected,
    Source,
    Tally,
)
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.writer import GROUP_LIMIT, Writer

PATIENCE_S = 10.0


class Desk:
    """A writer on a bench, and the loop that it posts to: a queue that the test drains itself."""

    def __init__(self, url: str) -> None:
        self.store = open_store(url, create=True)
        self.bench = Bench(self.store)
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.delivered: list[Committed] = []
        self.failures: list[StoreError] = []
        self.writer = Writer(
            self.store,
            self.bench.applier,
            post=self.posted.put,
            deliver=self.deliver,
            failed=self.failures.append,
        )

    def deliver(self, committed: Committed) -> None:
        """What the event loop does with a commit."""
        self.delivered.append(committed)
        for answer, value in committed.answers:
            answer(value)

    def run_posted(self, until: Callable[[], bool] | None = None) -> None:
        """Run what the writer posts until nothing is under way, or as `until` says."""
        is_done = until or (lambda: not self.writer.pending)
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            assert time.monotonic() < deadline, "the writer did not answer in time"
            try:
                self.posted.get(timeout=0.05)()
            except queue.Empty:
                continue

    def close(self) -> None:
        """Stop the writer and close the store."""
        self.writer.stop()
        self.store.close()


@pytest.fixture
def desk(store_url: str) -> Iterator[Desk]:
    """A writer that has not started."""
    made = Desk(store_url)
    yield made
    made.close()


def test_answers_come_in_the_order_sent(desk: Desk) -> None:
    """Across groups too: more messages than one transaction takes are committed in several."""
    known: list[Known] = []
    count = 2 * GROUP_LIMIT + 10
    for number in range(count):
        desk.writer.send(reference(str(number), on_commit=known.append))
    desk.writer.start()
    desk.run_posted()
    assert [answer.identity_id for answer in known] == list(range(1, count + 1))
    assert len(desk.delivered) == desk.writer.vitals.commits == 3
    assert [committed.messages for committed in desk.delivered] == [GROUP_LIMIT, GROUP_LIMIT, 10]
    assert desk.writer.rows == sum(committed.rows for committed in desk.delivered) == 3 * count
    assert verify(desk.store).findings == ()


def test_what_gathers_is_committed_together(desk: Desk) -> None:
    """Messages that wait share one transaction."""
    desk.writer.start()
    for number in range(50):
        desk.writer.send(reference(str(number)))
    desk.run_posted()
    assert desk.writer.vitals.commits <= 5


def test_answer_comes_after_the_commit(desk: Desk) -> None:
    """When an answer reaches the loop, another connection sees its rows."""
    seen: list[int] = []

    def look(known: Known) -> None:
        found = desk.bench.rows(
            f"SELECT state FROM current WHERE identity_id = {known.identity_id}"
        )
        seen.append(len(found))

    desk.writer.start()
    for number in range(20):
        desk.writer.send(reference(str(number), on_commit=look))
        if number % 5 == 0:
            desk.run_posted()
    desk.run_posted()
    assert seen == [1] * 20


def test_nothing_is_answered_while_its_transaction_is_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last moment before a commit, the loop has been told of the commits before it and of no other."""
    told: list[int] = []

    def reach(name: str) -> None:
        if name == "commit.before":
            told.append(desk.posted.qsize())

    monkeypatch.setattr(writer_module.failpoints, "reach", reach)
    desk.writer.start()
    for commits in range(1, 4):
        desk.writer.send(reference(str(commits)))
        deadline = time.monotonic() + PATIENCE_S
        while desk.posted.qsize() < commits:
            assert time.monotonic() < deadline, "the writer did not answer in time"
            time.sleep(0.001)
    assert told == [0, 1, 2]


def test_question_shows_what_was_sent_before_it(desk: Desk) -> None:
    """A read travels in the same queue."""
    found: list[int] = []

    def count(cursor: Any) -> int:
        cursor.execute("SELECT count(*) FROM current")
        return int(cursor.fetchone()[0])

    desk.writer.start()
    for number in range(5):
        desk.writer.send(reference(str(number)))
        desk.writer.send(Read(count, found.append))
    desk.run_posted()
    assert all(shown >= number + 1 for number, shown in enumerate(found))


def test_stop_commits_what_is_queued(desk: Desk) -> None:
    """Nothing that was sent before the end is lost by it."""
    desk.writer.start()
    for number in range(3000):
        desk.writer.send(reference(str(number)))
    desk.writer.stop()
    assert desk.bench.rows("SELECT count(*) FROM current") == [(3000,)]


ACKNOWLEDGES_AND_DIES = """
import os, queue, signal, sys
sys.path[:0] = sys.argv[2:]
from apply_bench import reference
from test_writer import Desk

desk = Desk(sys.argv[1])
acknowledged = 0

def acknowledge(known):
    global acknowledged
    os.write(1, f"{known.identity_id}\\n".encode())
    acknowledged += 1
    if acknowledged == 120:
        os.kill(os.getpid(), signal.SIGKILL)

desk.writer.start()
for number in range(1000):
    desk.writer.send(reference(str(number), on_commit=acknowledge))
    if number % 10 == 0:
        desk.posted.get()()
desk.run_posted()
"""


def test_what_was_acknowledged_survives_a_kill(store_url: str) -> None:
    """A process that dies right after an answer leaves its row behind."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", ACKNOWLEDGES_AND_DIES, store_url, str(Path(__file__).parent)],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    acknowledged = [int(line) for line in done.stdout.split()]
    assert len(acknowledged) == 120
    with open_store(store_url, read_only=True) as store:
        bench_rows = _rows(store, "SELECT identity_id FROM current")
        assert set(acknowledged) <= {row[0] for row in bench_rows}
        assert verify(store).findings == ()


def _rows(store: Any, query: str) -> list[Any]:
    from sqlalchemy import text

    with store.reader() as connection:
        return list(connection.execute(text(query)))


# Others on the same store


def test_busy_store_is_tried_again(
    desk: Desk, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that another process holds for a while costs time and nothing else."""
    monkeypatch.setattr(writer_module.random, "uniform", lambda *_: 0.2)
    be_patient(desk.store, 20)
    let_go = hold_write_lock(desk.store, store_url)
    known: list[Known] = []
    desk.writer.start()
    desk.writer.send(reference("a", on_commit=known.append))
    while not desk.writer.busy_retries:
        time.sleep(0.005)
    assert known == []
    let_go()
    desk.run_posted()
    assert known[0].is_new
    assert desk.failures == []
    assert desk.bench.rows("SELECT count(*) FROM current") == [(1,)]


def test_store_that_stays_busy_is_an_error(
    desk: Desk, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a bounded number of tries the writer gives up, with the cause and the remedy."""
    monkeypatch.setattr(writer_module.random, "uniform", lambda *_: 0.01)
    be_patient(desk.store, 20)
    let_go = hold_write_lock(desk.store, store_url)
    desk.writer.start()
    desk.writer.send(reference("a"))
    desk.run_posted(lambda: bool(desk.failures))
    let_go()
    (error,) = desk.failures
    assert error.is_retryable
    assert "another process holds" in str(error)
    assert desk.writer.busy_retries == writer_module.BUSY_TRIES - 1
    assert desk.bench.rows("SELECT count(*) FROM current") == [(0,)]


@needs_two_writers
def test_two_writers_on_one_store(store_url: str) -> None:
    """Each notices that the other has written, and neither takes an id that is taken."""
    one, other = Desk(store_url), Desk(store_url)
    try:
        one.writer.start()
        other.writer.start()
        for number in range(200):
            one.writer.send(reference(f"one{number}"))
            other.writer.send(reference(f"other{number}", origin=f"http://{number}.example"))
            if number % 20 == 0:
                one.run_posted()
                other.run_posted()
        one.run_posted()
        other.run_posted()
        assert one.failures == other.failures == []
        assert one.bench.rows("SELECT run_id, count(*) FROM current GROUP BY 1 ORDER BY 1") == [
            (one.bench.run.run_id, 200),
            (other.bench.run.run_id, 200),
        ]
        assert verify(one.store).findings == ()
    finally:
        one.close()
        other.close()


# Failures


def test_error_is_latched(desk: Desk) -> None:
    """The first failure is told once; nothing is written after it, and `send` stays harmless."""
    desk.writer.start()
    desk.writer.send(reference("before"))
    desk.run_posted()
    refuse_writes(desk.store, refused=True)
    desk.writer.send(reference("during"))
    desk.run_posted(lambda: bool(desk.failures))
    refuse_writes(desk.store, refused=False)
    sent = desk.writer.sent
    for number in range(10):
        desk.writer.send(reference(f"after{number}"))
    assert desk.writer.sent == sent
    desk.writer.stop()
    (error,) = desk.failures
    assert error is desk.writer.error
    assert f"writing to {desk.store.url}" in str(error)
    assert desk.bench.rows("SELECT count(*) FROM current") == [(1,)]
    assert verify(desk.store).findings == ()


def test_failed_group_leaves_nothing_of_itself(desk: Desk) -> None:
    """A transaction that fails in its last message takes the first ones back with it, and their answers."""
    known: list[Known] = []

    def fail(_: Any) -> None:
        raise ZeroDivisionError("a mistake in the program")

    for number in range(10):
        desk.writer.send(reference(str(number), on_commit=known.append))
    desk.writer.send(Read(fail, known.append))
    desk.writer.start()
    desk.run_posted(lambda: bool(desk.failures))
    assert known == []
    assert "ZeroDivisionError" in str(desk.failures[0])
    assert isinstance(desk.failures[0].__cause__, ZeroDivisionError)
    assert desk.bench.rows("SELECT count(*) FROM transition") == [(0,)]


# Figures


def test_figures_of_the_backlog(desk: Desk) -> None:
    """`pending`, `lag_s` and `owes_work` tell what is not on disk yet, and nothing of what is."""
    assert (desk.writer.pending, desk.writer.lag_s, desk.writer.owes_work) == (0, 0.0, False)
    desk.writer.send(reference("a"))
    desk.writer.send(reference("b"))
    time.sleep(0.05)
    assert desk.writer.pending == 2
    assert 0.05 <= desk.writer.lag_s < PATIENCE_S
    assert desk.writer.owes_work
    desk.writer.start()
    desk.run_posted()
    assert (desk.writer.pending, desk.writer.lag_s, desk.writer.owes_work) == (0, 0.0, False)
    assert desk.writer.vitals.slowest_commit_s > 0


def test_lag_counts_from_the_oldest_message_under_way(desk: Desk, store_url: str) -> None:
    """A message that the writer has taken up is not on disk yet."""
    let_go = hold_write_lock(desk.store, store_url)
    desk.writer.start()
    desk.writer.send(reference("a"))
    time.sleep(0.1)
    assert desk.writer.lag_s >= 0.09
    let_go()
    desk.run_posted()
    assert desk.writer.lag_s == 0


def test_records_owe_no_work(desk: Desk) -> None:
    """What only records something keeps no crawl open."""
    desk.writer.send(Tally("kind", "name", 1))
    desk.writer.send(OriginTiming(1, 1))
    desk.writer.send(Emission(Source(), LINK, [], 0, [Rejected("userinfo", "http://u@h/")]))
    assert desk.writer.pending == 3
    assert not desk.writer.owes_work
    desk.writer.send(reference("a"))
    assert desk.writer.owes_work
    desk.writer.start()
    desk.run_posted()
    assert not desk.writer.owes_work
