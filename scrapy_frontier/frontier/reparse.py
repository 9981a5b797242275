"""A run parsed again: the callbacks get the responses that an earlier run has kept, and nothing goes on the wire.

The new run has an identity for each page of the earlier one whose response is on record, with the request it was
fetched by, and one attempt that is answered from evidence. `start()` is not run. What the callbacks yield beyond those
pages is recorded as deferred, by the rule `reparse.offline`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy.exceptions import IgnoreRequest
from sqlalchemy import text

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.errors import ArtifactError, ConfigError, FrontierError
from scrapy_frontier.frontier.recovery import BY_EVIDENCE
from scrapy_frontier.frontier.rendering import RENDERED
from scrapy_frontier.frontier.replays import Replay
from scrapy_frontier.frontier.runs import FINISHED
from scrapy_frontier.identity import Rejection, fetch_key
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.logs import get_logger
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.states import Event, State
from scrapy_frontier.store.messages import (
    Dispatch,
    Head,
    Known,
    Lease,
    Reason,
    Reference,
    Source,
    Verdict,
)

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.store.opening import Store

logger = get_logger(__name__)

PAGE: Final = 200
"""Pages of the earlier run that are read at once."""

AHEAD: Final = 100
"""Replays that wait to be handed out at the most."""

BY_RECORD: Final = Verdict(Event.ENQUEUE, Reason("reparse.recorded"))

OFFLINE: Final = Verdict(Event.DEFER, Reason("reparse.offline"))

NOT_SENT: Final = "frontier: a run that is parsed again sends no request"

# An identity becomes fetched by its response alone, so that stands right before its end.
_KEPT: Final = (
    "SELECT i.identity_id, i.key, i.method, i.url, o.origin, o.partition, i.depth, c.rank,"
    " CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END AS record, r.evidence, e.evidence AS seen"
    " FROM current AS c JOIN identity AS i ON i.identity_id = c.identity_id"
    " JOIN origin AS o ON o.origin_id = i.origin_id"
    " LEFT JOIN visit AS v ON v.visit_id = c.visit_id"
    " JOIN transition AS e ON e.seq = c.last_seq JOIN transition AS r ON r.seq = e.prev_seq"
    f" WHERE c.run_id = :earlier AND c.state = {State.TERMINAL:d} AND r.event = {Event.RESPOND:d}"
    " AND r.evidence IS NOT NULL"
    f" AND i.kind NOT IN ({ReferenceKind.DIRECT:d}, {ReferenceKind.ROBOTS:d})"
    " AND CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END IS NOT NULL"
    " AND c.identity_id > :last ORDER BY c.identity_id LIMIT :limit"
)
_BESIDE: Final = (
    "SELECT r.evidence FROM identity AS i JOIN current AS c ON c.identity_id = i.identity_id"
    " JOIN transition AS e ON e.seq = c.last_seq JOIN transition AS r ON r.seq = e.prev_seq"
    f" WHERE i.run_id = :earlier AND i.key = :key AND r.event = {Event.RESPOND:d}"
)
_WAITING: Final = (
    "SELECT i.key, i.identity_id, i.origin_id FROM identity AS i JOIN current AS c ON c.identity_id = i.identity_id"
    f" WHERE i.run_id = :run AND c.state = {State.ADMITTED:d} AND i.key = :key"
)


class Kept(NamedTuple):
    """A page of the earlier run, and its response."""

    identity_id: int
    key: bytes
    method: str
    url: str
    origin: str
    partition: int
    depth: int
    rank: int
    record: str
    evidence: bytes
    seen: bytes | None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The run that is parsed again."""

    run_id: int
    name: str

    @classmethod
    def find(cls, store: Store, wanted: str, spider: str) -> Earlier:
        """The run that FRONTIER_REPARSE names. Raises `ConfigError` where it is none of this spider."""
        with store.reader() as connection:
            try:
                run_id = find_run(connection, wanted)
            except FrontierError as error:
                raise ConfigError(f"FRONTIER_REPARSE = {wanted!r}: {error}") from error
            query = text("SELECT name, spider, state FROM run WHERE run_id = :run")
            name, of_spider, state = connection.execute(query, {"run": run_id}).one()
        if of_spider != spider:
            raise ConfigError(
                f"FRONTIER_REPARSE = {wanted!r} is a run of spider {of_spider!r}, not of {spider!r}"
            )
        if state != FINISHED:
            logger.warning(
                "Run %s is not finished: what it has not processed yet is not parsed again",
                name,
                extra={"action": "reparse_unfinished"},
            )
        return cls(run_id, name)

    @property
    def new_name(self) -> str:
        """A name for the new run."""
        return f"{self.name}-reparse-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"


class Reparse:
    """Feeds an open run with the pages of an earlier one."""

    def __init__(self, frontier: Frontier, earlier: Earlier) -> None:
        self._frontier = frontier
        self._earlier = earlier
        self._task: asyncio.Task[None] | None = None
        self.without_body: int = 0
        """Responses of the earlier run that cannot be parsed, because their bodies were not kept."""

    @property
    def is_pending(self) -> bool:
        """Whether pages are still to come."""
        return self._task is None or not self._task.done()

    def start(self) -> None:
        """Begin to feed."""
        self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Feed no more: the crawl is being closed."""
        if self._task is not None:
            self._task.cancel()

    async def answer(self, request: Request, attempt: Attempt | None) -> Response:
        """The response to a request that a component issues past the scheduler, from the earlier run's evidence.

        Raises `IgnoreRequest` where there is none: nothing goes on the wire. What is asked for is on record then.
        """
        opened = self._frontier.opened
        resolved = opened.intake.resolve(request)
        if attempt is not None or isinstance(resolved, Rejection) or opened.evidence is None:
            raise IgnoreRequest(NOT_SENT)
        key = fetch_key(request.method, resolved.url, request.body, role="engine")
        digest = await opened.loop.run_in_executor(None, self._evidence_of, key)
        if digest is None:
            opened.intake.refer_direct(request, resolved, None, None, OFFLINE)
            raise IgnoreRequest(NOT_SENT)
        return await opened.loop.run_in_executor(None, opened.evidence.restore, digest)

    def _evidence_of(self, key: bytes) -> bytes | None:
        keeper = self._frontier.opened.evidence
        asked = {"earlier": self._earlier.run_id, "key": key}
        with self._frontier.opened.store.reader() as connection:
            found = connection.scalar(text(_BESIDE), asked)
        return bytes(found) if found and keeper and keeper.is_kept(bytes(found)) else None

    async def _run(self) -> None:
        frontier = self._frontier
        try:
            count = await self._each_page(self._refer)
            logger.info(
                "%d pages of run %s are parsed again; %d have no body on record",
                count,
                self._earlier.name,
                self.without_body,
                extra={"action": "reparse_begun"},
            )
            await self._each_page(self._dispatch)
        except Exception as error:
            frontier.fail(error)
        frontier.opened.waker.wake()

    async def _each_page(self, work: Callable[[list[Kept]], Any]) -> int:
        """Call `work` with one part of the pages after the other; how many there were."""
        loop, last, count = self._frontier.opened.loop, 0, 0
        while part := await loop.run_in_executor(None, self._read, last):
            last = part[-1].identity_id
            count += await work(part)
            await self._frontier.room()
        return count

    def _read(self, last: int) -> list[Kept]:
        asked = {"earlier": self._earlier.run_id, "last": last, "limit": PAGE}
        with self._frontier.opened.store.reader() as connection:
            found = connection.execute(text(_KEPT), asked).all()
        return [Kept(*row) for row in found]

    async def _refer(self, part: list[Kept]) -> int:
        """Make the identities of these pages known, before any callback refers to one."""
        frontier = self._frontier
        whole = await frontier.opened.loop.run_in_executor(None, self._whole, part)
        now_ms = milliseconds(frontier.clock.now())
        settled: asyncio.Future[Known] = frontier.opened.loop.create_future()
        for kept in whole:
            frontier.opened.writer.send(
                Reference(
                    key=bytes(kept.key),
                    method=kept.method,
                    url=kept.url,
                    origin=kept.origin,
                    partition=kept.partition,
                    source=Source(),
                    kind=int(ReferenceKind.ENGINE),
                    depth=kept.depth,
                    record=kept.record,
                    rank=kept.rank,
                    due_ms=0,
                    verdict=BY_RECORD,
                    at_ms=now_ms,
                    is_direct=True,
                    on_commit=settled.set_result if kept is whole[-1] else None,
                )
            )
        if whole:
            await settled
        return len(whole)

    def _whole(self, part: list[Kept]) -> list[Kept]:
        keeper = self._frontier.opened.evidence
        if keeper is None:
            raise ArtifactError("there is no place for evidence: set FRONTIER_ARTIFACTS")
        whole = [kept for kept in part if keeper.is_kept(bytes(kept.evidence))]
        self.without_body += len(part) - len(whole)
        return whole

    async def _dispatch(self, part: list[Kept]) -> int:
        """Take a lease on each page, and let it be handed out with its response."""
        frontier = self._frontier
        opened = frontier.opened
        heads = await opened.loop.run_in_executor(None, self._heads, part)
        for head, evidence in heads:
            while len(opened.replays) >= AHEAD and frontier.error is None:
                await asyncio.sleep(0.01)
            if frontier.error is not None:
                break
            lease = Lease(head.identity_id)
            granted: asyncio.Future[bool] = opened.loop.create_future()
            opened.writer.send(
                Dispatch(
                    lease,
                    milliseconds(frontier.clock.now()),
                    BY_EVIDENCE,
                    on_commit=granted.set_result,
                    is_direct=True,
                    evidence=evidence,
                )
            )
            opened.replays.add_when(granted, Replay(head, lease, evidence), opened.waker.wake)
        return len(heads)

    def _heads(self, part: list[Kept]) -> list[tuple[Head, bytes]]:
        """The pages that wait in the new run, as they are to be handed out."""
        heads = []
        with self._frontier.opened.store.reader() as connection:
            for kept in part:
                asked = {"run": self._frontier.opened.run.run_id, "key": kept.key}
                found = connection.execute(text(_WAITING), asked).first()
                if found is not None:
                    head = Head(
                        found.identity_id,
                        found.origin_id,
                        kept.origin,
                        kept.rank,
                        kept.method,
                        kept.url,
                        kept.record,
                        kept.depth,
                    )
                    heads.append((head, self._shown(kept)))
        return heads

    def _shown(self, kept: Kept) -> bytes:
        """What a page is parsed from: as the wire sent it, but a rendered page as the browser left it."""
        keeper = self._frontier.opened.evidence
        if kept.seen and keeper is not None and keeper.shows(bytes(kept.seen), RENDERED):
            return bytes(kept.seen)
        return bytes(kept.evidence)
