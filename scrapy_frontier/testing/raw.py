"""A port that does what no HTTP server does: it stalls in the handshake, cuts it, answers rubbish."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

Talk = Callable[[socket.socket], None]
"""What is done with one connection; it is closed afterwards."""

PATIENCE_S: Final = 10.0


class RawPort:
    """Hands each connection to `talk`, in a thread of its own; `connections` counts them.

    with RawPort(cut_at_once) as port:
        spider.start_urls = [f"https://127.0.0.1:{port.number}/"]
    """

    def __init__(self, talk: Talk, host: str = "127.0.0.1", number: int = 0) -> None:
        self._talk = talk
        self._listener = socket.create_server((host, number))
        self.number: int = self._listener.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, name="raw-port", daemon=True)

    def __enter__(self) -> RawPort:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A thread in accept() is not woken by close().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.settimeout(PATIENCE_S)
            threading.Thread(target=self._hold, args=(connection,), daemon=True).start()

    def _hold(self, connection: socket.socket) -> None:
        with contextlib.closing(connection), contextlib.suppress(OSError):
            self._talk(connection)


def cut_after_hello(connection: socket.socket) -> None:
    """Read what the client says first, and close."""
    connection.recv(65536)


def reset_after_hello(connection: socket.socket) -> None:
    """Read what the client says first, and reset the connection."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def says(message: bytes) -> Talk:
    """Read what the client says first, and answer with these bytes."""

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(message)

    return talk
