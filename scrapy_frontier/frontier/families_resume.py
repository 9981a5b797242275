"""What a resumed run knows of families: brakes from the store, and counts by going through the newest rows again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from scrapy_frontier.frontier.families import EXACT, NEAR, PAGES_KNOWN, SAME, Families
from scrapy_frontier.identity import origin_of
from scrapy_frontier.policy.likeness import WORDS_JUDGED
from scrapy_frontier.policy.traps import Content
from scrapy_frontier.store import families as stored

if TYPE_CHECKING:
    from scrapy_frontier.store.rows import Cursor

IDENTITIES_READ: Final = 50_000
"""Newest identities that are gone through again."""


def resume(families: Families, cursor: Cursor, run_id: int) -> None:
    """Bring the families of a run to where an earlier process left them."""
    traps = families.traps
    marked = stored.marked_families(cursor, run_id)
    for found in marked:
        origin, _, shape = found.name.partition(" ")
        if found.released_ms is not None:
            traps.release(origin, shape)
    _refer_again(families, cursor, run_id)
    _read_again(families, cursor, run_id)
    for found in marked:
        origin, _, shape = found.name.partition(" ")
        if found.released_ms is None and found.rule is not None:
            traps.restore(origin, shape, found.rule, json.loads(found.detail or "{}"))
    families.released.update(stored.released_identities(cursor, run_id))


def _refer_again(families: Families, cursor: Cursor, run_id: int) -> None:
    identities = stored.latest_identities(cursor, run_id, IDENTITIES_READ)
    urls = {found.identity_id: found.url for found in identities}
    for found in identities:
        source = urls.get(found.source_id)
        content = None
        if source is not None:
            content = Content(families.traps.family_of(source, origin_of(source)))
        families.traps.refer(found.url, origin_of(found.url), content)


def _read_again(families: Families, cursor: Cursor, run_id: int) -> None:
    likeness = stored.latest_likeness(cursor, run_id, PAGES_KNOWN)
    urls = {found.identity_id: found.url for found in likeness}
    for found in likeness:
        origin = origin_of(found.url)
        is_like = found.kind in (SAME, EXACT, NEAR)
        if not is_like:
            families.index.restore(
                origin, found.digest, found.bare, found.simhash, found.identity_id, found.url
            )
        content = Content(
            families.traps.family_of(found.url, origin),
            found.bare,
            is_read=True,
            is_judged=found.words >= WORDS_JUDGED,
            is_same=found.kind == SAME,
            is_exact=found.kind in (SAME, EXACT),
            is_near=found.kind == NEAR,
            novelty=found.novelty / 1000,
            like=urls.get(found.like_id, "") if is_like else "",
        )
        families.traps.fetched(found.url, origin, content, found.outside)
