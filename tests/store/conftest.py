"""What tests of the store share: a run in a new store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apply_bench import Bench
from store_kinds import Stores

from scrapy_frontier.store.opening import open_store


@pytest.fixture
def bench(stores: Stores) -> Bench:
    """A run in a new store."""
    return Bench(stores.open())


@pytest.fixture
def bench_in_memory() -> Iterator[Bench]:
    """A run in a store in memory."""
    with open_store("sqlite://", create=True) as store:
        yield Bench(store)
