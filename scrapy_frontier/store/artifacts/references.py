"""What the ledger names of the artifacts, read in pages; and the sweep of those that it does not name."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import text

from scrapy_frontier.errors import ArtifactError, ConfigError
from scrapy_frontier.store.artifacts.content import Artifacts
from scrapy_frontier.store.artifacts.records import ResponseRecord
from scrapy_frontier.store.artifacts.sweep import GRACE_S, Swept, sweep

if TYPE_CHECKING:
    from scrapy_frontier.store.opening import Store

PAGE: Final = 5_000
"""References read in one short snapshot."""

_OWNERS: Final = "stores"

_NAMED: Final = (
    "SELECT t.seq, t.identity_id, t.evidence, a.payload FROM transition AS t"
    " LEFT JOIN attempt AS a ON a.attempt_id = t.attempt_id"
    " WHERE {only} t.evidence IS NOT NULL AND t.seq > :last ORDER BY t.seq LIMIT :limit"
)
_OF_RUN: Final = "t.context_id IN (SELECT context_id FROM context WHERE run_id = {run:d}) AND"


class Named(NamedTuple):
    """One reference: the transition, its identity, the digest it names, and that of the attempt's body."""

    seq: int
    identity_id: int
    digest: bytes
    payload: bytes | None


def references(store: Store, run_id: int | None = None) -> Iterator[list[Named]]:
    """Every transition that names evidence, in pages, each read in a snapshot of its own."""
    only = "" if run_id is None else _OF_RUN.format(run=run_id)
    query, last = text(_NAMED.format(only=only)), 0
    while True:
        with store.reader() as connection:
            rows = connection.execute(query, {"last": last, "limit": PAGE}).all()
        if not rows:
            return
        last = rows[-1].seq
        yield [
            Named(row.seq, row.identity_id, bytes(row.evidence), row.payload and bytes(row.payload))
            for row in rows
        ]


def claim(store: Store, artifacts: Artifacts) -> None:
    """Write into the place which store keeps its evidence there. Raises `ArtifactError` where it cannot be written."""
    artifacts.place.put(_owner_of(store), b"")


def sweep_orphans(
    store: Store,
    artifacts: Artifacts,
    now: float,
    grace_s: float = GRACE_S,
    *,
    dry_run: bool = False,
) -> Swept:
    """Remove the artifacts that no transition of the store names, once they are older than the grace period.

    A crawl may go on meanwhile. Raises `ConfigError` where another store keeps evidence in the same place, for what
    that one names would look like orphans.
    """
    owners = {
        kept.name for kept in artifacts.place.listing() if kept.name.startswith(f"{_OWNERS}/")
    }
    if others := owners - {_owner_of(store)}:
        raise ConfigError(
            f"{artifacts.url} holds the evidence of other stores too ({', '.join(sorted(others))}): nothing is swept"
            " there; if those stores are gone, remove their marks"
        )
    with _Names() as names:
        names.add(_unapplied(store))
        for rows in references(store):
            names.add(_digests(artifacts, rows))
        return sweep(artifacts, names.among, now, grace_s, dry_run=dry_run)


def _unapplied(store: Store) -> list[bytes]:
    """Bodies of results that came too late or contradict the first one: the ledger has their digests alone."""
    query = "SELECT payload FROM late UNION SELECT payload FROM quarantine"
    with store.reader() as connection:
        return [bytes(payload) for payload in connection.scalars(text(query)) if payload]


def _owner_of(store: Store) -> str:
    with store.reader() as connection:
        created = connection.scalar(text("SELECT value FROM meta WHERE key = 'created_ms'"))
    return f"{_OWNERS}/{created}"


def _digests(artifacts: Artifacts, rows: Iterable[Named]) -> Iterator[bytes]:
    """All that a reference needs: the record and its bodies."""
    for row in rows:
        yield row.digest
        if row.payload is not None:
            yield row.payload
        try:
            record = ResponseRecord.load(artifacts.get(row.digest))
        except ArtifactError:
            continue  # verify tells of it; what it named cannot be known
        for body in record.bodies:
            yield bytes.fromhex(body.digest)


class _Names:
    """A set of digests in a temporary file, for those of a large store do not fit into memory."""

    def __enter__(self) -> _Names:
        self._folder = tempfile.TemporaryDirectory(prefix="frontier-")
        self._database = sqlite3.connect(f"{self._folder.name}/names")
        self._database.execute("CREATE TABLE name(digest BLOB PRIMARY KEY) WITHOUT ROWID")
        return self

    def add(self, digests: Iterable[bytes]) -> None:
        rows = ((digest,) for digest in digests)
        self._database.executemany("INSERT OR IGNORE INTO name VALUES (?)", rows)

    def among(self, digests: Collection[bytes]) -> set[bytes]:
        query = "SELECT 1 FROM name WHERE digest = ?"
        with closing(self._database.cursor()) as cursor:
            return {one for one in digests if cursor.execute(query, (one,)).fetchone()}

    def __exit__(self, *_error: object) -> None:
        self._database.close()
        self._folder.cleanup()
