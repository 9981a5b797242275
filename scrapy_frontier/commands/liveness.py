"""Whether a process works on a run: asked of the lock that it holds while it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.store.locks import RunLock

if TYPE_CHECKING:
    from scrapy_frontier.store.opening import Store


def is_live(store: Store, run_id: int) -> bool | None:
    """Whether a process holds the run's lock; None where that cannot be told."""
    return RunLock(store, run_id).is_held()
