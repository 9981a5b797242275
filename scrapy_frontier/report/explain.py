"""Why a URL stands where it stands: its state, its origin's gate, where it was first seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.errors import StoreError
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.identity.rejections import observe
from scrapy_frontier.report.health import gate_of, health_of_gate
from scrapy_frontier.report.history import history
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.lookup import look_up
from scrapy_frontier.report.names import NO_REASON, label, streamed, urls
from scrapy_frontier.report.robots.records import records_of, robots_origin
from scrapy_frontier.report.robots.run_policy import obeys_robots
from scrapy_frontier.report.sentences import gate_sentence, state_sentence
from scrapy_frontier.states import Event, State
from scrapy_frontier.store.edges import unpack, unpack_observations

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.policy.robots import RobotsRecord
    from scrapy_frontier.report.account import OriginHealth
    from scrapy_frontier.report.history import Step
    from scrapy_frontier.report.lookup import Found
    from scrapy_frontier.store.edges import Observation

PAGES_LISTED: Final = 5
"""Pages listed among those that refer to a URL."""


_SETTLED: Final = frozenset({State.FETCHING, State.FETCHED, State.TERMINAL, State.SUPPRESSED})
"""States in which a URL does not wait for its origin's gate."""


@dataclass(frozen=True, slots=True)
class RunStanding:
    """The run as it bears on what may be dispatched. `is_live`: None where it cannot be told;
    `opened_ms`: when a process last began to work on it.
    """

    state: str
    is_live: bool | None
    opened_ms: int


@dataclass(frozen=True, slots=True)
class Gate:
    """What the store knows of an origin's gate, and of the robots.txt that may keep it shut.

    `is_waiting`: the URL asked for may still be dispatched, so that the gate matters to it.
    """

    origin: str
    in_flight: int
    next_eligible_ms: int
    is_waiting: bool
    obeys_robots: bool
    robots: RobotsRecord | None
    health: OriginHealth | None = None


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The first reference. Seeds and the engine have no `page`; `observed` is not always kept."""

    kind: str
    page: str | None
    at: str | None
    depth: int
    observed: str | None
    fragment: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Referred:
    """How often the run refers to an identity, and the first pages that do."""

    total: int
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IdentityExplained:
    """One identity: where it stands, in data and in two sentences."""

    identity: int
    method: str
    url: str
    state: str
    disposition: str | None
    rule: str | None
    detail: Any
    since: str | None
    due_at: str | None
    attempts: int
    state_sentence: str
    gate_sentence: str
    first_seen: FirstSeen
    references: Referred


@dataclass(frozen=True, slots=True)
class RejectedSeen:
    """References spelled like the URL asked for that a rule rejected."""

    rule: str
    kind: str
    count: int
    page: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that a run knows of a URL. `rule`: the one that rejects such a reference, if any does."""

    asked: str
    url: str | None
    rule: str | None
    identities: tuple[IdentityExplained, ...]
    rejected: tuple[RejectedSeen, ...]

    @property
    def is_known(self) -> bool:
        """Whether the run has seen the URL at all."""
        return bool(self.identities or self.rejected)

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return asdict(self)


_RUN: Final = (
    "SELECT r.state, coalesce(max(s.started_ms), r.started_ms) FROM run AS r"
    " LEFT JOIN session AS s ON s.run_id = r.run_id WHERE r.run_id = :run GROUP BY r.run_id"
)
_CURRENT: Final = (
    "SELECT c.*, o.origin, o.next_eligible_ms, i.source_id, i.kind, i.depth FROM current AS c"
    " JOIN origin AS o ON o.origin_id = c.origin_id"
    " JOIN identity AS i ON i.identity_id = c.identity_id WHERE c.identity_id = :identity"
)
_IN_FLIGHT: Final = (
    "SELECT count(*) FROM current"
    f" WHERE run_id = :run AND origin_id = :origin AND state = {State.FETCHING:d}"
)
_AHEAD: Final = (
    f"SELECT count(*) FROM current WHERE state = {State.SCHEDULED:d} AND origin_id = :origin"
    " AND (rank < :rank OR (rank = :rank AND identity_id < :identity))"
)
_EMISSIONS: Final = (
    "SELECT source_id, targets FROM emission WHERE run_id = :run ORDER BY emission_id"
)
_OBSERVATIONS: Final = (
    "SELECT observations FROM emission"
    " WHERE run_id = :run AND source_id = :source AND observations IS NOT NULL"
    " ORDER BY emission_id"
)
_REJECTED: Final = (
    "SELECT r.code, j.kind, count(*) AS n, min(j.source_id) AS source_id FROM rejection AS j"
    " JOIN reason AS r ON r.reason_id = j.reason_id"
    " WHERE j.run_id = :run AND j.observed = :observed GROUP BY r.code, j.kind ORDER BY n DESC"
)


def explain(
    connection: Connection, run_id: int, asked: str, *, now_ms: int, is_live: bool | None = None
) -> Explanation:
    """Explain a URL as a run knows it; `is_known` of the answer tells whether it does."""
    lookup = look_up(connection, run_id, asked)
    state, opened_ms = connection.execute(text(_RUN), {"run": run_id}).one()
    run = RunStanding(state, is_live, opened_ms)
    return Explanation(
        asked=asked,
        url=lookup.url,
        rule=lookup.rejection.rule if lookup.rejection else None,
        identities=tuple(
            _explained(connection, run_id, run, found, now_ms) for found in lookup.identities
        ),
        rejected=_rejected(connection, run_id, asked),
    )


def _explained(
    connection: Connection, run_id: int, run: RunStanding, found: Found, now_ms: int
) -> IdentityExplained:
    row = connection.execute(text(_CURRENT), {"identity": found.identity_id}).first()
    steps = history(connection, found.identity_id)
    if row is None or not steps:
        raise StoreError(
            f"identity {found.identity_id} ({found.url}) has no history in the ledger: run"
            " `scrapy frontier verify`"
        )
    last = steps[-1]
    attempts = sum(step.event == Event.DISPATCH.label for step in steps)
    return IdentityExplained(
        identity=found.identity_id,
        method=found.method,
        url=found.url,
        state=last.target,
        disposition=last.disposition,
        rule=last.reason,
        detail=last.detail,
        since=last.at,
        due_at=iso(row.due_ms),
        attempts=attempts,
        state_sentence=state_sentence(
            last,
            is_over=run.state == "finished",
            is_live=run.is_live is not False and run.state == "running",
            attempts=attempts,
            ahead=_ahead(connection, row),
            due_at=iso(row.due_ms),
        ),
        gate_sentence=gate_sentence(_gate(connection, run_id, row), run, now_ms),
        first_seen=_first_seen(connection, run_id, row, steps[0]),
        references=_referred(connection, run_id, found.identity_id),
    )


def _gate(connection: Connection, run_id: int, row: Any) -> Gate:
    in_flight = connection.scalar(text(_IN_FLIGHT), {"run": run_id, "origin": row.origin_id})
    origin = robots_origin(row.origin)
    return Gate(
        row.origin,
        in_flight or 0,
        row.next_eligible_ms,
        is_waiting=row.state not in _SETTLED,
        obeys_robots=obeys_robots(connection, run_id),
        robots=records_of(connection, [origin]).get(origin),
        health=health_of_gate(connection, run_id, gate_of(row.origin)),
    )


def _ahead(connection: Connection, row: Any) -> int:
    if row.state != State.SCHEDULED:
        return 0
    values = {"origin": row.origin_id, "rank": row.rank, "identity": row.identity_id}
    return int(connection.scalar(text(_AHEAD), values) or 0)


def _first_seen(connection: Connection, run_id: int, row: Any, first: Step) -> FirstSeen:
    seen = _observation(connection, run_id, row.source_id, row.identity_id)
    return FirstSeen(
        kind=label(ReferenceKind, row.kind),
        page=urls(connection, [row.source_id]).get(row.source_id),
        at=first.at,
        depth=row.depth,
        observed=seen.observed if seen else None,
        fragment=seen.fragment or None if seen else None,
        text=seen.text or None if seen else None,
    )


def _observation(
    connection: Connection, run_id: int, source_id: int, identity_id: int
) -> Observation | None:
    values = {"run": run_id, "source": source_id}
    for packed in connection.scalars(streamed(_OBSERVATIONS), values):
        for seen in unpack_observations(packed):
            if seen.target == identity_id:
                return seen
    return None


def _referred(connection: Connection, run_id: int, identity_id: int) -> Referred:
    sources: Counter[int] = Counter()
    for source_id, packed in connection.execute(streamed(_EMISSIONS), {"run": run_id}):
        count = unpack(packed).count(identity_id)
        if count:
            sources[source_id] += count
    named = urls(connection, [source for source in list(sources)[: PAGES_LISTED + 1] if source])
    return Referred(sources.total(), tuple(named.values())[:PAGES_LISTED])


def _rejected(connection: Connection, run_id: int, asked: str) -> tuple[RejectedSeen, ...]:
    values = {"run": run_id, "observed": observe(asked)}
    rows = connection.execute(text(_REJECTED), values).all()
    pages = urls(connection, [row.source_id for row in rows if row.source_id])
    return tuple(
        RejectedSeen(
            row.code or NO_REASON, label(ReferenceKind, row.kind), row.n, pages.get(row.source_id)
        )
        for row in rows
    )
