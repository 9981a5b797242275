"""What moves an identity in the queue: points at its discovery, and links that are found later.

The place in a queue is no state: it changes without a transition, and only while the identity stands scheduled.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.priority import freshness_points
from scrapy_frontier.states import State
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import Head, Promote, Reason, Reference

if TYPE_CHECKING:
    from scrapy_frontier.store.batch import Batch, Standing

POINTS: Final = "priority.points"
"""Reason of a place in the queue: what it is made of, where that is more than the request's own priority."""


def promote(batch: Batch, message: Promote) -> None:
    """References to an identity have doubled."""
    standing = batch.standings.get(message.identity_id)
    head = None
    if standing is not None and standing.state == State.SCHEDULED:
        standing.rank = max(-rows.RANKS, standing.rank - message.points)
        batch.new_ranks[standing.identity_id] = standing.rank
        found = next(iter(rows.heads(batch.cursor, [standing.identity_id])), None)
        head = None if found is None else Head(*found)._replace(rank=standing.rank)
    batch.committed.answers.append((message.on_commit, head))


def reason_of_place(batch: Batch, message: Reference, standing: Standing) -> Reason:
    """Why a new identity stands where it does, its freshness included; empty where its priority says it all."""
    inputs = {} if message.points is None else json.loads(message.points)
    if batch.freshness:
        fetched_ms = batch.fetched_before.get(message.key)
        points = freshness_points(batch.freshness, fetched_ms, message.at_ms)
        standing.rank = max(-rows.RANKS, min(rows.RANKS, standing.rank - points))
        inputs |= {"fetched_ms": fetched_ms, "freshness_weight": batch.freshness}
    return Reason(POINTS, json.dumps(inputs, ensure_ascii=False)) if inputs else Reason("")
