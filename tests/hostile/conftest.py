"""The hostile web for tests, and coroutines as tests."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted

from .known_faults import KNOWN
from .lab import HostileLab
from .web import Web


def pytest_itemcollected(item: pytest.Item) -> None:
    """Coroutine tests run on the reactor."""
    function = getattr(item, "function", None)
    if inspect.iscoroutinefunction(function):
        pytest_twisted.ensureDeferred(function)
    if item.name in KNOWN:
        item.add_marker(pytest.mark.xfail(reason=KNOWN[item.name], strict=False))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[HostileLab]:
    """The hostile web, and the place of the store."""
    with Web() as web:
        yield HostileLab(web, tmp_path)
