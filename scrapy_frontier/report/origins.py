"""The origins of a run: what was found there and how its attempts went."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.report.account import OriginAccount, OriginHealth
from scrapy_frontier.report.health import gate_of, health_of_origins
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import label
from scrapy_frontier.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from scrapy_frontier.report.figures import AttemptCount, AttemptKind, Figures
    from scrapy_frontier.report.robots.fetches import RobotsFetches

    _Attempts = tuple[AttemptKind, AttemptCount]

_ORIGINS: Final = "SELECT origin_id, origin, next_eligible_ms FROM origin WHERE run_id = :run"


def origin_accounts(
    connection: Connection, run_id: int, figures: Figures, fetches: RobotsFetches
) -> tuple[OriginAccount, ...]:
    """All origins of the run, those with the most identities first."""
    states: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for standing, identities in figures.standing.items():
        states[standing.origin_id][standing.state] += identities.count
    attempts: defaultdict[int, list[_Attempts]] = defaultdict(list)
    for kind, found in figures.attempts.items():
        attempts[kind.origin_id].append((kind, found))
    robots_txt = fetches.by_origin()
    health = health_of_origins(connection, run_id)
    rows = connection.execute(text(_ORIGINS), {"run": run_id}).all()
    rows = sorted(rows, key=lambda row: (-states[row[0]].total(), row[1]))
    return tuple(
        _account(
            origin,
            next_ms,
            states[number],
            robots_txt[number],
            attempts[number],
            health.get(gate_of(origin)),
        )
        for number, origin, next_ms in rows
    )


def _account(
    origin: str,
    next_ms: int,
    states: Counter[int],
    robots_txt: int,
    groups: Sequence[_Attempts],
    health: OriginHealth | None,
) -> OriginAccount:
    by_status: Counter[str] = Counter()
    for kind, found in groups:
        by_status[f"{kind.status_class}xx" if kind.status_class else "none"] += found.count
    return OriginAccount(
        origin=origin,
        identities={label(State, state): states[state] for state in sorted(states)},
        robots_txt=robots_txt,
        attempts=by_status.total(),
        by_status=dict(sorted(by_status.items())),
        bytes=sum(found.size for _, found in groups),
        first_attempt_at=iso(min((found.first_ms for _, found in groups), default=None)),
        last_attempt_at=iso(max((found.last_ms for _, found in groups), default=None)),
        next_eligible_at=iso(next_ms),
        health=health,
    )
