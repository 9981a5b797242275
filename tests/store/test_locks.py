"""One process works on a run, and a dead one never stands in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scrapy_frontier.errors import RunLocked, StoreError
from scrapy_frontier.store import locks, sqlite
from scrapy_frontier.store.locks import FileRunLock, ProcessLock, RunLock, StoreLock
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.sqlite import SqliteLibrary

SOUND = SqliteLibrary("pysqlite3", "3.53.4", "")
FAULTY = SqliteLibrary("sqlite3", "3.40.1", "")

HOLDER = """
import subprocess, sys
from pathlib import Path
from scrapy_frontier.store.locks import ProcessLock
lock = ProcessLock(Path(sys.argv[1]), str)
lock.acquire()
child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'crawl.db'}", create=True) as store:
        yield store


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE_S", 0.05)


def file_lock(store: Store, run_id: int) -> FileRunLock:
    """The lock of a run, which for SQLite is a file."""
    lock = store.run_lock(run_id)
    assert isinstance(lock, FileRunLock)
    return lock


@contextmanager
def held_by_another_process(path: Path | None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock at `path`, and has a child that outlives it."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        os.kill(child, signal.SIGKILL)


def test_second_process_on_a_run_is_refused_until_the_first_is_dead(store: Store) -> None:
    """The refusal names the holder and what to do; kill -9 of the holder frees the run at once."""
    lock = file_lock(store, 7)
    with held_by_another_process(lock.path) as process:
        with pytest.raises(RunLocked) as caught:
            lock.acquire()
        assert f"run 7 of {store.url} is being crawled by process {process.pid} on " in str(
            caught.value
        )
        assert "crawl under another FRONTIER_RUN" in str(caught.value)
        with RunLock(store, 8), open_store(store.url, read_only=True):
            pass  # neither another run nor a reader is hindered
        process.kill()
        process.wait()
        assert lock.path is not None
        assert lock.path.exists()
        with lock:
            assert f"process {os.getpid()} on " in lock.holder()


def test_same_run_twice_in_one_process_is_refused(store: Store) -> None:
    """Two crawls of one process are two workers all the same."""
    with RunLock(store, 1), pytest.raises(RunLocked, match=f"process {os.getpid()} on "):
        RunLock(store, 1).acquire()


def test_released_lock_is_free_and_leaves_no_file(store: Store) -> None:
    """A clean end leaves only the store; releasing twice does no harm."""
    lock = file_lock(store, 1)
    for _ in range(2):
        with lock:
            assert lock.path is not None
            assert lock.path.name == "crawl.db.run-1.lock"
        lock.release()
        assert not lock.path.exists()


def test_lock_can_be_released_in_another_thread(store: Store) -> None:
    """The lock belongs to the process, not to the thread that took it."""
    lock = RunLock(store, 1)
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    with RunLock(store, 1):
        pass


def test_store_in_memory_needs_no_lock() -> None:
    """No other process sees it."""
    with open_store("sqlite://") as store, RunLock(store, 1), RunLock(store, 1):
        pass


def test_lock_file_that_cannot_be_made(tmp_path: Path) -> None:
    """The error names the file and the cure."""
    (tmp_path / "crawl.db.run-1.lock").mkdir()
    lock = ProcessLock(tmp_path / "crawl.db.run-1.lock", str)
    with pytest.raises(StoreError, match=r"crawl\.db\.run-1\.lock cannot be used: .*permission"):
        lock.acquire()


def store_lock(tmp_path: Path, library: SqliteLibrary) -> StoreLock:
    return StoreLock(tmp_path / "crawl.db", "sqlite:///crawl.db", library)


def test_sound_libraries_write_side_by_side(tmp_path: Path) -> None:
    """Without the WAL-reset fault a store may have several writing processes, and no lock file."""
    with store_lock(tmp_path, SOUND), store_lock(tmp_path, SOUND):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("second", [SOUND, FAULTY], ids=["sound", "faulty"])
def test_faulty_library_writes_alone(tmp_path: Path, second: SqliteLibrary) -> None:
    """With the fault, any other writer is refused, and told the cure; the holder's end frees it."""
    with store_lock(tmp_path, FAULTY), pytest.raises(RunLocked, match="WAL-reset") as caught:
        store_lock(tmp_path, second).acquire()
    assert "pip install 'pysqlite3>=0.6.1'" in str(caught.value)
    with store_lock(tmp_path, second):
        pass


def test_faulty_library_does_not_join_a_crawl(tmp_path: Path) -> None:
    """A crawl in a process with a sound library keeps one with the fault from writing."""
    crawl = ProcessLock(tmp_path / "crawl.db.run-3.lock", str)
    faulty = store_lock(tmp_path, FAULTY)
    with crawl, pytest.raises(RunLocked, match=f"process {os.getpid()} on .*WAL-reset fault"):
        faulty.acquire()
    with faulty:
        pass


def test_opening_with_the_fault_locks_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is held from the opening for writing to the close, and readers do not ask for it."""
    monkeypatch.setattr(sqlite, "library_of", lambda connection: FAULTY)
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    with open_store(url, create=True):
        with pytest.raises(RunLocked, match="WAL-reset"):
            open_store(url)
        open_store(url, read_only=True).close()
    open_store(url).close()
