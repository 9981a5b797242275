"""A small HTTP/2 server that misbehaves stream by stream, in a thread of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import Counter
from types import TracebackType
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.settings import SettingCodes, Settings


class Http2Port:
    """Answers by path: `/ok*` well, `/short*` shorter than it says, `/reset*` by RST_STREAM in mid-body, `/cut*` by
    closing the connection in mid-body, `/bad*` by a frame that ends the connection, `/away*` by a GOAWAY.

    `once`: paths that misbehave but once. `streams`: how many a connection may have at a time.
    """

    def __init__(
        self, context: ssl.SSLContext, once: frozenset[str] = frozenset(), streams: int = 100
    ) -> None:
        self._context = context
        self.once = once
        self.streams = streams
        self.hits: Counter[str] = Counter()
        self.number = 0
        self.transports: set[asyncio.Transport] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Http2Port:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.number}{path}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, ssl=self._context
        )
        server = self._loop.run_until_complete(listening)
        self.number = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _hang_up(self) -> None:
        for transport in list(self.transports):
            transport.abort()
        while self.transports:
            await asyncio.sleep(0.01)


class _Connection(asyncio.Protocol):
    def __init__(self, port: Http2Port) -> None:
        self._port = port
        self._h2 = H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._port.transports.add(transport)
        self._h2.local_settings = Settings(
            client=False,
            initial_values={SettingCodes.MAX_CONCURRENT_STREAMS: self._port.streams},
        )
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.transports.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, RequestReceived):
                path = dict(event.headers)[b":path"].decode()
                self._port.hits[path] += 1
                # Together, so that there are neighbours.
                asyncio.get_running_loop().call_later(0.2, self._answer, event.stream_id, path)
        self._flush()

    def _answer(self, stream_id: int, path: str) -> None:
        if self._transport.is_closing():
            return
        fault = path.strip("/").rstrip("0123456789")
        if path in self._port.once and self._port.hits[path] > 1:
            fault = "ok"
        if fault == "away":
            self._h2.close_connection(last_stream_id=0)
            self._flush()
            self._transport.close()
            return
        length = "5" if fault == "ok" else "100"
        headers = [(":status", "200"), ("content-type", "text/plain"), ("content-length", length)]
        self._h2.send_headers(stream_id, headers)
        self._h2.send_data(stream_id, b"hello", end_stream=fault in {"ok", "short"})
        if fault == "reset":
            self._h2.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
        self._flush()
        if fault == "bad":
            # A DATA frame on stream 0 is an error of the connection (RFC 9113, section 6.1).
            self._transport.write(b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x")
        if fault == "cut":
            self._transport.close()

    def _flush(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._h2.data_to_send())
