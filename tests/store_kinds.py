"""Stores of each kind, made for tests and taken away again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from scrapy_frontier.store import schema
from scrapy_frontier.store.opening import Store, open_store

KINDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))
"""Parameters of a test that is made on each kind of database."""

_MARKS = ("product", "schema", "version", "created_ms")
"""What the table `meta` of a new store holds."""

_NUMBERS = itertools.count(1)


@dataclass
class Stores:
    """Makes stores of one kind."""

    kind: str
    new_url: Callable[[], str]
    """The URL of a place without a store."""
    empty_url: Callable[[], str]
    """The URL of a store without a row, or of a place where there is none yet."""
    _open: ExitStack = field(default_factory=ExitStack)

    def open(self, url: str | None = None) -> Store:
        """A store open for writing, which the end of the test closes: an empty one unless a URL is given.

        Its tables must be left as they are; a test that alters them makes the store itself, at `new_url()`.
        """
        return self._open.enter_context(open_store(url or self.empty_url(), create=True))

    def close(self) -> None:
        """Close all."""
        self._open.close()


class Databases:
    """Databases of a PostgreSQL server. Those that held a store are emptied and used again: to make one costs more."""

    def __init__(self, url: str) -> None:
        self._server_url = url
        self._lent: list[str] = []
        self._made: list[str] = []
        self._empty: list[str] = []

    def run(self, *statements: str, database: str | None = None) -> None:
        """Execute statements outside of a transaction."""
        url = make_url(self._server_url)
        url = url if database is None else url.set(database=database)
        engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def new_url(self) -> str:
        """The URL of a database without a store."""
        name = f"frontier_test_{os.getpid()}_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        self._made.append(name)
        return self.url_of(name)

    def store_url(self) -> str:
        """The URL of a store without a row; its tables must be left as they are."""
        if not self._empty:
            url = self.new_url()
            open_store(url, create=True).close()
            self._empty.append(self._made.pop())
        self._lent.append(self._empty.pop())
        return self.url_of(self._lent[-1])

    def url_of(self, name: str) -> str:
        """The URL of a database."""
        return make_url(self._server_url).set(database=name).render_as_string(hide_password=False)

    def clear(self) -> None:
        """Empty what is used again."""
        tables = [f'DELETE FROM "{name}"' for name in schema.metadata.tables if name != "meta"]
        tables.append(f"DELETE FROM meta WHERE key NOT IN {_MARKS}")
        while self._lent:
            # Past triggers and foreign keys.
            self.run("SET session_replication_role = replica", *tables, database=self._lent[-1])
            self._empty.append(self._lent.pop())

    def drop(self) -> None:
        """Drop everything, whoever is connected."""
        for name in self._made + self._empty + self._lent:
            self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
