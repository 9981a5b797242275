"""What the database says when it fails, in the operator's words: one place that maps every driver
error.

Codes are SQLite's primary result codes (sqlite.org/rescode.html). A driver that gives no code
(Python 3.10's own module) is read by its message, which is the library's fixed text for the code.
Those of PostgreSQL are in `store.postgresql.trouble`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from scrapy_frontier.errors import FrontierError, SchemaMismatch
from scrapy_frontier.store.database import Trouble
from scrapy_frontier.store.sqlite import DRIVER

_BUSY: Final = Trouble(
    "another process holds the store; wait until it is done, or stop it", is_retryable=True
)
_READ_ONLY: Final = Trouble(
    "the store cannot be written; give this user write permission on the file and on its "
    "directory (the -wal and -shm files stand there too), or put the store on a file system "
    "mounted for writing"
)
_IO_ERROR: Final = Trouble(
    "the operating system refused a read or write; look for a failing or vanished disk, a full "
    "one, a quota or a limit on file size, then start again: what was committed stays"
)
_CORRUPT: Final = Trouble(
    "the store is damaged; stop writing to it, keep the file and its -wal, and restore a backup "
    "or save what is readable with the sqlite3 shell's .recover"
)
_FULL: Final = Trouble(
    "the disk is full; free some space, then start the run again: what was committed stays"
)
_CANNOT_OPEN: Final = Trouble(
    "the file cannot be opened; check that its directory exists and that this user may write "
    "there (the -wal and -shm files stand beside the store)"
)
_CONSTRAINT: Final = Trouble(
    "the rows contradict the schema, and the whole transaction is undone; this is an error in the "
    "program, or other hands changed the store: run `scrapy frontier verify`"
)
_NOT_A_DATABASE: Final = Trouble(
    "this file is not an SQLite database; check the path of the store", error=SchemaMismatch
)
_OTHER: Final = Trouble("the database refused")

_BY_CODE: Final = {
    5: _BUSY,
    6: _BUSY,  # LOCKED: another connection of this process, in-memory stores only
    8: _READ_ONLY,
    10: _IO_ERROR,
    11: _CORRUPT,
    13: _FULL,
    14: _CANNOT_OPEN,
    15: _BUSY,  # PROTOCOL: lost a race for the lock of the write-ahead log
    19: _CONSTRAINT,
    26: _NOT_A_DATABASE,
}

_BY_TEXT: Final = {
    "is locked": _BUSY,
    "locking protocol": _BUSY,
    "readonly database": _READ_ONLY,
    "disk I/O error": _IO_ERROR,
    "is malformed": _CORRUPT,
    "disk is full": _FULL,
    "unable to open database": _CANNOT_OPEN,
    "constraint failed": _CONSTRAINT,
    "not a database": _NOT_A_DATABASE,
}


def trouble_of(error: BaseException) -> Trouble:
    """What kind of failure a driver's exception reports."""
    if type(error).__module__.startswith("psycopg"):
        from scrapy_frontier.store.postgresql import trouble

        return trouble.trouble_of(error)
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _BY_CODE.get(code & 0xFF, _OTHER)
    if isinstance(error, DRIVER.IntegrityError):
        return _CONSTRAINT
    text = str(error)
    return next((trouble for part, trouble in _BY_TEXT.items() if part in text), _OTHER)


@contextmanager
def store_errors(what: str) -> Iterator[None]:
    """Turn every error of SQLAlchemy and of the driver into a `StoreError` that says `what` failed,
    why, and the cure.

    `what` names the action and the store: "writing to sqlite:///crawl.db". Other exceptions pass
    unchanged.
    """
    try:
        yield
    except _errors() as exc:
        cause = exc.orig if isinstance(exc, DBAPIError) and exc.orig is not None else exc
        if isinstance(cause, FrontierError):
            raise cause from None
        trouble = trouble_of(cause)
        message = f"{what}: {trouble.advice} ({type(cause).__name__}: {_quoted(cause)})"
        raise trouble.error(message, is_retryable=trouble.is_retryable) from exc


def _errors() -> tuple[type[Exception], ...]:
    """The errors of SQLAlchemy and of the drivers that are in use."""
    psycopg = sys.modules.get("psycopg")
    errors = (SQLAlchemyError, DRIVER.Error)
    return errors if psycopg is None else (*errors, psycopg.Error)


def _quoted(cause: BaseException) -> str:
    """What the driver says, in one line, and no password with it."""
    return re.sub(r"(?i)(passw\w*\s*=\s*)\S+", r"\1***", " ".join(str(cause).split()))
