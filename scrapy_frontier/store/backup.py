"""A copy of a store, made while crawls write to it, and put back where it came from.

The copy is of one snapshot: the pages are read inside one transaction of a reader, so SQLite's
backup API is not thrown back by commits that come meanwhile (sqlite.org/c3ref/backup_finish.html: a
backup restarts when another connection changes the source; a pinned snapshot does not change).
While it runs, the write-ahead log grows by what crawls write, and shrinks again afterwards.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier import failpoints
from scrapy_frontier.errors import StoreError
from scrapy_frontier.store import schema
from scrapy_frontier.store.files import new_file
from scrapy_frontier.store.locks import ProcessLock
from scrapy_frontier.store.progress import Progress, silent
from scrapy_frontier.store.sqlite import DRIVER
from scrapy_frontier.store.trouble import store_errors

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.store.opening import Store

STEP: Final = 1024
"""Pages copied at a time (4 MB)."""

_COUNTED: Final = ("run", "identity", "transition", "attempt")


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished copy, and what is in it."""

    path: str
    size: int
    schema: str
    runs: int
    identities: int
    transitions: int
    attempts: int
    last_seq: int


def back_up(
    store: Store, target: Path, *, overwrite: bool = False, progress: Progress = silent
) -> Backup:
    """Copy the store as it is now to `target`, and check the copy.

    Raises `OutputError` where `target` is there and may not go, and `StoreError` where the copy is
    not sound; either way nothing is left at `target` that was not there.
    """
    _check_is_file(store)
    with new_file(target, overwrite=overwrite) as part:
        return _make(store, part, target, progress)


def restore(
    copy: Store, target: Path, *, overwrite: bool = False, progress: Progress = silent
) -> Backup:
    """Put a copy where a store is to stand: written and checked like a backup, then named in one step.

    The write-ahead log of a store that stood there goes first: left behind, it would be taken into
    the copy. Raises `RunLocked` while a process works on a run of that store.
    """
    with _nobody_at(target), new_file(target, overwrite=overwrite) as part:
        made = _make(copy, part, target, progress)
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        failpoints.reach("restore.log_gone")
        return made


def _make(store: Store, part: Path, target: Path, progress: Progress) -> Backup:
    with store.reader() as connection:
        expected = _contents(connection)
        _copy(connection, part, progress)
    progress("Checking the copy", 0, 0)
    _check_copy(part, expected)
    progress("", 0, 0)
    return Backup(str(target), part.stat().st_size, schema.SCHEMA_VERSION, *expected)


@contextmanager
def _nobody_at(target: Path) -> Iterator[None]:
    """Hold every lock that crawls on the store at `target` have left or hold; it may be damaged."""

    def refusal(holder: str) -> str:
        return f"{target} is being crawled by {holder}; stop that process, then restore"

    with ExitStack() as held:
        for lock in target.parent.glob(f"{glob.escape(target.name)}.*.lock"):
            held.enter_context(ProcessLock(lock, refusal))
        yield


def _check_is_file(store: Store) -> None:
    if store.dialect_name != "sqlite":
        raise StoreError(
            f"{store.url} is a PostgreSQL database, which has tools of its own: make the backup"
            " with pg_dump --format=custom, put it back with pg_restore, and verify it by"
            " `scrapy frontier verify --store URL`"
        )


def _contents(connection: Connection) -> tuple[int, ...]:
    """Rows of the main tables, and the last seq; it also pins the snapshot."""
    counts = [connection.scalar(text(f"SELECT count(*) FROM {table}")) for table in _COUNTED]
    return (*map(int, counts), int(connection.scalar(text("SELECT max(seq) FROM transition")) or 0))


def _copy(connection: Connection, part: Path, progress: Progress) -> None:
    source: Any = connection.connection.driver_connection
    with (
        store_errors(f"copying to {part}"),
        closing(DRIVER.connect(str(part), isolation_level=None)) as target,
    ):
        source.backup(
            target,
            pages=STEP,
            progress=lambda _status, left, total: progress("Copying pages", total - left, total),
        )


def _check_copy(part: Path, expected: tuple[int, ...]) -> None:
    uri = f"{part.resolve().as_uri()}?mode=ro&immutable=1"
    with (
        store_errors(f"checking {part}"),
        closing(DRIVER.connect(uri, uri=True, isolation_level=None)) as connection,
    ):
        problems = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
        queries = [f"SELECT count(*) FROM {table}" for table in _COUNTED]
        queries.append("SELECT coalesce(max(seq), 0) FROM transition")
        found = tuple(connection.execute(query).fetchone()[0] for query in queries)
    if problems != ["ok"] or found != expected:
        said = "; ".join(map(str, problems))
        raise StoreError(
            f"the copy is not sound (integrity_check: {said}; {found} rows for {expected}): run"
            " `scrapy frontier verify` on the store, and look at the disk of the copy"
        )
