"""An origin of a scripted server: its address and the script of what it answers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable
from inspect import isawaitable

from scrapy_frontier.testing.answers import Answer, Request, Route, text

NOT_FOUND = text("There is nothing here.\n", status=404)
BACKLOG = 1024


class Origin:
    """One scheme, host and port, and its script.

    The port is bound at once, so that the URL can be written into pages before the server starts;
    port 0 lets the system choose. Raises OSError where the port is taken. With `tls`, a server's
    context (see `testing.certificates`), it speaks HTTPS.

    A request finds its route by its whole target with the query, then by its path, then by the
    longest prefix that was given as `/prefix*`, and at last by `otherwise`, which is a plain 404 at
    first.
    """

    def __init__(
        self,
        name: str,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.host = host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.port: int = self.listener.getsockname()[1]
        self.tls = tls
        written = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{written}:{self.port}"
        self.routes: dict[str, Route] = {}
        self.otherwise: Route = NOT_FOUND
        self.in_flight = 0
        self._turns: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Origin {self.name} {self.url}: {len(self.routes)} routes>"

    def __truediv__(self, path: str) -> str:
        """`origin / "a/b?c"` is the absolute URL of that path here."""
        return f"{self.url}/{path.removeprefix('/')}"

    def on(self, path: str, route: Route) -> None:
        """Script one path: with its query, without it, or as a prefix that ends in `*`."""
        self.routes[path] = route
        self._turns.pop(path, None)

    def answer(self, request: Request) -> Answer | Awaitable[Answer]:
        """What the script says to this request; of several answers it is the next one's turn."""
        key, route = self._find(request)
        if isinstance(route, Answer):
            return route
        if callable(route):
            return route(request)
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return route[min(turn, len(route) - 1)]

    def get(self, target: str) -> Answer:
        """The answer to a plain GET of `target`, without any network.

        Raises TypeError where an async function answers: only the running server can ask it.
        """
        answer = self.answer(Request(self.url, "GET", target, {}))
        if isawaitable(answer):
            raise TypeError(f"an async function answers {target}: ask the running server")
        return answer

    def _find(self, request: Request) -> tuple[str, Route]:
        for key in (request.target, request.path):
            if key in self.routes:
                return key, self.routes[key]
        prefixes = (key for key in self.routes if key.endswith("*"))
        matching = (key for key in prefixes if request.target.startswith(key[:-1]))
        key = max(matching, key=len, default="")
        return key, self.routes.get(key, self.otherwise)
