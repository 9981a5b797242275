"""The world of the model: one process at a time on a real store, its workers alive and dead, and everything that can
happen to them, each as a method whose numbers say to whom.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store.messages import (
    Dispatch,
    Emission,
    Expire,
    Finding,
    Known,
    Lease,
    Move,
    Reason,
    Reclaimed,
    Renew,
    Retry,
    Source,
    Transit,
)

from .checks import Book
from .process import CRASH_POINTS, LEASE_S, Clock, Crashed, Process, remove
from .web import NOBODY, PAGES, reference, servers, url_of

START: Final = 1_800_000_000.0
HELD: Final = Reason("budget.family")
OK: Final = Reason("http.200")


@dataclass(eq=False)
class Work:
    """One attempt as its worker sees it."""

    lease: Lease
    origin_id: int
    gate_key: str
    phase: str = "sent"
    """sent, granted, wire, answered, captured, ended; or refused."""
    payload: bytes = b""
    is_lost: bool = False
    is_dead: bool = False
    """Whether its process is gone; its messages may still arrive."""

    @property
    def source(self) -> Source:
        """Its page as a source of references."""
        return Source(self.lease.identity_id, self.lease.attempt_id)


class World:
    """Everything there is. Each step ends with all invariants checked."""

    def __init__(self, folder: Path, luck: random.Random) -> None:
        self.folder = folder
        self.luck = luck
        self.clock = Clock(START)
        self.policy = 0
        self.servers = servers()
        self.book = Book()
        self.works: list[Work] = []
        self.counts: dict[str, int] = {}
        self.adds_up_each = 1
        """The account is added up at each so many looks; it costs more than all the rest."""
        self._looks = 0
        self._stores = 0
        self._seen: tuple[int, int, int] | None = None
        self.process = self._open(folder / "store0.db")

    def _open(self, path: Path) -> Process:
        self.process = Process(path, self.clock, self.policy, self.luck.randrange(2**30))
        return self.process

    @property
    def now_ms(self) -> int:
        """The time as the process has it."""
        return round(self.clock.now() * 1000)

    def count(self, name: str) -> None:
        """What happened, for the figures of a run."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def inspect(self, *, wholly: bool = False) -> None:
        """Check all invariants; where nothing was committed since, there is nothing new to see."""
        assert self.process.applier.refused == 0, "an illegal move was tried"
        seen = (self._stores, self.process.run.session_id, self.process.commits)
        if seen == self._seen and not wholly:
            return
        self._seen = seen
        self._looks += 1
        adds_up = self._looks % self.adds_up_each == 0
        run_id = self.process.run.run_id
        self.book.inspect(self.process.store, run_id, adds_up=adds_up, wholly=wholly)

    def _one(self, number: int, *phases: str, is_dead: bool | None = False) -> Work | None:
        found = [
            work for work in self.works if work.phase in phases and is_dead in (None, work.is_dead)
        ]
        return found[number % len(found)] if found else None

    # References

    def refer(self, page: int, how: int) -> None:
        """A seed, a link, a visit, or a page that is not wanted before a time."""
        due_ms = self.now_ms + 20_000 if how % 6 == 1 else 0
        self._refer(page, NOBODY, due_ms=due_ms, is_visit=how % 4 == 0)

    def yield_child(self, which: int, page: int) -> None:
        """A callback yields a link, also one of a page that was lost meanwhile."""
        work = self._one(which, "captured", is_dead=None)
        if work is not None:
            self._refer(page, work.source)

    def _refer(
        self,
        page: int,
        source: Source,
        kind: ReferenceKind = ReferenceKind.LINK,
        *,
        due_ms: int = 0,
        is_visit: bool = False,
    ) -> None:
        self.process.writer.send(
            reference(
                page % PAGES,
                self.policy,
                self.now_ms,
                source=source,
                kind=kind,
                due_ms=due_ms,
                is_visit=is_visit,
                on_commit=partial(self._known, page % PAGES),
            )
        )

    def _known(self, page: int, known: Known) -> None:
        self.book.known[url_of(page)] = known.identity_id

    # An attempt

    def hand_out(self, more: int = 0) -> None:
        """The schedule gives the next URLs, as far as there are some."""
        for _ in range(1 + more % 3):
            self._hand_out()
        if more % 2:
            self.process.commit(50)

    def _hand_out(self) -> None:
        pick = self.process.dispatch.next()
        if pick is None:
            return
        work = Work(Lease(pick.head.identity_id), pick.head.origin_id, pick.gate_key)
        self.works.append(work)
        granted = partial(self._granted, self.process, work)
        self.process.writer.send(Dispatch(work.lease, self.now_ms, pick.reason, granted))

    def _granted(self, process: Process, work: Work, is_granted: bool) -> None:
        if not is_granted:
            work.phase = "refused"
            process.dispatch.cancel(work.gate_key)
            return
        work.phase = "granted"
        self.count("attempts")
        self.book.promise(work.lease.attempt_id, Event.DISPATCH)
        number = work.lease.identity_id
        assert work.lease.generation > self.book.generations.get(number, 0), "invariant 3"
        self.book.generations[number] = work.lease.generation

    def start(self, which: int) -> None:
        """A request goes on the wire."""
        work = self._one(which, "granted")
        if work is None or work.is_lost:
            return
        self.process.dispatch.charge(work.gate_key, work.origin_id)
        self.servers[work.gate_key].start(self.clock.true)
        work.phase = "wire"

    def _leave_wire(self, work: Work) -> None:
        if work.phase == "wire" and not work.is_dead:
            self.servers[work.gate_key].end(self.clock.true)
            self.process.dispatch.release(work.gate_key, work.origin_id)
        elif work.phase == "granted" and not work.is_dead:
            self.process.dispatch.cancel(work.gate_key)

    def answer(self, which: int) -> None:
        """A response arrives, in time or not."""
        work = self._one(which, "wire")
        if work is None:
            return
        self._leave_wire(work)
        work.phase, work.payload = "answered", self.luck.randbytes(32)
        self._respond(work, work.payload, is_first=True)

    def _respond(self, work: Work, payload: bytes, *, is_first: bool) -> None:
        finding = Finding("http.200", 200, 1, payload)
        told = partial(self._responded, work, payload, is_first)
        self.process.writer.send(
            Move(work.lease, Event.RESPOND, OK, self.now_ms, None, finding, told)
        )

    def _responded(self, work: Work, payload: bytes, is_first: bool, is_applied: bool) -> None:
        attempt = work.lease.attempt_id
        if is_applied:
            before = self.book.payloads.setdefault(attempt, payload)
            assert before == payload, "invariant 6: a conflicting result was accepted"
            self.book.promise(attempt, Event.RESPOND)
        elif is_first:
            assert work.is_lost or work.is_dead, "a result in time was refused"
        if is_first and work.phase == "answered":
            work.phase = "captured" if is_applied else "ended"

    def fail(self, which: int, how: int) -> None:
        """A download fails: tried again, now or later, or given up."""
        work = self._one(which, "wire")
        if work is None:
            return
        self._leave_wire(work)
        work.phase = "ended"
        finding = Finding("download.timeout")
        if how % 3 == 2:
            reason = Reason("download.timeout")
            ended = Disposition.FAILED
            self.process.writer.send(
                Move(work.lease, Event.GIVE_UP, reason, self.now_ms, ended, finding)
            )
            return
        due_ms = self.now_ms + 5_000 if how % 3 else 0
        reason = Reason("retry.download.timeout")
        self.process.writer.send(Retry(work.lease, reason, self.now_ms, due_ms, "{}", 1, finding))

    def drop(self, which: int) -> None:
        """A middleware drops a request before it goes out."""
        work = self._one(which, "granted")
        if work is None:
            return
        self._leave_wire(work)
        work.phase = "ended"
        reason = Reason("request.ignored")
        finding = Finding("request.ignored")
        self.process.writer.send(
            Move(work.lease, Event.EXCLUDE, reason, self.now_ms, None, finding)
        )

    def finish(self, which: int, how: int) -> None:
        """A page ends; what it yielded was sent before."""
        work = self._one(which, "captured")
        if work is None:
            return
        work.phase = "ended"
        if how % 5 == 0:
            known = self.book.known.values()
            targets = sorted(known)[:3]
            self.process.writer.send(Emission(work.source, int(ReferenceKind.LINK), targets, 0))
        told = partial(self._ended, work, Event.PROCESS)
        ended = Disposition.SUCCEEDED
        self.process.writer.send(
            Move(work.lease, Event.PROCESS, OK, self.now_ms, ended, on_commit=told)
        )

    def redirect(self, which: int, page: int) -> None:
        """A page leads elsewhere: the hop first, then the end."""
        work = self._one(which, "captured")
        if work is None:
            return
        self._refer(page, work.source, ReferenceKind.REDIRECT)
        work.phase = "ended"
        told = partial(self._ended, work, Event.REDIRECT)
        reason, ended = Reason("redirect.302"), Disposition.REDIRECTED
        self.process.writer.send(
            Move(work.lease, Event.REDIRECT, reason, self.now_ms, ended, on_commit=told)
        )

    def _ended(self, work: Work, event: Event, is_applied: bool) -> None:
        assert is_applied or work.is_lost or work.is_dead, "the end of a page was refused"
        if is_applied:
            self.book.promise(work.lease.attempt_id, event)

    # Leases

    def tick(self, tenths: int) -> None:
        """Time passes."""
        self.clock.true += tenths / 10

    def renew(self, which: int) -> None:
        """A worker shows that it is at work."""
        work = self._one(which, "granted", "wire", "captured", is_dead=None)
        if work is not None:
            self.process.writer.send(Renew([work.lease], self.now_ms))

    def expire(self, seconds: int) -> None:
        """Leases whose time is over are taken back."""
        self.clock.true += seconds % (2 * LEASE_S)
        self.process.writer.send(Expire(self.now_ms, self._reclaimed))

    def _reclaimed(self, found: list[Reclaimed]) -> None:
        taken = {lease.attempt_id for lease in found}
        for work in self.works:
            if work.lease.attempt_id in taken:
                self.count("reclaimed")
                work.is_lost = True
                # Its transfer is ended at once; what it has sent to the writer is under way all the same.
                if work.phase in ("granted", "wire") and not work.is_dead:
                    self._leave_wire(work)
                    work.phase = "ended"

    def redeliver(self, which: int) -> None:
        """A response comes a second time, from the living or the dead."""
        work = self._one(which, "captured", "ended", is_dead=None)
        if work is not None and work.payload:
            self.count("redelivered")
            self._respond(work, work.payload, is_first=False)

    def conflict(self, which: int) -> None:
        """A response comes again with other bytes."""
        work = self._one(which, "captured", "ended", is_dead=None)
        if work is not None and work.lease.attempt_id in self.book.payloads:
            self.count("conflicting")
            self._respond(work, self.luck.randbytes(32), is_first=False)

    def late(self, which: int, how: int) -> None:
        """A worker that has lost its lease brings something after all."""
        lost = [work for work in self.works if work.is_lost or work.is_dead]
        lost = [work for work in lost if work.phase not in ("sent", "refused", "answered")]
        if not lost:
            return
        work = lost[which % len(lost)]
        self.count("late")
        if how % 3 == 0:
            self._respond(work, work.payload or b"late" * 8, is_first=False)
        elif how % 3 == 1:
            ended = Disposition.SUCCEEDED
            self.process.writer.send(Move(work.lease, Event.PROCESS, OK, self.now_ms, ended))
        else:
            reason = Reason("retry.http.503")
            self.process.writer.send(Retry(work.lease, reason, self.now_ms, 0, "{}", 0))

    # Brakes

    def defer(self, page: int) -> None:
        """A brake holds a URL that waits."""
        self._transit(page, State.SCHEDULED, Event.DEFER)

    def release(self, page: int) -> None:
        """The brake lets it go."""
        self._transit(page, State.DEFERRED, Event.RELEASE)

    def _transit(self, page: int, state: State, event: Event) -> None:
        number = self.book.known.get(url_of(page % PAGES))
        if number is None or self.process.queued or self.book.folds[number].state is not state:
            return
        if any(w.lease.identity_id == number and w.phase == "sent" for w in self.works):
            return
        self.process.writer.send(Transit([number], event, HELD, self.now_ms))
        self.process.commit(1)

    # The process

    def commit(self, limit: int) -> None:
        """The writer commits a group."""
        self.process.commit(1 + limit % 7)

    def crash(self, point: int, cut: int, policy: int, back: int) -> None:
        """Power is cut in, or after, the next transaction; the run is resumed from what is left on the disk."""
        synced = self.process.wal_size()
        where = CRASH_POINTS[point % len(CRASH_POINTS)]
        try:
            self.process.commit(1 + cut % 7, where)
        except Crashed:
            self.count(f"crash at {where}")
        else:
            synced = self.process.wal_size()
            self.count("crash between transactions")
        self._stores += 1
        old, new = self.process.path, self.folder / f"store{self._stores}.db"
        self.process.image(new, synced, cut % 101 / 100, self.luck)
        self.process.die()
        remove(old)
        self._bury()
        self._resume(new, policy, back)

    def close(self, policy: int, back: int) -> None:
        """The process ends in order, and the run is resumed."""
        self.process.close()
        self.count("clean stop")
        self._bury()
        self._resume(self.process.path, policy, back)

    def _bury(self) -> None:
        for work in self.works:
            if work.phase == "wire" and not work.is_dead:
                self.servers[work.gate_key].end(self.clock.true)
            if not work.lease.generation or work.phase == "sent":
                work.phase = "refused"
            elif work.phase == "answered":
                # Whether its result was committed, nobody knows.
                work.phase = "ended"
            work.is_dead = True

    def _resume(self, path: Path, policy: int, back: int) -> None:
        if policy % 4 == 0:
            self.policy = 1 - self.policy
        if back % 3 == 0:
            self.clock.wrong_by -= back % 100
        self._open(path)
        self.book.reopened(self.process.store)
        self.inspect(wholly=self.adds_up_each == 1 or self._stores % 3 == 1)

    def settle(self) -> None:
        """Let it all come to its end: nothing that was admitted may be left, and nothing may be stuck (promise 1)."""
        for _ in range(2000):
            process = self.process
            process.commit(50)
            before = len(self.works)
            self.hand_out()
            process.commit(50)
            self.start(0)
            self.answer(0)
            process.commit(50)
            self.finish(0, 1)
            process.commit(50)
            if len(self.works) > before or self._one(0, "sent", "granted", "wire", "captured"):
                continue
            delay_s = process.dispatch.next_delay_s()
            if delay_s is None and not process.queued:
                break
            self.clock.true += max(0.05, delay_s or 0.0)
        self.inspect(wholly=True)
        at_rest = (State.TERMINAL, State.SUPPRESSED, State.DEFERRED)
        left = {n: fold for n, fold in self.book.folds.items() if fold.state not in at_rest}
        assert not left, f"promise 1: left over at the end: {left}"
