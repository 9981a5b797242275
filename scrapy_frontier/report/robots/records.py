"""The records of robots.txt that a store holds, for all of its runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.policy.robots import RecordUnreadable, RobotsRecord, load, reread
from scrapy_frontier.report.names import select_in, streamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import Connection

_ENTRIES: Final = (
    "SELECT r.origin, r.record, t.text FROM robots AS r"
    " LEFT JOIN robots_text AS t ON t.digest = r.digest {where} ORDER BY r.origin"
)
_OF_RUN: Final = "SELECT origin FROM origin WHERE run_id = :run"
_RECORDS: Final = "SELECT origin, record FROM robots WHERE origin IN :ids"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is stored of one origin. `record` has its text; None where it cannot be read, and then
    `fault` says why: the next crawl fetches such a robots.txt again.
    """

    origin: str
    record: RobotsRecord | None
    fault: str = ""


def entries(connection: Connection, run_id: int | None = None) -> Iterator[Entry]:
    """All records of the store, or those of the origins of one run, by origin."""
    rows: Iterable[Any]
    if run_id is None:
        rows = connection.execute(streamed(_ENTRIES.format(where="")))
    else:
        # A gate of an origin is called by its origin, with more in brackets behind it.
        gates = connection.scalars(text(_OF_RUN), {"run": run_id})
        names = sorted({gate.partition(" (")[0] for gate in gates})
        rows = select_in(connection, _ENTRIES.format(where="WHERE r.origin IN :ids"), names)
    for origin, record, content in rows:
        yield _entry(origin, record, content)


def entry_of(connection: Connection, origin: str) -> Entry | None:
    """The record of one origin, None where the store has none."""
    query = text(_ENTRIES.format(where="WHERE r.origin = :origin"))
    row = connection.execute(query, {"origin": origin}).first()
    return None if row is None else _entry(*row)


def records_of(connection: Connection, origins: Iterable[str]) -> Mapping[str, RobotsRecord]:
    """The records of these origins without their texts, as far as they can be read."""
    found = {}
    for origin, data in select_in(connection, _RECORDS, origins):
        with suppress(RecordUnreadable):
            found[origin] = load(data)
    return found


def robots_origin(queue: str) -> str:
    """The origin whose robots.txt holds for a queue: one with a download slot names it in brackets."""
    return queue.partition(" (")[0]


def _entry(origin: str, data: str, content: bytes | None) -> Entry:
    try:
        record = load(data, content)
    except RecordUnreadable as error:
        return Entry(origin, None, str(error))
    if record.has_copy and content is None:
        return Entry(origin, None, f"the text with the digest {record.digest} is missing")
    return Entry(origin, reread(record))
