"""A ledger to report on, written message by message by the store's own applier."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rough import change
from sqlalchemy import Connection, text

from scrapy_frontier.frontier.runs import OpenRun
from scrapy_frontier.identity.keys import fetch_key
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.identity.origins import origin_of
from scrapy_frontier.report import Coverage, coverage
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.messages import (
    Dispatch,
    Emission,
    Finding,
    Known,
    Lease,
    Message,
    Move,
    Reason,
    Reference,
    Rejected,
    Retry,
    Source,
    Verdict,
)
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.rows import cursor_of

START_MS = 1_764_550_000_000
"""2025-12-01 00:46:40 UTC"""

ADMITTED = Verdict(Event.ENQUEUE, Reason("admission.scope"))

NOBODY = Source()


class Ledger:
    """One run in one store, and the verbs of a crawl."""

    def __init__(
        self, place: Path | str | None = None, *, name: str = "nightly", spider: str = "docs"
    ) -> None:
        self.url = f"sqlite:///{place}" if isinstance(place, Path) else place or "sqlite://"
        self.store: Store = open_store(self.url, create=True)
        self._clock = itertools.count(START_MS, 1000)
        self.run_id = 0
        self.begin(name, spider)

    def begin(self, name: str, spider: str = "docs") -> int:
        """Begin a new run, and a session of it; further verbs speak of it."""
        self.run_id = self._next("run", "run_id")
        self._insert(
            "INSERT INTO policy SELECT 1, 'p1digest', '{}', :now WHERE NOT EXISTS"
            " (SELECT 1 FROM policy)",
            now=self.now(),
        )
        self._insert(
            "INSERT INTO run VALUES (:run, :name, :spider, 'running', :now, NULL, NULL, NULL, 1)",
            run=self.run_id,
            name=name,
            spider=spider,
            now=self.now(),
        )
        self.open_session()
        return self.run_id

    def open_session(self) -> None:
        """A process begins to work on the run."""
        session = self._next("session", "session_id")
        self._insert(
            "INSERT INTO session VALUES (:session, :run, :worker, 1, :now, NULL, '{}')",
            session=session,
            run=self.run_id,
            worker=f"host:{100 + session}",
            now=self.now(),
        )
        self._insert(
            "INSERT INTO context VALUES (:session, :run, 1, :session)",
            session=session,
            run=self.run_id,
        )
        self._applier = Applier(self.run_id, session, session)
        with self.store.writer_connection().begin() as _:
            self._applier.load(cursor_of(self.store.writer_connection()))

    def resume(self, run: OpenRun) -> None:
        """Speak of a run that was opened as a crawl opens it."""
        self.run_id = run.run_id
        self._applier = Applier(run.run_id, run.context_id, run.session_id)
        with self.store.writer_connection().begin():
            self._applier.load(cursor_of(self.store.writer_connection()))

    def close(self, state: str = "finished", reason: str = "exhausted") -> None:
        """The run's process ends as it should."""
        self._insert(
            "UPDATE run SET state = :state, stop_reason = :reason, stop_detail = '{\"by\": 1}',"
            " finished_ms = :now WHERE run_id = :run",
            state=state,
            reason=reason,
            now=self.now(),
            run=self.run_id,
        )
        self._insert(
            "UPDATE session SET ended_ms = :now WHERE run_id = :run AND ended_ms IS NULL",
            now=self.now(),
            run=self.run_id,
        )

    def now(self) -> int:
        """A time that moves on by a second at each call."""
        return next(self._clock)

    def send(self, *messages: Message) -> None:
        """Apply messages in one transaction."""
        connection = self.store.writer_connection()
        with connection.begin():
            batch = self._applier.apply(cursor_of(connection), messages)
        self._applier.keep(batch)
        for callback, answer in batch.committed.answers:
            callback(answer)

    def refer(
        self,
        url: str,
        *,
        page: Source = NOBODY,
        kind: ReferenceKind = ReferenceKind.LINK,
        verdict: Verdict = ADMITTED,
        due_ms: int = 0,
        is_visit: bool = False,
    ) -> int:
        """A reference to `url`; returns the identity."""
        known: list[Known] = []
        self.send(
            Reference(
                key=fetch_key("GET", url),
                method="GET",
                url=url,
                origin=str(origin_of(url)),
                partition=0,
                source=page,
                kind=kind,
                depth=0,
                record="{}",
                rank=0,
                due_ms=due_ms,
                verdict=verdict,
                at_ms=self.now(),
                is_visit=is_visit,
                on_commit=known.append,
            )
        )
        return known[0].identity_id

    def seed(self, url: str) -> int:
        """A start URL."""
        return self.refer(url, kind=ReferenceKind.SEED)

    def exclude(self, url: str, rule: str, *, page: Source = NOBODY) -> int:
        """A reference that a rule excludes."""
        return self.refer(url, page=page, verdict=Verdict(Event.EXCLUDE, Reason(rule)))

    def exclude_with(self, url: str, rule: str, detail: str) -> int:
        """A reference that a rule excludes, with what it was decided from."""
        return self.refer(url, verdict=Verdict(Event.EXCLUDE, Reason(rule, detail)))

    def emit(
        self,
        page: Source,
        *,
        targets: tuple[int, ...] = (),
        rejected: tuple[tuple[str, str], ...] = (),
        observations: tuple[tuple[int, str], ...] = (),
        kind: ReferenceKind = ReferenceKind.LINK,
    ) -> None:
        """Further references to known identities, and rejected ones."""
        found = [Rejected(code, observed) for code, observed in rejected]
        self.send(Emission(page, kind, targets, 0, found, observations))

    def dispatch(self, identity_id: int) -> Lease:
        """Hand an identity to a worker."""
        lease = Lease(identity_id)
        self.send(Dispatch(lease, self.now(), Reason("politeness.interval")))
        return lease

    def respond(self, lease: Lease, status: int = 200, size: int = 1000) -> Source:
        """The response is in; returns the page as a source of references."""
        finding = Finding(f"http.{status}", status, size)
        self.send(Move(lease, Event.RESPOND, Reason(f"http.{status}"), self.now(), None, finding))
        return Source(lease.identity_id, lease.attempt_id)

    def process(
        self,
        lease: Lease,
        disposition: Disposition = Disposition.SUCCEEDED,
        event: Event = Event.PROCESS,
        reason: str = "page.processed",
    ) -> None:
        """The page comes to its end."""
        self.send(Move(lease, event, Reason(reason), self.now(), disposition))

    def fetch(self, identity_id: int, status: int = 200, size: int = 1000) -> Source:
        """Dispatch and respond; `finish` ends the page."""
        self._lease = self.dispatch(identity_id)
        return self.respond(self._lease, status, size)

    def finish(self) -> None:
        """End the page that `fetch` opened."""
        self.process(self._lease)

    def retry(self, lease: Lease, code: str = "download.timeout", due_ms: int = 0) -> None:
        """The attempt failed and another follows, at once or when due."""
        now = self.now()
        self.send(Retry(lease, Reason(code), now, due_ms, "{}", 0, Finding(code)))

    def give_up(self, lease: Lease, code: str = "download.timeout") -> None:
        """The attempt failed and none follows."""
        reason = Reason(code, '{"times": 2}')
        self.send(Move(lease, Event.GIVE_UP, reason, self.now(), Disposition.FAILED, Finding(code)))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A snapshot, as commands read it."""
        with self.store.reader() as connection:
            yield connection

    def tamper(self, statement: str, **values: object) -> None:
        """What no part of the package does: change rows, the ledger's included."""
        change(self.store, statement, **values)

    @staticmethod
    def reopen(path: Path) -> Store:
        """The store at `path`, as commands open it."""
        return open_store(f"sqlite:///{path}", read_only=True)

    def _insert(self, statement: str, **values: object) -> None:
        connection = self.store.writer_connection()
        with connection.begin():
            connection.execute(text(statement), values)

    def _next(self, table: str, column: str) -> int:
        with self.store.reader() as connection:
            query = text(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}")
            return int(connection.scalar(query) or 0)


def account_of(ledger: Ledger, *, is_live: bool | None = None) -> Coverage:
    """The report of the ledger's run."""
    with ledger.read() as connection:
        return coverage(connection, ledger.run_id, is_live=is_live)


def crawl(ledger: Ledger) -> None:
    """A small crawl in which everything happens: links, exclusions, redirects, retries, failures."""
    home = ledger.seed("http://a.example/")
    page = ledger.fetch(home, size=500)
    moved = ledger.refer("http://a.example/moved", page=page)
    broken = ledger.refer("http://a.example/broken", page=page)
    foreign = ledger.exclude("http://b.example/", "scope.origin", page=page)
    ledger.refer("http://a.example/later", page=page, due_ms=START_MS * 2)
    ledger.emit(
        page,
        targets=(home, moved, moved),
        rejected=(("scheme.unsupported", "mailto:x@y"), ("scheme.unsupported", "tel:1")),
    )
    ledger.refer("http://b.example/", page=page)
    ledger.finish()
    lease = ledger.dispatch(moved)
    hop = ledger.respond(lease, 301, 0)
    ledger.emit(hop, targets=(home, foreign), kind=ReferenceKind.REDIRECT)
    ledger.process(lease, Disposition.REDIRECTED, Event.REDIRECT, "http.301")
    ledger.retry(ledger.dispatch(broken))
    ledger.give_up(ledger.dispatch(broken))
