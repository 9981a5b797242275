"""One connection of a scripted server: requests in, scripted answers or faults out."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections.abc import Awaitable
from http import HTTPStatus
from inspect import isawaitable

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.testing.answers import BODILESS, Answer, Request, text
from scrapy_frontier.testing.log import Hit, RequestLog
from scrapy_frontier.testing.origins import Origin

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 256 * 1024
TRICKLE_PIECES = 10
SMALL_BYTES = 64 * 1024  # what the system is sure to take at once
NO_LINGER = struct.pack("ii", 1, 0)


class MalformedRequestError(FrontierError):
    """The client sent something that is not an HTTP/1 request."""


def parse_request(buffer: bytes, origin: str) -> tuple[Request, int] | None:
    """The first request in `buffer` and its length in bytes; None while it is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise MalformedRequestError("the head of the request is too long")
        return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    try:
        method, target, version = first.split(" ")
        headers: dict[str, str] = {}
        for line in lines:
            name, value = line.split(":", 1)
            key = name.lower()
            headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
        length = int(headers.get("content-length", 0))
    except ValueError as exc:
        raise MalformedRequestError(f"cannot read the request head {buffer[:end]!r}") from exc
    if len(buffer) < end + 4 + length:
        return None
    body = buffer[end + 4 : end + 4 + length]
    wish = headers.get("connection", "").lower()
    is_kept_alive = wish != "close" and (version == "HTTP/1.1" or wish == "keep-alive")
    return Request(origin, method, target, headers, body, is_kept_alive), end + 4 + length


class Connection(asyncio.Protocol):
    """Answers the requests of one client connection, one after the other."""

    def __init__(self, origin: Origin, log: RequestLog, open_connections: set[Connection]) -> None:
        self._origin = origin
        self._log = log
        self._open_connections = open_connections
        self._buffer = b""
        self._hit: Hit | None = None
        self._work: asyncio.Task[None] | None = None
        self._is_closing = False
        self._drained = asyncio.Event()
        self._drained.set()

    # Events of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._open_connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._hit is None:
            self._serve_buffer()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._open_connections.discard(self)
        if self._work:
            self._work.cancel()
        if self._hit:
            self._depart("abandoned")

    def abort(self) -> None:
        """Drop the connection from the server's side, whatever it is doing."""
        self._transport.abort()

    # Requests

    def _serve_buffer(self) -> None:
        while self._buffer and self._hit is None and not self._is_closing:
            try:
                parsed = parse_request(self._buffer, self._origin.url)
            except MalformedRequestError as exc:
                self._refuse(str(exc))
                return
            if parsed is None:
                return
            request, length = parsed
            self._buffer = self._buffer[length:]
            self._arrive(request)
            self._reply(request)

    def _arrive(self, request: Request) -> None:
        self._origin.in_flight += 1
        self._hit = Hit(
            origin=self._origin.url,
            method=request.method,
            path=request.target,
            headers=request.headers,
            arrived_at=time.monotonic(),
            concurrency=self._origin.in_flight,
        )
        self._log.arrive(self._hit)

    def _depart(self, outcome: str) -> None:
        assert self._hit is not None
        self._origin.in_flight -= 1
        hit, self._hit = self._hit, None
        self._log.depart(hit, outcome)

    def _refuse(self, reason: str) -> None:
        answer = text(reason + "\n", status=HTTPStatus.BAD_REQUEST)
        self._transport.write(answer.head + b"Connection: close\r\n\r\n" + answer.payload)
        self._close()

    # Answers

    def _reply(self, request: Request) -> None:
        answer = self._ask_script(request)
        if isinstance(answer, Answer) and answer.is_instant:
            message = _message(answer, request)
            if len(message) <= SMALL_BYTES:
                self._note_status(answer)
                self._finish(message, answer, request)
                return
        work = self._reply_slowly(answer, request)
        self._work = asyncio.get_running_loop().create_task(work)

    def _ask_script(self, request: Request) -> Answer | Awaitable[Answer]:
        try:
            return self._origin.answer(request)
        except Exception as exc:
            return _broken_script(request, exc)

    async def _reply_slowly(self, answer: Answer | Awaitable[Answer], request: Request) -> None:
        answer = await self._await_script(answer, request)
        self._note_status(answer)
        await asyncio.sleep(answer.delay_s)
        if answer.fault:
            await self._fail(answer, request)
            return
        last = await self._send_all_but_last(answer, request)
        self._work = None
        self._finish(last, answer, request)
        self._serve_buffer()

    async def _await_script(self, answer: Answer | Awaitable[Answer], request: Request) -> Answer:
        if not isawaitable(answer):
            return answer
        try:
            return await answer
        except Exception as exc:
            return _broken_script(request, exc)

    def _note_status(self, answer: Answer) -> None:
        assert self._hit is not None
        if answer.raw is None and (answer.fault is None or answer.sent != "nothing"):
            self._hit.status = answer.status

    async def _send_all_but_last(self, answer: Answer, request: Request) -> bytes:
        message = _message(answer, request)
        *pieces, last = _pieces(message, TRICKLE_PIECES if answer.trickle_s else 1)
        for piece in pieces:
            self._transport.write(piece)
            await asyncio.sleep(answer.trickle_s / len(pieces))
        if len(last) <= SMALL_BYTES:
            return last
        self._transport.write(last)
        await self._drained.wait()
        return b""

    async def _fail(self, answer: Answer, request: Request) -> None:
        self._transport.write(_before_fault(answer, request))
        await self._drained.wait()
        self._work = None
        if answer.fault == "stall":
            return
        if answer.fault == "reset":
            connection: socket.socket = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._depart("reset" if answer.fault == "reset" else "closed")
        self._close()

    def _finish(self, last: bytes, answer: Answer, request: Request) -> None:
        # Logged first: who has read an answer finds its hit complete, in memory and on disk.
        self._depart("sent")
        self._transport.write(last)
        if answer.ends_connection or not request.is_kept_alive:
            self._close()

    def _close(self) -> None:
        self._is_closing = True
        self._transport.close()


def _broken_script(request: Request, exc: Exception) -> Answer:
    logger.error(
        "the script failed to answer %s %s",
        request.method,
        request.target,
        exc_info=exc,
        extra={"action": "script_failed"},
    )
    return text(f"The script failed: {exc!r}\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)


def _head(answer: Answer, request: Request) -> bytes:
    is_kept_alive = request.is_kept_alive and not answer.ends_connection
    return answer.head + (b"\r\n" if is_kept_alive else b"Connection: close\r\n\r\n")


def _body(answer: Answer, request: Request) -> bytes:
    if request.method == "HEAD" or answer.status in BODILESS:
        return b""
    if not answer.is_chunked:
        return answer.payload
    chunks = _pieces(answer.payload, 2) if answer.payload else []
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def _message(answer: Answer, request: Request) -> bytes:
    if answer.raw is not None:
        return answer.raw
    return _head(answer, request) + _body(answer, request)


def _before_fault(answer: Answer, request: Request) -> bytes:
    if answer.raw is not None:
        return answer.raw
    if answer.sent == "nothing":
        return b""
    if answer.sent == "head":
        return _head(answer, request)
    body = _body(answer, request)
    return _head(answer, request) + body[: len(body) // 2]


def _pieces(message: bytes, count: int) -> list[bytes]:
    size = -(-len(message) // count) or 1
    return [message[start : start + size] for start in range(0, len(message), size)] or [b""]
