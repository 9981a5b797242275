"""What PostgreSQL says when it fails, in the operator's words.

Codes are SQLSTATEs (the manual's appendix A), looked up whole and then by their class, the first two characters. A
connection that is not made has none: it is read by its message.
"""

from __future__ import annotations

from typing import Final

from scrapy_frontier.store.database import Trouble

_BUSY: Final = Trouble(
    "another process holds what this one needs; wait until it is done, or stop it",
    is_retryable=True,
)
_CONFLICT: Final = Trouble(
    "the server undid the transaction for the sake of another one; it can be tried again",
    is_retryable=True,
)
_LOST: Final = Trouble(
    "the connection to the server is lost; when the server can be reached, start the run again: "
    "what was committed stays"
)
_UNREACHABLE: Final = Trouble(
    "the server cannot be reached; check that it runs, and the host and port of the store's URL"
)
_STARTING: Final = Trouble(
    "the server is starting or stopping; wait until it is up, then start again", is_retryable=True
)
_TOO_MANY: Final = Trouble(
    "the server takes no more connections; raise its max_connections, or run fewer crawls at once "
    "(each takes one connection, and one or two more while it reads)"
)
_LOGIN: Final = Trouble(
    "the server refused the login; check user and password (PGPASSWORD, ~/.pgpass or the store's "
    "URL) and pg_hba.conf"
)
_NO_DATABASE: Final = Trouble(
    "there is no such database; make it with createdb, or correct the store's URL"
)
_NO_RIGHT: Final = Trouble(
    "this user lacks a right; give it CONNECT on the database and USAGE and CREATE on the schema, "
    "and let it own the store's tables (or for reading: SELECT on them)"
)
_READ_ONLY: Final = Trouble(
    "the server only reads (a standby, or default_transaction_read_only); name the primary"
)
_FULL: Final = Trouble(
    "the server's disk is full; free some space, then start the run again: what was committed stays"
)
_MEMORY: Final = Trouble(
    "the server is out of a resource; look at its log, give it more or ask less of it"
)
_IO_ERROR: Final = Trouble(
    "the server could not read or write its files; look at its log and its disk"
)
_CORRUPT: Final = Trouble(
    "the server's files are damaged; stop writing, look at its log, run pg_amcheck and restore a "
    "backup"
)
_CONSTRAINT: Final = Trouble(
    "the rows contradict the schema, and the whole transaction is undone; this is an error in the "
    "program, or other hands changed the store: run `scrapy frontier verify`"
)
_CANCELLED: Final = Trouble(
    "the server cancelled the statement (statement_timeout, or an administrator)",
    is_retryable=True,
)
_OTHER: Final = Trouble("the database refused")

_BY_CODE: Final = {
    "40001": _CONFLICT,
    "40P01": _CONFLICT,
    "55P03": _BUSY,
    "57014": _CANCELLED,
    "57P03": _STARTING,
    "53100": _FULL,
    "53300": _TOO_MANY,
    "42501": _NO_RIGHT,
    "25006": _READ_ONLY,
    "3D000": _NO_DATABASE,
    "58030": _IO_ERROR,
}

_BY_CLASS: Final = {
    "08": _LOST,
    "23": _CONSTRAINT,
    "25": _LOST,  # a transaction that the server ended: idle for too long
    "28": _LOGIN,
    "53": _MEMORY,
    "57": _LOST,
    "58": _IO_ERROR,
    "XX": _CORRUPT,
}

_BY_TEXT: Final = {
    "password": _LOGIN,
    "authentication": _LOGIN,
    "pg_hba.conf": _LOGIN,
    "role ": _LOGIN,
    "does not exist": _NO_DATABASE,
    "permission denied for database": _NO_RIGHT,
    "too many": _TOO_MANY,
    "remaining connection slots": _TOO_MANY,
    "starting up": _STARTING,
    "shutting down": _STARTING,
    "connection failed": _UNREACHABLE,
    "connection timeout": _UNREACHABLE,
    "failed to resolve host": _UNREACHABLE,
    "could not translate host name": _UNREACHABLE,
    "connection": _LOST,
    "server closed": _LOST,
    "SSL": _LOST,
}


def trouble_of(error: BaseException) -> Trouble:
    """What kind of failure an exception of psycopg reports."""
    code = getattr(error, "sqlstate", None)
    if code:
        return _BY_CODE.get(code) or _BY_CLASS.get(code[:2], _OTHER)
    text = str(error)
    return next((trouble for part, trouble in _BY_TEXT.items() if part in text), _OTHER)
