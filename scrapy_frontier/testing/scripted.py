"""A scripted HTTP server on loopback: several origins, one thread, a log of everything."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Final

from scrapy_frontier.testing.connection import Connection
from scrapy_frontier.testing.log import RequestLog
from scrapy_frontier.testing.origins import Origin

START_TIMEOUT_S: Final = 10.0


class ScriptedServer:
    """Serves scripted origins from a thread of its own; `log` holds every request.

    Origins are bound when they are asked for and answered from `start()` on, also those that are
    added later:

        with ScriptedServer() as server:
            shop = server.origin("shop")
            shop.on("/", page("Shop", links=["/hats"]))
            shop.on("/hats", [Answer(status=503), page("Hats")])

    Arrivals are only as exact as the interpreter's lock, which a crawl in the same process often
    holds for milliseconds: to measure intervals, use `ServerProcess`.
    """

    def __init__(self, log_path: Path | None = None) -> None:
        self.log = RequestLog(log_path)
        self.origins: dict[str, Origin] = {}
        self._connections: set[Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping = asyncio.Event()

    def __repr__(self) -> str:
        state = "running" if self._loop else "not started"
        return f"<ScriptedServer {state}: {', '.join(self.origins)}>"

    def __enter__(self) -> ScriptedServer:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def origin(
        self,
        name: str = "main",
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> Origin:
        """Open one more origin on a loopback address; port 0 takes a free one.

        Raises ValueError where the name is in use, OSError where the port is.
        """
        if name in self.origins:
            raise ValueError(f"there is an origin {name!r} already: choose another name")
        origin = Origin(name, host, port, tls=tls)
        self.origins[name] = origin
        if self._loop:
            asyncio.run_coroutine_threadsafe(self._listen(origin), self._loop).result()
        return origin

    def start(self) -> None:
        """Begin to answer; returns when connections are accepted."""
        if self._thread:
            raise RuntimeError("the server was started before: make a new one")
        is_ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(is_ready)), name="scripted-server", daemon=True
        )
        self._thread.start()
        if not is_ready.wait(START_TIMEOUT_S):
            raise RuntimeError(f"the server did not start within {START_TIMEOUT_S} s")

    def stop(self) -> None:
        """Drop every connection, close the ports and the log file. Safe to call twice."""
        if self._loop and self._thread:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        for origin in self.origins.values():
            origin.listener.close()
        self.log.close()

    async def _serve(self, is_ready: threading.Event) -> None:
        for origin in list(self.origins.values()):
            await self._listen(origin)
        self._loop = asyncio.get_running_loop()
        is_ready.set()
        await self._stopping.wait()
        self._loop = None
        await self._hang_up()

    async def _listen(self, origin: Origin) -> None:
        def accept() -> Connection:
            return Connection(origin, self.log, self._connections)

        loop = asyncio.get_running_loop()
        self._listeners.append(
            await loop.create_server(accept, sock=origin.listener, ssl=origin.tls)
        )

    async def _hang_up(self) -> None:
        for listener in self._listeners:
            listener.close()
        await asyncio.sleep(0)  # what was accepted just now becomes known
        for connection in list(self._connections):
            connection.abort()
        while self._connections:
            await asyncio.sleep(0)
