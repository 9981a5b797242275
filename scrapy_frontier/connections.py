"""What Twisted's connections know and do not tell: whether a request went out, and how a body came to its end.

The private names that this relies on, held to it by `tests/crawl/test_seams.py` as those of `seams.py` are:

- `handler._pool.getConnection(key, endpoint)`: every request over HTTP/1.1 asks it for its connection, in the context
  of its transfer; `handler._pool._factory` builds the protocols of the connections, `._putConnection(key, protocol)`
  keeps them, and `._connections` are those that are kept, with their `state`.
- `protocol._parser`, there once a request is on its way, with `response` and `connHeaders`: what the answer says of its
  connection.
- `protocol.transport._handshakeDone` and `._tlsConnection`, where TLS is spoken, and OpenSSL's `SSL_get_verify_result`:
  how its handshake went.
- `protocol._parser.bodyDecoder`: what knows where the body ends; its `noMoreData()` raises where it has not ended.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from OpenSSL import SSL
from twisted.internet.error import ConnectionAborted, ConnectionLost
from twisted.web.http import _DataLoss

from scrapy_frontier.connections_h2 import mend

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.core.engine import ExecutionEngine
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from scrapy_frontier.frontier.attempts import Attempt

TRANSFER: ContextVar[Attempt | None] = ContextVar("frontier_transfer", default=None)
"""The attempt whose transfer runs in this context."""

_PARSER: Final = "_frontier_parser"
"""Attribute of a protocol: what has read its last answer."""

MARGIN: Final = 0.05
"""A transfer is ended this part of its timeout before the timeout, to keep what has arrived."""


CERTIFICATE_FAULTS: Final = {
    9: "tls.expired",
    10: "tls.expired",
    18: "tls.untrusted",
    19: "tls.untrusted",
    20: "tls.untrusted",
    21: "tls.untrusted",
    62: "tls.wrong_host",
    64: "tls.wrong_host",
}
"""OpenSSL's results of a verification (x509_vfy.h) as kinds of faults; its exceptions do not tell them apart."""


def watch_connections(engine: ExecutionEngine) -> None:
    """Follow the requests onto their connections; a connection that is reset does not end a body well."""
    for scheme in ("http", "https"):
        pool = getattr(engine.downloader.handlers._get_handler(scheme), "_pool", None)
        if hasattr(pool, "getConnection") and hasattr(pool, "_factory"):
            _watch_pool(pool)
        elif hasattr(pool, "get_connection") and hasattr(pool, "put_connection"):
            _watch_pool_of_http2(pool)


def keep_what_arrives(attempt: Attempt, timeout_s: float) -> asyncio.TimerHandle:
    """Shortly before its timeout, end a transfer that is in the middle of its body, so that this part is kept."""

    def cut() -> None:
        connection = attempt.connection
        if connection is not None and _decoder(connection) is not None:
            connection.transport.abortConnection()

    delay_s = timeout_s - min(0.2, timeout_s * MARGIN)
    return asyncio.get_running_loop().call_later(delay_s, cut)


def part(attempt: Attempt) -> None:
    """The transfer is over: note how the handshake went, and let the connection go."""
    transport = getattr(attempt.connection, "transport", None)
    tls, attempt.connection, attempt.tls = attempt.tls, None, None
    if tls is not None and not getattr(transport, "_handshakeDone", True):
        attempt.is_sent = False
        attempt.handshake_fault = _certificate_fault(tls) or "tls.cut"


def _watch_pool(pool: Any) -> None:
    get: Callable[..., Deferred[Any]] = pool.getConnection
    put: Callable[[Any, Any], None] = pool._putConnection

    def watched(key: Any, endpoint: Any) -> Deferred[Any]:
        attempt = TRANSFER.get()
        is_reused = any(kept.state == "QUIESCENT" for kept in pool._connections.get(key, ()))
        connecting = get(key, endpoint)
        if attempt is None:
            return connecting
        attempt.is_sent = False
        attempt.is_reused = is_reused

        def connected(connection: Any) -> Any:
            attempt.is_sent = True
            attempt.connection = connection
            # It is gone from there once the handshake has failed.
            attempt.tls = getattr(connection.transport, "_tlsConnection", None)
            return connection

        return connecting.addCallback(connected)

    class Factory(pool._factory):  # type: ignore[misc]
        """Builds protocols that take a reset for what it is, and know whether they may be used again."""

        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  # Twisted's interface
            return _note_parser(_heed_reset(super().buildProtocol(addr)))

    def kept(key: Any, connection: Any) -> None:
        if _is_to_end(connection):
            connection.transport.loseConnection()
        else:
            put(key, connection)

    pool.getConnection = watched
    pool._putConnection = kept
    pool._factory = Factory


def _watch_pool_of_http2(pool: Any) -> None:
    get: Callable[..., Deferred[Any]] = pool.get_connection
    put: Callable[..., Any] = pool.put_connection

    def watched(*args: Any) -> Deferred[Any]:
        attempt = TRANSFER.get()
        connecting = get(*args)
        if attempt is None:
            return connecting
        attempt.is_sent = False

        def connected(connection: Any) -> Any:
            attempt.is_sent = True
            return connection

        return connecting.addCallback(connected)

    def mended(connection: Any, key: Any) -> Any:
        mend(connection)
        return put(connection, key)

    pool.get_connection = watched
    pool.put_connection = mended


def _certificate_fault(tls: Any) -> str | None:
    """What OpenSSL has found wrong with a certificate; only read: verification itself is Twisted's affair."""
    try:
        found = SSL._lib.SSL_get_verify_result(tls._ssl)  # type: ignore[attr-defined]
    except AttributeError:
        return None
    return CERTIFICATE_FAULTS.get(found)


def _heed_reset(protocol: Any) -> Any:
    """Only the server's closing ends a body without a length (RFC 9112, section 6.3, item 8); a reset is an error."""
    lost: Callable[[Failure], None] = protocol.connectionLost

    def watched(reason: Failure) -> None:
        is_reset = isinstance(reason.value, (ConnectionLost, ConnectionAborted))
        if is_reset and _decoder(protocol) is not None:
            protocol._parser.bodyDecoder = _CutBody()
        lost(reason)

    protocol.connectionLost = watched
    return protocol


def _note_parser(protocol: Any) -> Any:
    """Let a protocol remember what reads its answer: it is gone once the answer is whole."""
    send: Callable[[Any], Deferred[Any]] = protocol.request

    def noted(request: Any) -> Deferred[Any]:
        answering = send(request)
        setattr(protocol, _PARSER, protocol._parser or getattr(protocol, _PARSER, None))
        return answering

    protocol.request = noted
    return protocol


def _is_to_end(protocol: Any) -> bool:
    """A server that speaks HTTP/1.0 closes after its answer unless it says otherwise (RFC 9112, section 9.3)."""
    parser = getattr(protocol, _PARSER, None)
    if parser is None or parser.response is None:
        return False
    options = b",".join(parser.connHeaders.getRawHeaders(b"connection", ())).lower()
    return tuple(parser.response.version[1:]) < (1, 1) and b"keep-alive" not in options


def _decoder(protocol: Any) -> Any:
    """What decodes the body that is arriving on a connection; None where none is."""
    return getattr(getattr(protocol, "_parser", None), "bodyDecoder", None)


class _CutBody:
    """Stands in for the decoder of a body that was cut."""

    def noMoreData(self) -> None:  # noqa: N802  # Twisted's name
        """The connection is gone."""
        raise _DataLoss("the connection broke off")
