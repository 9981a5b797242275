"""The differences between two runs, by a merge of their identities in the order of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report.diff.comparison import Difference, Kind, has_same_text, kind_of
from scrapy_frontier.report.diff.standing import PAGE, standings
from scrapy_frontier.store.progress import Progress, silent

if TYPE_CHECKING:
    from scrapy_frontier.report.diff.standing import Keyed
    from scrapy_frontier.store.opening import Store

_TOLD: Final = 1000


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs, in its store."""

    store: Store
    run_id: int


def differences(
    first: Side, second: Side, *, page: int = PAGE, progress: Progress = silent
) -> Iterator[Difference]:
    """What is different in the second run, by key. Holds a page of each run, however many URLs they have."""
    ones, others = (standings(side.store, side.run_id, page) for side in (first, second))
    was, now = next(ones, None), next(others, None)
    count = 0
    while was is not None or now is not None:
        is_first = now is None or (was is not None and was.key <= now.key)
        is_second = was is None or (now is not None and now.key <= was.key)
        found = _difference(was if is_first else None, now if is_second else None)
        if found is not None:
            yield found
        count += 1
        if count % _TOLD == 0:
            progress("Comparing", count, 0)
        if is_first:
            was = next(ones, None)
        if is_second:
            now = next(others, None)
    progress("", 0, 0)


def _difference(was: Keyed | None, now: Keyed | None) -> Difference | None:
    known = now or was
    stood = None if was is None else was.standing
    stands = None if now is None else now.standing
    kind = kind_of(stood, stands)
    if kind is None or known is None:
        return None
    same_text = has_same_text(stood, stands) if kind is Kind.CHANGED else None
    return Difference(kind.value, known.method, known.url, same_text, stood, stands)
