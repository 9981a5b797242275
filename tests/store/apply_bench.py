"""An applier on a store with one run open, and the verbs of a crawl."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from scrapy_frontier.frontier.runs import OpenRun, open_run, transaction
from scrapy_frontier.identity.keys import fetch_key
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report import Coverage, coverage
from scrapy_frontier.report.verify import verify
from scrapy_frontier.states import DISPOSITIONS, Disposition, Event, State
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.messages import (
    Committed,
    Dispatch,
    Finding,
    Known,
    Lease,
    Message,
    Move,
    Reason,
    Reference,
    Source,
    Verdict,
)
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.rows import cursor_of

NOW = 1_764_550_000_000
ADMITTED = Verdict(Event.ENQUEUE, Reason("admission.scope"))
EXCLUDED = Verdict(Event.EXCLUDE, Reason("scope.path"))
LINK = int(ReferenceKind.LINK)
SEED = int(ReferenceKind.SEED)


def _has_faulty_sqlite() -> bool:
    with open_store("sqlite://", create=True) as store:
        return store.library.has_wal_reset_fault


needs_two_writers = pytest.mark.skipif(
    _has_faulty_sqlite(),
    reason="an SQLite with the WAL-reset fault lets one process write at a time",
)


class Bench:
    """An applier on a store, with one run open."""

    def __init__(self, store: Store, run: OpenRun | None = None) -> None:
        self.store = store
        with transaction(store, "opening a run") as connection:
            self.run = open_run(
                connection,
                run.run_id if run is not None else None,
                spider="spider",
                name="run",
                policy={},
                versions={},
            )
        self.applier = Applier(self.run.run_id, self.run.context_id, self.run.session_id)
        self.load()

    def load(self) -> None:
        """Read ids and codes anew, as the writer does when others have written."""
        with transaction(self.store, "loading") as connection:
            self.applier.load(cursor_of(connection))

    def apply(self, *messages: Message) -> Committed:
        """Apply the messages in one transaction, and give the answers."""
        with transaction(self.store, "applying") as connection:
            self.applier.refresh(self.store)
            batch = self.applier.apply(cursor_of(connection), messages)
        self.applier.keep(batch)
        for answer, value in batch.committed.answers:
            answer(value)
        return batch.committed

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The answer of the store."""
        with self.store.reader() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def state(self, identity_id: int) -> State:
        """Where an identity stands."""
        return State(
            self.rows(f"SELECT state FROM current WHERE identity_id = {identity_id}")[0][0]
        )

    def events(self, identity_id: int) -> list[str]:
        """The life of an identity."""
        found = self.rows(
            f"SELECT event FROM transition WHERE identity_id = {identity_id} ORDER BY seq"
        )
        return [Event(row[0]).label for row in found]

    @property
    def account(self) -> Coverage:
        """The report of the run."""
        with self.store.reader() as connection:
            return coverage(connection, self.run.run_id)

    def assert_sound(self) -> None:
        """The audit finds nothing, and the account adds up."""
        assert verify(self.store).findings == ()
        assert self.account.reconciled, self.account.failed_equations

    # A crawl in verbs

    def refer(self, path: str, **fields: Any) -> Known:
        """A reference of its own transaction; the answer."""
        known: list[Known] = []
        self.apply(reference(path, on_commit=known.append, **fields))
        return known[0]

    def dispatch(self, identity_id: int, *, is_direct: bool = False) -> Lease:
        """A lease that was granted."""
        lease = Lease(identity_id)
        granted: list[bool] = []
        self.apply(Dispatch(lease, NOW, Reason("band.0"), granted.append, is_direct=is_direct))
        assert granted == [True]
        return lease

    def move(
        self,
        lease: Lease,
        event: Event,
        disposition: Disposition | None = None,
        finding: Finding | None = None,
    ) -> bool:
        """Whether a move was applied."""
        applied: list[bool] = []
        self.apply(
            Move(lease, event, Reason("a.reason"), NOW, disposition, finding, applied.append)
        )
        return applied[0]

    def fetch(self, path: str) -> tuple[Lease, Source]:
        """A page that has been answered and is being processed."""
        lease = self.dispatch(self.refer(path).identity_id)
        self.respond(lease)
        return lease, Source(lease.identity_id, lease.attempt_id)

    def respond(self, lease: Lease, payload: bytes = b"1" * 32) -> bool:
        """The response is in."""
        return self.move(lease, Event.RESPOND, None, Finding("http.200", 200, 10, payload))

    def fetch_again(self, lease: Lease, *, is_direct: bool = False) -> Lease:
        """Dispatch the identity of an old lease, and respond; the new lease."""
        again = self.dispatch(lease.identity_id, is_direct=is_direct)
        assert self.respond(again)
        return again

    def finish(self, lease: Lease) -> bool:
        """The page ends well."""
        return self.move(lease, Event.PROCESS, Disposition.SUCCEEDED)


def reference(path: str, **fields: Any) -> Reference:
    """A reference to a page of one site."""
    url = f"http://a.example/{path}"
    values: dict[str, Any] = {
        "key": fetch_key("GET", url),
        "method": "GET",
        "url": url,
        "origin": "http://a.example",
        "partition": 0,
        "source": Source(),
        "kind": LINK,
        "depth": 0,
        "record": "{}",
        "rank": 0,
        "due_ms": 0,
        "verdict": ADMITTED,
        "at_ms": NOW,
    }
    return Reference(**{**values, **fields})


TABLES = (
    "transition",
    "identity",
    "current",
    "visit",
    "attempt",
    "seed",
    "origin",
    "rejection",
    "reason",
    "tally",
)


def dump(bench: Bench) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that the messages have made; emissions added up by page, for grouping cuts them."""
    found = {table: sorted(bench.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES}
    found["emission"] = bench.rows(
        "SELECT source_id, attempt_id, kind, sum(total), sum(fresh), sum(duplicates), sum(excluded),"
        " sum(rejected) FROM emission GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    return found


def disposition_of(event: Event) -> Disposition | None:
    """One that the event may give, if it must give one."""
    return min(DISPOSITIONS[event]) if event in DISPOSITIONS else None
