"""Chains of redirects, from the first URL to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.report.html.facts import Chain
from scrapy_frontier.report.names import label, select_in, urls
from scrapy_frontier.states import Disposition, State
from scrapy_frontier.store.edges import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from scrapy_frontier.report.names import Codes

CHAINS_LISTED: Final = 500

_STANDING: Final = (
    "SELECT identity_id, state, disposition, reason_id FROM current WHERE identity_id IN :ids"
)


def redirect_chains(
    connection: Connection, redirects: Mapping[int, Sequence[bytes]], codes: Codes
) -> tuple[int, tuple[Chain, ...]]:
    """How many chains there are, and the longest of them."""
    unpacked = {
        page: [t for part in parts for t in unpack(part)] for page, parts in redirects.items()
    }
    following = {page: targets for page, targets in unpacked.items() if targets}
    reached = {target for targets in following.values() for target in targets}
    # A circle that nothing leads into has no head: any of its pages will do.
    heads = [page for page in following if page not in reached] or list(following)[:1]
    chains = sorted((_follow(head, following) for head in heads), key=lambda one: (-len(one), one))
    listed = chains[:CHAINS_LISTED]
    names = urls(connection, (number for chain in listed for number in chain))
    ends = {
        row[0]: _end(row, codes)
        for row in select_in(connection, _STANDING, (chain[-1] for chain in listed))
    }
    return len(chains), tuple(
        Chain(
            tuple(names.get(number, f"identity {number}") for number in chain),
            ends.get(chain[-1], ""),
        )
        for chain in listed
    )


def _follow(head: int, following: Mapping[int, Sequence[int]]) -> list[int]:
    """The chain from a page on; one that comes back to itself ends with the page it comes back to."""
    chain = [head]
    while following.get(chain[-1]):
        target = following[chain[-1]][-1]
        is_circle = target in chain
        chain.append(target)
        if is_circle:
            break
    return chain


def _end(row: tuple[int, int, int, int], codes: Codes) -> str:
    _, state, disposition, reason_id = row
    name = label(Disposition, disposition) if disposition else label(State, state)
    return f"{name} ({codes[reason_id]})"
