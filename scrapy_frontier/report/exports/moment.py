"""The moment that an export speaks of, and where identities stood at it.

A moment is the highest id of each table, read in one snapshot. Rows are written once and ids only
grow, so all that is told of the moment can still be read later, page by page, while a crawl writes
on. What does change, the projection, is led back: an identity that has moved since is followed down
its chain in the ledger to the last transition of the moment.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import text

from scrapy_frontier.errors import StoreError
from scrapy_frontier.report.names import select_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

_HIGHEST: Final = {
    "transition": "seq",
    "identity": "identity_id",
    "attempt": "attempt_id",
    "emission": "emission_id",
    "rejection": "rejection_id",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One run at one moment: all rows up to these ids, and none after them."""

    run_id: int
    taken_ms: int
    transition: int
    identity: int
    attempt: int
    emission: int
    rejection: int

    @property
    def seq(self) -> int:
        """The last transition that belongs to it, of whatever run."""
        return self.transition

    def bound(self, table: str) -> int:
        """The highest id of a table that belongs to it."""
        return int(getattr(self, table))


def take_moment(connection: Connection, run_id: int) -> Moment:
    """The moment of the connection's snapshot."""
    highest = {
        table: int(connection.scalar(text(f"SELECT max({key}) FROM {table}")) or 0)
        for table, key in _HIGHEST.items()
    }
    return Moment(run_id=run_id, taken_ms=int(time.time() * 1000), **highest)


class Stand(NamedTuple):
    """Where an identity stood: the last transition of the moment, and what it made of it."""

    seq: int
    state: int
    disposition: int
    reason_id: int
    attempt_id: int
    at_ms: int


_LAST: Final = (
    "SELECT c.identity_id, t.seq, t.prev_seq, t.from_to, t.disposition, t.reason_id, t.attempt_id,"
    " t.at_ms FROM current AS c JOIN transition AS t ON t.seq = c.last_seq"
    " WHERE c.identity_id IN :ids"
)
_BEFORE: Final = (
    "SELECT identity_id, seq, prev_seq, from_to, disposition, reason_id, attempt_id, at_ms"
    " FROM transition WHERE seq IN :ids"
)


def stands(connection: Connection, identity_ids: Iterable[int], moment: Moment) -> dict[int, Stand]:
    """Where these identities stood at the moment."""
    found: dict[int, Stand] = {}
    rows = list(select_in(connection, _LAST, identity_ids))
    while rows:
        later = []
        for identity, seq, previous, from_to, disposition, reason, attempt, at_ms in rows:
            if seq > moment.seq:
                later.append(_earlier(identity, seq, previous))
            else:
                state = from_to & 15
                found[identity] = Stand(seq, state, disposition, reason, attempt, at_ms)
        rows = list(select_in(connection, _BEFORE, later))
    return found


def _earlier(identity: int, seq: int, previous: int) -> int:
    if not 0 < previous < seq:
        raise StoreError(
            f"identity {identity} has no transition before {seq}, though it is older than the"
            " export; run `scrapy frontier verify`"
        )
    return previous
