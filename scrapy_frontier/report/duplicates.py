"""The same content under several URLs, and which of them the pages themselves call the canonical one.

Likeness is a relation between fetches, found as the crawl went: of each page to the first one of its origin that it is
like. No URL is taken for another because of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy_frontier.report.figures import ranges
from scrapy_frontier.report.names import select_in, urls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

GROUPS: Final = 100
EXAMPLES: Final = 3
CANONICALS: Final = 3
_SAME, _EXACT, _NEAR = 1, 2, 3


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Pages that are like the one at `url`, the first that was fetched.

    `same` have the same text, `alike` the same but for what repeats their own addresses, `near` nearly the same.
    `canonicals` are the addresses that the pages of the group name by `rel=canonical`, with how many name each: as they
    stand on the pages, and not followed. `candidate` is the one that most name, or else `url`.
    """

    url: str
    same: int
    alike: int
    near: int
    examples: tuple[str, ...]
    canonicals: Mapping[str, int]
    candidate: str


_GROUPS: Final = (
    "SELECT likeness.like_id, likeness.kind, count(*) FROM likeness {where} AND likeness.kind > 0"
    " GROUP BY likeness.like_id, likeness.kind"
)
_MEMBERS: Final = (
    "SELECT identity_id, like_id, canonical FROM likeness WHERE run_id = :run AND like_id IN :ids"
    " ORDER BY attempt_id"
)
_FIRSTS: Final = (
    "SELECT identity_id, canonical FROM likeness WHERE run_id = :run AND identity_id IN :ids"
)


def duplicates(
    connection: Connection, run_id: int, limit: int = GROUPS
) -> tuple[DuplicateGroup, ...]:
    """The largest groups of a run."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    only = f"likeness.run_id = {run_id:d}"
    for like_id, kind, count in ranges(connection, _GROUPS, "likeness.attempt_id", only):
        counts[like_id][kind] += count
    largest = sorted(counts, key=lambda number: (-counts[number].total(), number))[:limit]
    members: defaultdict[int, list[int]] = defaultdict(list)
    canonicals: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for identity_id, like_id, canonical in select_in(connection, _MEMBERS, largest, run=run_id):
        if len(members[like_id]) < EXAMPLES:
            members[like_id].append(identity_id)
        if canonical:
            canonicals[like_id][canonical] += 1
    for identity_id, canonical in select_in(connection, _FIRSTS, largest, run=run_id):
        if canonical:
            canonicals[identity_id][canonical] += 1
    names = urls(connection, {*largest, *(one for found in members.values() for one in found)})
    return tuple(
        _group(names.get(number, ""), counts[number], members[number], canonicals[number], names)
        for number in largest
    )


def _group(
    url: str,
    counts: Counter[int],
    members: list[int],
    canonicals: Counter[str],
    names: Mapping[int, str],
) -> DuplicateGroup:
    named = canonicals.most_common(CANONICALS)
    return DuplicateGroup(
        url=url,
        same=counts[_SAME],
        alike=counts[_EXACT],
        near=counts[_NEAR],
        examples=tuple(names[number] for number in members if number in names),
        canonicals=dict(named),
        candidate=named[0][0] if named else url,
    )
