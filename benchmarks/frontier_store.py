"""Life cycles through the store's writer, without Scrapy."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable

from benchmarks.bare_sqlite import page_url
from benchmarks.process_figures import Spent, Stopwatch
from scrapy_frontier.frontier.runs import open_run, transaction
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.messages import (
    Committed,
    Dispatch,
    Finding,
    Known,
    Lease,
    Move,
    Reason,
    Reference,
    Source,
    Verdict,
)
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.writer import Writer


def write_lives(url: str, lives: int, under_way: int) -> tuple[int, Spent]:
    """Take so many URLs through the store's writer from reference to end. Return the number of
    commits and what they took, opening and closing left out.
    """
    return asyncio.run(_Lives(url, lives, under_way).run())


class _Lives:
    """Keeps `under_way` life cycles going: each answer of the writer sends the next message."""

    def __init__(self, url: str, lives: int, under_way: int) -> None:
        self._url = url
        self._numbers = iter(range(1, lives + 1))
        self._left = lives
        self._under_way = under_way

    async def run(self) -> tuple[int, Spent]:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        with open_store(self._url, create=True) as store:
            with transaction(store, "opening a run") as connection:
                run = open_run(
                    connection, None, spider="benchmark", name=None, policy={}, versions={}
                )
            applier = Applier(run.run_id, run.context_id, run.session_id)
            self._writer = Writer(
                store,
                applier,
                post=self._post,
                deliver=self._deliver,
                failed=self._ended.set_exception,
            )
            stopwatch = Stopwatch()
            self._writer.start()
            for _ in range(self._under_way):
                self._discover_next()
            await self._ended
            spent = stopwatch.read()
            self._writer.stop()
        return self._writer.vitals.commits, spent

    def _post(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)

    def _deliver(self, committed: Committed) -> None:
        for answer, value in committed.answers:
            answer(value)

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def _discover_next(self) -> None:
        number = next(self._numbers, 0)
        if not number:
            return
        url = page_url(number)
        reference = Reference(
            key=hashlib.blake2b(url.encode(), digest_size=16).digest(),
            method="GET",
            url=url,
            origin=url[: url.index("/", 8)],
            partition=0,
            source=Source(),
            kind=ReferenceKind.LINK,
            depth=1,
            record=None,
            rank=0,
            due_ms=0,
            verdict=Verdict(Event.ENQUEUE, Reason("")),
            at_ms=self._now_ms(),
            payload=url,
            on_commit=self._dispatch,
        )
        self._writer.send(reference)

    def _dispatch(self, known: Known) -> None:
        lease = Lease(known.identity_id)
        self._writer.send(
            Dispatch(
                lease, self._now_ms(), Reason(""), on_commit=lambda granted: self._finish(lease)
            )
        )

    def _finish(self, lease: Lease) -> None:
        at_ms = self._now_ms()
        finding = Finding("response", 200, 5000, bytes(32))
        self._writer.send(Move(lease, Event.RESPOND, Reason(""), at_ms, finding=finding))
        self._writer.send(
            Move(
                lease,
                Event.PROCESS,
                Reason(""),
                at_ms,
                Disposition.SUCCEEDED,
                on_commit=self._end,
            )
        )

    def _end(self, applied: bool) -> None:
        assert applied
        self._left -= 1
        if not self._left:
            self._ended.set_result(None)
        self._discover_next()
