"""Where a store is: its URL read, and a file checked before SQLite is asked, so that the error names
the remedy.

A file is never opened here: closing any descriptor of a file drops the locks that SQLite
holds on it in this process (fcntl locks belong to the process, not to the descriptor).
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from scrapy_frontier.errors import StoreError
from scrapy_frontier.store.database import Database, Location, database_named

_EXAMPLE = (
    "sqlite:///crawl.db (relative to the current directory), sqlite:////var/crawls/crawl.db or "
    "postgresql+psycopg://user@host/database"
)


@dataclass(frozen=True)
class SqliteLocation:
    """One store: the URL as it was given, and the absolute path of its file, or None for a store in
    memory.
    """

    url: str
    path: Path | None
    memory_name: str = ""

    @property
    def is_temporary(self) -> bool:
        """Whether the store is in memory."""
        return self.path is None

    @property
    def database(self) -> Database:
        """SQLite."""
        return database_named("sqlite")

    def uri(self, **options: str) -> str:
        """The URI that SQLite opens; `options` are its own, such as `mode`, and mean nothing for a
        store in memory.
        """
        if self.path is None:
            return f"file:/{self.memory_name}?vfs=memdb"
        return f"{self.path.as_uri()}?{urlencode(options)}"

    def check_readable(self) -> None:
        """Raise a `StoreError` that tells why the file cannot be read, if it cannot."""
        if self.path is None:
            raise StoreError(
                f"{self.url} is a store in memory: it is seen only by the process that made it; "
                "name a file to read"
            )
        self._check_place(self.path)
        if not self.path.exists():
            raise StoreError(
                f"there is no store at {self.path}; check the path, or start a crawl, which makes "
                "one"
            )
        if not os.access(self.path, os.R_OK):
            raise StoreError(f"{self.path} cannot be read; give this user read permission on it")

    def check_writable(self, *, create: bool) -> None:
        """Raise a `StoreError` that tells why the store cannot be written, if it cannot."""
        if self.path is None:
            return
        if not create:
            self.check_readable()
        self._check_place(self.path)
        directory = self.path.parent
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StoreError(
                f"the directory {directory} cannot be written, and {self.path.name} keeps its "
                "write-ahead log there; give this user write permission, or put the store "
                "elsewhere"
            )
        if self.path.exists() and not os.access(self.path, os.R_OK | os.W_OK):
            raise StoreError(
                f"{self.path} cannot be written; give this user write permission on it"
            )

    @property
    def is_frozen(self) -> bool:
        """Whether no one can write to the store: its file system is read-only and nothing is left
        in the write-ahead log.

        SQLite then cannot make the files that readers share, and needs none (`immutable`).
        """
        if self.path is None or not hasattr(os, "statvfs"):
            return False
        if not os.statvfs(self.path).f_flag & os.ST_RDONLY:
            return False
        log = Path(f"{self.path}-wal")
        return not log.exists() or log.stat().st_size == 0

    def _check_place(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise StoreError(
                f"the directory {path.parent} of the store {self.url} does not exist; create it, "
                "or correct the path"
            )
        if path.is_dir():
            raise StoreError(f"{path} is a directory; name a file in it: {path / 'crawl.db'}")


def locate(url: str) -> Location:
    """Read a store's URL. Relative paths are taken from the current directory, once, here."""
    shown = masked(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Without the cause: it quotes the URL as it stands.
        raise StoreError(f"{shown!r} is not the URL of a store; write {_EXAMPLE}") from None
    name = parsed.drivername
    if name.partition("+")[0] in {"postgresql", "postgres"}:
        from scrapy_frontier.store.postgresql.location import PostgresqlLocation

        return PostgresqlLocation.of(parsed, shown)
    if name not in {"sqlite", "sqlite+pysqlite"}:
        raise StoreError(
            f"{shown!r}: stores of the kind {name!r} are not supported; write {_EXAMPLE}"
        )
    if parsed.query or parsed.host or parsed.username or parsed.port:
        raise StoreError(
            f"{shown!r}: an SQLite store's URL has a path and nothing else; write {_EXAMPLE}"
        )
    if parsed.database in {None, "", ":memory:"}:
        return SqliteLocation(url, None, uuid.uuid4().hex)
    return SqliteLocation(url, Path(str(parsed.database)).resolve())


def masked(url: str) -> str:
    """A URL fit to be shown, also one that cannot be read: `***` in the place of each password."""
    url = re.sub(r"(://[^/@?]*?:)[^?]*@", r"\1***@", url)
    return re.sub(r"(?i)([?&][^=&]*passw[^=&]*=)[^&]*", r"\1***", url)
