"""Ids that were handed out and belong to nobody any more: none is given a second time.

Ids are the highest plus one. Where the run with the highest is pruned, the next one would get its ids again, and with
them the generations of its leases; so a prune leaves a mark in the table `meta`.
"""

from __future__ import annotations

import json
from typing import Final

from scrapy_frontier.store import schema

MARK: Final = "highest_ids"
"""The key in `meta`; its value is JSON, the highest id of each table that a prune has found."""

QUERY: Final = f"SELECT value FROM meta WHERE key = '{MARK}'"

NUMBERED: Final = tuple(
    (table.name, column.name)
    for table in schema.metadata.sorted_tables
    for column in table.primary_key.columns
    if len(table.primary_key.columns) == 1 and column.name.endswith(("_id", "seq"))
)
"""The tables with an id of their own or of their identity, and its column."""


def kept(value: str | None) -> dict[str, int]:
    """What the mark says, by table; nothing where there is none."""
    return (
        {} if value is None else {name: int(number) for name, number in json.loads(value).items()}
    )
