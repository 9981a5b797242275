"""Whether a process works on a run: asked of the lock that it holds while it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.errors import RunLocked, StoreError
from scrapy_frontier.store.locks import RunLock

if TYPE_CHECKING:
    from scrapy_frontier.store.opening import Store


def is_live(store: Store, run_id: int) -> bool | None:
    """Whether a process holds the run's lock; None where that cannot be told."""
    lock = RunLock(store, run_id)
    if lock.path is None:
        return None
    if not lock.path.exists():
        return False
    try:
        lock.acquire()
    except RunLocked:
        return True
    except StoreError:
        return None
    lock.release()
    return False
