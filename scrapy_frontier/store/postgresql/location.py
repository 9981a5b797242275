"""Where a store on a PostgreSQL server is: its URL read, its password kept out of all that is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from scrapy_frontier.errors import StoreError
from scrapy_frontier.store.database import Database, database_named

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.engine import URL

DRIVER: Final = "postgresql+psycopg"

EXAMPLE: Final = "postgresql+psycopg://user@host:5432/database"


@dataclass(frozen=True)
class PostgresqlLocation:
    """One store: a database of a server, in the schema that comes first in the connection's search path."""

    url: str
    target: URL = field(repr=False)

    @classmethod
    def of(cls, parsed: URL, shown: str) -> PostgresqlLocation:
        """Read a URL. Raises `StoreError` for a driver other than psycopg, and where that is missing."""
        if parsed.drivername not in {"postgresql", "postgres", DRIVER}:
            raise StoreError(
                f"{shown!r}: the driver {parsed.drivername!r} is not supported; write {EXAMPLE}"
            )
        if not parsed.database:
            raise StoreError(f"{shown!r} names no database; write {EXAMPLE}")
        if find_spec("psycopg") is None:
            raise StoreError(
                f"{shown!r} needs the driver psycopg, which is not installed; "
                "pip install 'scrapy-frontier[postgres]'"
            )
        return cls(shown, parsed.set(drivername=DRIVER))

    @property
    def path(self) -> Path | None:
        """None: it is no file."""
        return None

    @property
    def is_temporary(self) -> bool:
        """A server's store outlives the process."""
        return False

    @property
    def database(self) -> Database:
        """PostgreSQL."""
        return database_named("postgresql")

    def check_readable(self) -> None:
        """What is wrong, only the server can tell."""

    def check_writable(self, *, create: bool) -> None:
        """What is wrong, only the server can tell."""
