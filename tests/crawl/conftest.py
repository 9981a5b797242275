"""Crawl tests: a server to crawl, a folder for the store, and coroutines as tests."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from crawls import Lab

from scrapy_frontier.testing import ScriptedServer


def pytest_itemcollected(item: pytest.Item) -> None:
    """Coroutine tests run on the reactor."""
    function = getattr(item, "function", None)
    if inspect.iscoroutinefunction(function):
        pytest_twisted.ensureDeferred(function)


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """A scripted server with one origin, and the place of the store; SQLite, if the test is not `on_both_stores`."""
    on_postgresql = getattr(request, "param", "sqlite") == "postgresql"
    store = request.getfixturevalue("databases").new_url() if on_postgresql else None
    with ScriptedServer() as server:
        server.origin("main")
        yield Lab(server, tmp_path, store=store)
