"""The rows of a URL's life written by hand: how fast the library and the disk are without a
frontier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.process_figures import Spent, Stopwatch

try:
    from pysqlite3 import dbapi2 as sqlite
except ImportError:
    import sqlite3 as sqlite

SCHEMA = (
    "CREATE TABLE url(id INTEGER PRIMARY KEY, key BLOB NOT NULL, origin INT NOT NULL,"
    " url TEXT NOT NULL) STRICT",
    "CREATE UNIQUE INDEX ux_key ON url(key)",
    "CREATE TABLE log(seq INTEGER PRIMARY KEY, id INT NOT NULL, previous INT NOT NULL,"
    " event INT NOT NULL, at_ms INT NOT NULL) STRICT",
    "CREATE TABLE now(id INTEGER PRIMARY KEY, origin INT NOT NULL, state INT NOT NULL,"
    " rank INT NOT NULL, seq INT NOT NULL) STRICT",
    "CREATE INDEX ix_pending ON now(origin, rank, id) WHERE state = 3",
    "CREATE TABLE attempt(id INTEGER PRIMARY KEY, url INT NOT NULL, status INT, size INT) STRICT",
)

DISCOVERED = ("INSERT INTO url VALUES (?, ?, ?, ?)", "INSERT INTO now VALUES (?, ?, ?, ?, ?)")
LOG = "INSERT INTO log VALUES (?, ?, ?, ?, ?)"
NOW = "UPDATE now SET state = ?, seq = ? WHERE id = ? AND seq = ?"
DISPATCHED = "INSERT INTO attempt VALUES (?, ?, NULL, NULL)"
FINISHED = "UPDATE attempt SET status = 200, size = 5000 WHERE id = ?"

PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "wal_autocheckpoint=16000")


def write_lives(path: Path, lives: int, under_way: int) -> tuple[int, Spent]:
    """Write so many life cycles in groups, three transactions to a group. Return the number of
    commits and what they took, opening and closing left out.
    """
    connection: Any = sqlite.connect(str(path), isolation_level=None)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").fetchall()
    for statement in SCHEMA:
        connection.execute(statement)
    stopwatch = Stopwatch()
    numbers = iter(range(1, lives + 1))
    commits = 0
    while group := list(islice(numbers, under_way)):
        for step in (_discover, _dispatch, _finish):
            connection.execute("BEGIN IMMEDIATE")
            step(connection, group)
            connection.execute("COMMIT")
            commits += 1
    spent = stopwatch.read()
    connection.close()
    return commits, spent


def _seq(number: int, step: int) -> int:
    return number * 6 + step


def _log(group: list[int], *steps: int) -> Iterator[tuple[int, ...]]:
    for number in group:
        for step in steps:
            yield _seq(number, step), number, _seq(number, step - 1), step, 1_700_000_000_000


def _move(connection: Any, group: list[int], step: int, before: int) -> None:
    connection.executemany(NOW, [(step + 1, _seq(n, step), n, _seq(n, before)) for n in group])


def _discover(connection: Any, group: list[int]) -> None:
    url, now = DISCOVERED
    connection.executemany(
        url,
        [
            (n, hashlib.blake2b(str(n).encode(), digest_size=16).digest(), n % 500, page_url(n))
            for n in group
        ],
    )
    connection.executemany(LOG, _log(group, 0, 1, 2))
    connection.executemany(now, [(n, n % 500, 3, 0, _seq(n, 2)) for n in group])


def _dispatch(connection: Any, group: list[int]) -> None:
    connection.executemany(LOG, _log(group, 3))
    connection.executemany(DISPATCHED, [(n, n) for n in group])
    _move(connection, group, 3, 2)


def _finish(connection: Any, group: list[int]) -> None:
    connection.executemany(LOG, _log(group, 4, 5))
    connection.executemany(FINISHED, [(n,) for n in group])
    _move(connection, group, 5, 2 + 1)


def page_url(number: int) -> str:
    """A URL of ordinary length, on one of 500 hosts."""
    return f"http://host{number % 500}.example/section/{number % 97}/page-{number}.html"
