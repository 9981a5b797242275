"""Removing artifacts that nothing names, once they are old enough to belong to no work in flight."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.store.artifacts.content import Artifacts, digest_in
from scrapy_frontier.store.artifacts.places import (
    TOUCHED_FOR_S,
    Kept,
    LocalPlace,
    is_aside,
    is_leftover,
)

GRACE_S: Final = 24 * 3600.0
"""Seconds for which an artifact is left alone after it was last written or touched."""

LEAST_GRACE_S: Final = 2 * TOUCHED_FOR_S
"""The shortest grace period that protects work in flight: a writer touches an artifact no more often than that."""

BATCH: Final = 10_000
"""Artifacts that are looked up among the references at once."""

Named = Callable[[Collection[bytes]], set[bytes]]
"""Digests to those among them that something names. Asked after the artifacts were listed, never before."""


@dataclass(slots=True)
class Swept:
    """What a sweep did: artifacts it saw, orphans it removed, their bytes on disk, and orphans still in their grace."""

    seen: int = 0
    removed: int = 0
    bytes: int = 0
    young: int = 0


def sweep(
    artifacts: Artifacts,
    named: Named,
    now: float,
    grace_s: float = GRACE_S,
    *,
    dry_run: bool = False,
) -> Swept:
    """Remove the orphans older than the grace period, and what interrupted writes have left. `now` as `time.time()`.

    Work in flight is safe: its artifacts were written or touched less than the grace period ago, and what is named by
    the time the references are read stays. Raises `ConfigError` for a grace period that is too short for that.
    """
    if grace_s < LEAST_GRACE_S:
        raise ConfigError(
            f"a grace period of {grace_s:g} s does not protect a crawl that is under way: at least {LEAST_GRACE_S:g} s"
        )
    swept = Swept()
    before = now - grace_s
    for part in _parts(artifacts.place.listing()):
        wanted = named({digest for kept in part if (digest := digest_in(kept.name)) is not None})
        for kept in part:
            swept.seen += 1
            if digest_in(kept.name) in wanted:
                if is_aside(kept.name) and isinstance(artifacts.place, LocalPlace) and not dry_run:
                    artifacts.place.restore(kept.name)
            elif digest_in(kept.name) is None and not is_leftover(kept.name):
                continue  # nothing of ours
            elif kept.changed_at >= before:
                swept.young += 1
            elif dry_run or artifacts.place.remove_if_old(kept.name, before):
                swept.removed += 1
                swept.bytes += kept.size
    return swept


def _parts(files: Iterable[Kept]) -> Iterator[list[Kept]]:
    part: list[Kept] = []
    for kept in files:
        part.append(kept)
        if len(part) >= BATCH:
            yield part
            part = []
    if part:
        yield part
