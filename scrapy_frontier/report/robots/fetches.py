"""The identities of a run that are robots.txt, fetched to be read as rules: no pages of the crawl."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.account import RobotsTxtAccount
from scrapy_frontier.report.figures import Standing
from scrapy_frontier.report.names import label, select_in
from scrapy_frontier.states import UNRESOLVED, Disposition, Event, State
from scrapy_frontier.store.edges import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from scrapy_frontier.report.figures import Figures

_EMISSIONS: Final = (
    f"SELECT targets FROM emission WHERE run_id = :run AND kind = {ReferenceKind.ROBOTS:d}"
)
_STANDING: Final = (
    "SELECT origin_id, state, disposition, reason_id FROM current WHERE identity_id IN :ids"
)
# Back along the chains of all of them: a scan of the attempts would read those of every page.
_EVENTS: Final = (
    "WITH RECURSIVE chain(seq) AS (SELECT last_seq FROM current WHERE identity_id IN :ids"
    " UNION SELECT t.prev_seq FROM transition AS t JOIN chain ON t.seq = chain.seq"
    " WHERE t.prev_seq > 0)"
    " SELECT t.event, count(*) FROM chain JOIN transition AS t ON t.seq = chain.seq GROUP BY t.event"
)


@dataclass(frozen=True, slots=True)
class RobotsFetches:
    """Which identities they are, where they stand, what happened to them, and how often one of
    them was referred to.
    """

    identities: frozenset[int]
    standing: Mapping[Standing, int]
    events: Mapping[int, int]
    references: int

    def by_place(self) -> Counter[tuple[int, int, int]]:
        """How many of them stand alike, at whatever origin: by state, disposition, reason id."""
        counts: Counter[tuple[int, int, int]] = Counter()
        for (_, state, disposition, reason_id), count in self.standing.items():
            counts[state, disposition, reason_id] += count
        return counts

    def by_origin(self) -> Counter[int]:
        """How many of them each origin has, by its id."""
        counts: Counter[int] = Counter()
        for standing, count in self.standing.items():
            counts[standing.origin_id] += count
        return counts

    def account(self) -> RobotsTxtAccount:
        """Their part of the account."""
        terminal: Counter[str] = Counter()
        unresolved: Counter[str] = Counter()
        for standing, count in self.standing.items():
            if standing.state == State.TERMINAL:
                terminal[label(Disposition, standing.disposition)] += count
            elif standing.state in UNRESOLVED:
                unresolved[label(State, standing.state)] += count
        return RobotsTxtAccount(
            len(self.identities),
            self.events.get(Event.DISPATCH, 0),
            self.references,
            self.events.get(Event.REDIRECT, 0),
            dict(sorted(terminal.items())),
            dict(sorted(unresolved.items())),
        )


def robots_fetches(connection: Connection, run_id: int, figures: Figures) -> RobotsFetches:
    """Find them by the references that asked for them: they have a fetch key of their own, which no
    page shares.
    """
    references = figures.references[ReferenceKind.ROBOTS, "total"]
    if not references:
        return RobotsFetches(frozenset(), {}, {}, 0)
    found = connection.scalars(text(_EMISSIONS), {"run": run_id})
    identities = frozenset(number for packed in found for number in unpack(packed))
    standing = Counter(Standing(*row) for row in select_in(connection, _STANDING, identities))
    events: Counter[int] = Counter()
    for event, count in select_in(connection, _EVENTS, identities):
        events[event] += count
    return RobotsFetches(identities, standing, events, references)
