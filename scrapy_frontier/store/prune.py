"""Dropping whole runs: the only way in which anything leaves the ledger (invariant 10).

One run goes in one transaction, in which alone the ledger's guard against deletion is lifted. What other runs refer to
stays: policies, reasons, what is known of robots.txt, and each of its texts that a record or the ledger still names. A
line about the run stays in the table `meta`, and the highest ids, so that none is given twice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Table, text

from scrapy_frontier.store import ids, schema
from scrapy_frontier.store.progress import Progress, silent
from scrapy_frontier.store.standing import mark
from scrapy_frontier.store.trouble import store_errors

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.store.opening import Store

KEPT: Final = frozenset({"meta", "policy", "reason", "robots", "robots_text"})
"""Tables that belong to no run."""

_OF_RUN: Final = {
    "run_id": "run_id = :run",
    "context_id": "context_id IN (SELECT context_id FROM context WHERE run_id = :run)",
    "session_id": "session_id IN (SELECT session_id FROM session WHERE run_id = :run)",
    "identity_id": "EXISTS (SELECT 1 FROM identity AS i WHERE i.identity_id = {table}.identity_id"
    " AND i.run_id = :run)",
}
"""How the rows of a run are found, by a column that tells; the first that a table has serves."""

_BATCH: Final = 10_000

_NAMED: Final = re.compile(r'"digest":\s*"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Pruned:
    """A run that was dropped, and how much went with it."""

    run: int
    rows: dict[str, int]
    """Rows deleted, by table; none that lost nothing."""
    robots_texts: int
    """Texts of robots.txt that nothing names any more."""


def prune(store: Store, run_id: int, progress: Progress = silent) -> Pruned:
    """Drop a run. Raises `RunLocked` where a process works on it, and `StoreError`; then all is as before."""
    lock = store.run_lock(run_id)
    lock.acquire()
    try:
        connection = store.writer_connection()
        store.check_place()
        with store_errors(f"pruning run {run_id} of {store.url}"), connection.begin():
            _keep_marks(connection, run_id)
            with store.database.unguarded(connection):
                rows = dict(_drop(connection, run_id, progress))
            texts = _drop_robots_texts(store, connection)
        progress("", 0, 0)
        return Pruned(run_id, rows, texts)
    finally:
        lock.release()


def compact(store: Store) -> None:
    """Give the space of what was dropped back to the disk; for a while it needs as much again."""
    with store_errors(f"compacting {store.url}"):
        store.database.compact(store.writer_connection())
    store.checkpoint("TRUNCATE")


def order() -> tuple[Table, ...]:
    """The tables whose rows belong to runs, referring before referred to."""
    tables = [one for one in reversed(schema.metadata.sorted_tables) if one.name not in KEPT]
    # What is found by way of another table goes before that one.
    return tuple(sorted(tables, key=lambda table: _column(table) == "run_id"))


def _column(table: Table) -> str:
    return next(column for column in _OF_RUN if column in table.columns)


def _drop(connection: Connection, run_id: int, progress: Progress) -> Iterator[tuple[str, int]]:
    tables = order()
    for number, table in enumerate(tables):
        progress(f"Dropping run {run_id}", number, len(tables))
        where = _OF_RUN[_column(table)].format(table=table.name)
        statement = text(f'DELETE FROM "{table.name}" WHERE {where}')
        count = connection.execute(statement, {"run": run_id}).rowcount
        if count:
            yield table.name, count


def _keep_marks(connection: Connection, run_id: int) -> None:
    """The highest ids so far, and who the run was."""
    highest = ids.kept(connection.scalar(text(ids.QUERY)))
    for table, column in ids.NUMBERED:
        found = connection.scalar(text(f'SELECT max("{column}") FROM "{table}"')) or 0
        highest[table] = max(int(found), highest.get(table, 0))
    query = "SELECT name, spider, state, started_ms, finished_ms FROM run WHERE run_id = :run"
    run = connection.execute(text(query), {"run": run_id}).mappings().one()
    pruned = {**run, "pruned_ms": int(time.time() * 1000)}
    mark(
        connection,
        **{ids.MARK: json.dumps(highest), f"pruned.{run_id}": json.dumps(pruned)},
    )


def _drop_robots_texts(store: Store, connection: Connection) -> int:
    """Drop the texts that neither a record nor a reason in what is left of the ledger names."""
    unused = "SELECT digest FROM robots_text WHERE digest NOT IN (SELECT digest FROM robots)"
    orphans = set(connection.scalars(text(unused)))
    if not orphans:
        return 0
    with closing(store.database.stream(connection)) as cursor:
        cursor.execute("SELECT detail FROM transition WHERE detail IS NOT NULL")
        while rows := cursor.fetchmany(_BATCH):
            for (detail,) in rows:
                orphans.difference_update(_NAMED.findall(detail))
    for digest in orphans:
        connection.execute(
            text("DELETE FROM robots_text WHERE digest = :digest"), {"digest": digest}
        )
    return len(orphans)
