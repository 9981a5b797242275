"""What is kept of responses: written beside the event loop, durable before the transaction that names it.

A response is kept in two forms: as the wire sent it, when it comes from the downloader, and as the spider sees it, when
its page begins, unless that is the same. The first is named by the transition `respond`, the second by the one that
ends the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from scrapy_frontier import failpoints
from scrapy_frontier.clock import milliseconds
from scrapy_frontier.errors import ArtifactError
from scrapy_frontier.frontier.leases import STOPPING
from scrapy_frontier.logs import get_logger
from scrapy_frontier.store.artifacts import (
    Artifacts,
    Body,
    Exchange,
    Header,
    ResponseRecord,
    digest_of,
)
from scrapy_frontier.store.artifacts.records import SEEN, WIRE
from scrapy_frontier.store.messages import Move

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_frontier.clock import Clock
    from scrapy_frontier.frontier.attempts import Attempt, Ending
    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.settings import FrontierSettings

logger = get_logger(__name__)

THREADS: Final = 4
"""Writers of artifacts: while one waits for the disk, another compresses."""

BODY: Final = "body"


class Evidence:
    """The keeper of one open run. All methods belong to the event loop; the work is done in threads."""

    def __init__(self, artifacts: Artifacts, settings: FrontierSettings, clock: Clock) -> None:
        self.artifacts = artifacts
        self._mode = settings.evidence
        self._max_body = settings.evidence_max_body
        self._clock = clock
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="frontier-evidence")
        self._pending: set[asyncio.Future[bytes | None]] = set()
        self.kept: int = 0
        """Responses that were kept."""
        self.bytes: int = 0
        """Bytes of their bodies as they came off the wire; equal ones are counted each time."""

    @property
    def is_busy(self) -> bool:
        """Whether the end of a page waits for its evidence."""
        return bool(self._pending)

    async def keep(self, attempt: Attempt, response: Response, payload: bytes | None) -> bytes:
        """Keep a response as the wire sent it; the digest of its record. `payload` is the digest of its body.

        Raises `ArtifactError` where it cannot be kept.
        """
        payload = payload or digest_of(response.body)
        attempt.body = response.body
        record = self._record(WIRE, response, payload, _exchange(attempt.request, self._fits))
        failpoints.reach("artifact.before")
        digest = await asyncio.wrap_future(
            self._threads.submit(self._write, record, response.body, attempt.request.body)
        )
        self.kept += 1
        self.bytes += len(response.body) if record.body.is_kept else 0
        return digest

    def note_seen(self, attempt: Attempt, response: Response) -> None:
        """The page of an attempt begins with this response: keep it where the wire sent other bytes."""
        if self._mode != BODY or attempt.body is None or response.body is attempt.body:
            return
        wire, attempt.body = attempt.body, None
        parts, attempt.parts = attempt.parts, {}
        writing = self._threads.submit(self._keep_seen, wire, response, parts)
        attempt.seen = asyncio.wrap_future(writing)
        self._pending.add(attempt.seen)

    def when_seen(
        self,
        writing: asyncio.Future[bytes | None],
        end: Callable[[bytes | None], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Call `end` with the digest of what the page was given, once that is durable; None where the wire's is it."""

        def written(done: asyncio.Future[bytes | None]) -> None:
            error = None if done.cancelled() else done.exception()
            if error is not None:
                failed(error)
            elif not done.cancelled():
                end(done.result())
            self._pending.discard(done)

        writing.add_done_callback(written)

    async def replay(self, attempt: Attempt) -> Response:
        """The response that an attempt is to be answered with, as the wire sent it. Raises `ArtifactError`."""
        assert attempt.replay is not None
        return await asyncio.wrap_future(self._threads.submit(self.restore, attempt.replay))

    def restore(self, digest: bytes) -> Response:
        """Make a response again from its record. Raises `ArtifactError` where it is not kept whole."""
        record = ResponseRecord.load(self.artifacts.get(digest))
        body = self.artifacts.get(bytes.fromhex(record.body.digest)) if record.body.size else b""
        headers = Headers()
        for name, value in record.headers:
            headers.appendlist(name.encode("latin-1"), value.encode("latin-1"))
        response_class = responsetypes.from_args(headers=headers, url=record.url, body=body)
        return response_class(
            record.url,
            status=record.status,
            headers=headers,
            body=body,
            flags=list(record.flags),
            protocol=record.protocol,
        )

    def shows(self, digest: bytes, flag: str) -> bool:
        """Whether the record of a response can be read, has this flag, and its body was kept."""
        try:
            record = ResponseRecord.load(self.artifacts.get(digest))
        except ArtifactError as error:
            logger.error("%s", error, extra={"action": "evidence_unreadable"})
            return False
        return record.body.is_kept and flag in record.flags

    def is_kept(self, digest: bytes) -> bool:
        """Whether the record of a response can be read and says that its body was kept."""
        try:
            return ResponseRecord.load(self.artifacts.get(digest)).body.is_kept
        except ArtifactError as error:
            logger.error("%s", error, extra={"action": "evidence_unreadable"})
            return False

    def is_whole(self, digest: bytes) -> bool:
        """Whether the body of a response was kept. Raises `ArtifactError` where that cannot be read."""
        body = ResponseRecord.load(self.artifacts.get(digest)).body
        if body.is_kept and body.size:
            self.artifacts.check(bytes.fromhex(body.digest))
        return body.is_kept

    async def close(self) -> None:
        """Wait for what is being written, and end the threads."""
        while self._pending:
            written, _ = await asyncio.wait(self._pending)
            await asyncio.sleep(0)
            # Of a page that has no end, because the crawl has failed, nobody has taken them.
            for one in written & self._pending:
                one.cancelled() or one.exception()
                self._pending.discard(one)
        self._threads.shutdown(wait=False)

    def _fits(self, size: int) -> bool:
        return self._mode == BODY and size <= self._max_body

    def _record(
        self, form: str, response: Response, payload: bytes, request: Exchange | None
    ) -> ResponseRecord:
        body = Body(len(response.body), payload.hex(), self._fits(len(response.body)))
        address = response.ip_address
        return ResponseRecord(
            form,
            response.url,
            response.status,
            response.protocol,
            _headers(response.headers),
            body,
            milliseconds(self._clock.now()),
            tuple(response.flags),
            None if address is None else str(address),
            request,
        )

    # In a thread

    def _keep_seen(
        self, wire: bytes, response: Response, parts: Mapping[str, bytes]
    ) -> bytes | None:
        if response.body == wire and not parts:
            return None
        record = self._record(SEEN, response, digest_of(response.body), None)
        kept = {
            name: Body(len(content), digest_of(content).hex(), self._fits(len(content)))
            for name, content in parts.items()
        }
        for name, content in parts.items():
            if kept[name].is_kept:
                self.artifacts.put(content, bytes.fromhex(kept[name].digest))
        return self._write(replace(record, parts=kept), response.body, b"")

    def _write(self, record: ResponseRecord, body: bytes, sent: bytes) -> bytes:
        """Bodies first: a record never names what is not there."""
        if record.body.is_kept and body:
            self.artifacts.put(body, bytes.fromhex(record.body.digest))
        if record.request is not None and record.request.body.is_kept and sent:
            self.artifacts.put(sent, bytes.fromhex(record.request.body.digest))
        return self.artifacts.put(record.dump())


async def keep(
    frontier: Frontier, attempt: Attempt, response: Response, payload: bytes | None
) -> bytes | None:
    """Evidence of a response, durable; None where none is wanted.

    What cannot be kept stops the crawl, and `IgnoreRequest` is raised: its attempt is made again by a resumed run.
    """
    keeper = frontier.opened.evidence
    if keeper is None or frontier.settings.evidence == "none":
        return attempt.replay
    if attempt.replay is not None:
        attempt.body = response.body
        return attempt.replay
    if frontier.is_closed:
        raise IgnoreRequest(STOPPING)
    try:
        digest = await keeper.keep(attempt, response, payload)
    except ArtifactError as error:
        frontier.fail(error)
    if frontier.error is not None:
        raise IgnoreRequest(STOPPING)
    failpoints.reach("artifact.kept")
    return digest


def note_seen(frontier: Frontier, attempt: Attempt, response: Response) -> None:
    """The page of an attempt begins with this response."""
    if frontier.is_open and frontier.opened.evidence is not None:
        frontier.opened.evidence.note_seen(attempt, response)


def write_end(frontier: Frontier, attempt: Attempt, ending: Ending) -> None:
    """Send how an attempt ended, once the evidence of what its page was given is durable."""

    def send(seen: bytes | None) -> None:
        now_ms = milliseconds(frontier.clock.now())
        values = (ending.event, ending.reason, now_ms, ending.disposition, ending.finding)
        frontier.opened.writer.send(Move(attempt.lease, *values, evidence=seen))

    if attempt.seen is None or frontier.opened.evidence is None:
        send(None)
    else:
        frontier.opened.evidence.when_seen(attempt.seen, send, frontier.fail)


def _exchange(request: Request, fits: Callable[[int], bool]) -> Exchange:
    body = Body(len(request.body), digest_of(request.body).hex(), fits(len(request.body)))
    return Exchange.of(request.method, request.url, _headers(request.headers), body)


def _headers(headers: Headers) -> tuple[Header, ...]:
    return tuple(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in headers.items()
        for value in values or ()
        if value is not None
    )
