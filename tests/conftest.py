"""What the tests share: the two kinds of store on which the promises hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from postgresql_server import NoServer, server
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from scrapy_frontier.store.opening import Store, open_store

_NUMBERS = itertools.count(1)


@dataclass
class Stores:
    """Makes stores of one kind."""

    kind: str
    new_url: Callable[[], str]
    """The URL of a place without a store."""
    _open: ExitStack = field(default_factory=ExitStack)

    def open(self, url: str | None = None) -> Store:
        """A store open for writing, which the end of the test closes: a new one unless a URL is given."""
        return self._open.enter_context(open_store(url or self.new_url(), create=True))

    def close(self) -> None:
        """Close all."""
        self._open.close()


class Databases:
    """Databases of a PostgreSQL server, each used once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._made: list[str] = []

    def run(self, statement: str) -> None:
        """Execute a statement outside of a transaction, as the owner of all."""
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            connection.execute(text(statement))

    def new_url(self) -> str:
        """The URL of an empty database."""
        name = f"frontier_test_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        self._made.append(name)
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    def drop(self) -> None:
        """Drop what was made, whoever is connected."""
        while self._made:
            self.run(f"DROP DATABASE IF EXISTS {self._made.pop()} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a database of a PostgreSQL server; the test is skipped where none can be had."""
    with ExitStack() as running:
        try:
            url = running.enter_context(server())
        except NoServer as reason:
            pytest.skip(str(reason))
        yield url


@pytest.fixture
def databases(postgresql_server: str) -> Iterator[Databases]:
    """Databases for one test."""
    made = Databases(postgresql_server)
    yield made
    made.drop()


KINDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Stores of each kind in turn."""
    numbers = itertools.count(1)
    new_url = lambda: f"sqlite:///{tmp_path / f'store-{next(numbers)}.db'}"  # noqa: E731
    if request.param == "postgresql":
        new_url = request.getfixturevalue("databases").new_url
    made = Stores(request.param, new_url)
    yield made
    made.close()


@pytest.fixture
def store_url(stores: Stores) -> str:
    """The URL of a place without a store, on each kind of database in turn."""
    return stores.new_url()
