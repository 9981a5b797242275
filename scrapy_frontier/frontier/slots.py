"""The downloader slot of a request: the user's, or one that was only filled in.

Scrapy writes a slot into the meta of every request it downloads, and meta is copied to other requests. Only what the
user has put there himself may give a request another gate than that of its origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

META_KEY: Final = "download_slot"


class AutomaticSlot(str):
    """A slot that nobody chose."""

    __slots__ = ()


SLOT: Final = AutomaticSlot("scrapy_frontier")
"""The downloader slot of all requests: it adds no wait of its own, so that only the gates decide."""


def slot_of(meta: Mapping[Any, Any]) -> str | None:
    """The slot that the user chose, if he did."""
    slot = meta.get(META_KEY)
    return None if slot is None or isinstance(slot, AutomaticSlot) else str(slot)
