"""What the tests share: the two kinds of store on which the promises hold."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import hypothesis
import pytest
from postgresql_server import VARIABLE, NoServer, server
from store_kinds import KINDS, Databases, Stores

# The examples are the same in each run, so that a failure is of what was changed; other ones are tried
# with `--hypothesis-profile=search`.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("search", print_blob=True)
hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def no_project_stays_found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What Scrapy notes of the project it was called in ends with the test that called it there."""
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    path = list(sys.path)
    yield
    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
    sys.path[:] = path


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a database of a PostgreSQL server; the test is skipped where none can be had."""
    with ExitStack() as running:
        try:
            url = running.enter_context(server())
        except NoServer as reason:
            pytest.skip(str(reason))
        yield url


@pytest.fixture(scope="session")
def _all_databases(postgresql_server: str) -> Iterator[Databases]:
    made = Databases(postgresql_server)
    yield made
    if VARIABLE in os.environ:  # a server of our own goes with all it holds
        made.drop()


@pytest.fixture
def databases(_all_databases: Databases) -> Iterator[Databases]:
    """Databases for one test."""
    yield _all_databases
    _all_databases.clear()


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Stores of each kind in turn."""
    numbers = itertools.count(1)

    def new_file() -> str:
        return f"sqlite:///{tmp_path / f'store-{next(numbers)}.db'}"

    made = Stores("sqlite", new_file, lambda: "sqlite://")
    if request.param == "postgresql":
        databases = request.getfixturevalue("databases")
        made = Stores("postgresql", databases.new_url, databases.store_url)
    yield made
    made.close()


@pytest.fixture
def store_url(stores: Stores) -> str:
    """The URL of a store to open by `create=True`, of each kind in turn; its tables are to be left as they are."""
    url = stores.empty_url()
    return url if url != "sqlite://" else stores.new_url()
