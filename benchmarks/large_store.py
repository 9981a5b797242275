"""A store of any size, made by SQL alone: one finished run in which every URL was fetched once."""

from __future__ import annotations

from typing import Any, Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store.edges import pack
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.schema import from_to

LINKS: Final = 30
"""References in one emission."""

_LIFE: Final = (
    (Event.DISCOVER, State.ABSENT, State.DISCOVERED),
    (Event.ADMIT, State.DISCOVERED, State.ADMITTED),
    (Event.ENQUEUE, State.ADMITTED, State.SCHEDULED),
    (Event.DISPATCH, State.SCHEDULED, State.FETCHING),
    (Event.RESPOND, State.FETCHING, State.FETCHED),
    (Event.PROCESS, State.FETCHED, State.TERMINAL),
)
MOVES: Final = len(_LIFE)
"""Transitions of each identity."""

_START_MS: Final = 1_764_550_000_000
_ORIGINS: Final = 1000
_CHUNK: Final = 100_000


def make(url: str, identities: int) -> None:
    """Make a store with so many identities, and 6 transitions and 1 attempt of each."""
    with open_store(url, create=True, synchronous="NORMAL") as store:
        connection = store.writer_connection()
        with connection.begin():
            _frame(connection)
        for first in range(1, identities + 1, _CHUNK):
            last = min(first + _CHUNK - 1, identities)
            with connection.begin():
                _rows(connection, first, last)
            store.checkpoint("TRUNCATE")


def _frame(connection: Any) -> None:
    for statement in (
        "INSERT INTO policy VALUES (1, 'p1digest', '{}', 1)",
        f"INSERT INTO run VALUES (1, 'large', 'made', 'finished', {_START_MS}, {_START_MS + 1},"
        " 'exhausted', NULL, 1)",
        f"INSERT INTO session VALUES (1, 1, 'host:1', 1, {_START_MS}, {_START_MS + 1}, '{{}}')",
        "INSERT INTO context VALUES (1, 1, 1, 1)",
        "INSERT INTO reason VALUES (1, 'http.200')",
        f"{_numbers(1, _ORIGINS)} INSERT INTO origin SELECT i, 1, 'https://h' || i || '.example:443',"
        " 0, 0 FROM n",
    ):
        connection.exec_driver_sql(statement)


def _rows(connection: Any, first: int, last: int) -> None:
    numbers = _numbers(first, last)
    origin = f"1 + i % {_ORIGINS}"
    connection.exec_driver_sql(
        f"{numbers} INSERT INTO identity SELECT i, 1, CAST(printf('%016d', i) AS BLOB), {origin},"
        f" 'GET', 'https://h' || ({origin}) || '.example/some/folder/page-' || i || '.html', 0,"
        f" {ReferenceKind.SEED:d}, 0, '{{}}', 0 FROM n"
    )
    for step, (event, source, target) in enumerate(_LIFE):
        seq = f"(i - 1) * {MOVES} + {step + 1}"
        previous = f"(i - 1) * {MOVES} + {step}" if step else "0"
        attempt = "i" if event in (Event.DISPATCH, Event.RESPOND, Event.PROCESS) else "0"
        ended = int(Disposition.SUCCEEDED) if target is State.TERMINAL else 0
        connection.exec_driver_sql(
            f"{numbers} INSERT INTO transition SELECT {seq}, i, {previous}, {attempt}, {event:d},"
            f" {from_to(source, target)}, {ended}, {_START_MS} + i, 1, 1, NULL, NULL FROM n"
        )
    generation = f"({1 << 32} + i)"
    connection.exec_driver_sql(
        f"{numbers} INSERT INTO attempt SELECT i, i, 1, 0, {generation}, {_START_MS} + i,"
        f" {_START_MS} + i + 20, 200, 4000, NULL, 1, 0 FROM n"
    )
    connection.exec_driver_sql(
        f"{numbers} INSERT INTO current SELECT i, 1, {origin}, {State.TERMINAL:d},"
        f" {Disposition.SUCCEEDED:d}, 1, 0, 0, 0, i, {generation}, i * {MOVES} FROM n"
    )
    for low in range(first, last + 1, LINKS):
        targets = range(low, min(low + LINKS, last + 1))
        count = len(targets)
        connection.exec_driver_sql(
            "INSERT INTO emission VALUES (?, 1, 0, 0, ?, ?, ?, 0, 0, 0, ?, NULL)",
            (low, int(ReferenceKind.SEED), count, count, pack(targets)),
        )


def _numbers(first: int, last: int) -> str:
    return f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
