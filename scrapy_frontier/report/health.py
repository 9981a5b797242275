"""How the origins of a run fare: what each may be asked for, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.policy.health import BACK_OFF, EASE, HealthState, Kind, load
from scrapy_frontier.report.account import OriginHealth
from scrapy_frontier.report.instants import iso

if TYPE_CHECKING:
    from sqlalchemy import Connection

_STATES: Final = "SELECT gate, state, is_calm, updated_ms FROM health WHERE run_id = :run"

_OF_GATE: Final = f"{_STATES} AND gate = :gate"

_TROUBLED: Final = f"{_STATES} AND is_calm = 0 ORDER BY updated_ms DESC LIMIT :limit"

_COUNT_TROUBLED: Final = "SELECT count(*) FROM health WHERE run_id = :run AND is_calm = 0"

_DECISIONS: Final = (
    "SELECT gate, code, count(*) FROM health_sample"
    f" WHERE run_id = :run AND code IN ('{BACK_OFF}', '{EASE}') GROUP BY gate, code"
)

_WORDS: Final[Mapping[str, str]] = {
    Kind.REFUSED.label: "it asked to slow down (429 or 503)",
    Kind.ERROR.label: "it answered with server errors",
    Kind.DOWN.label: "what stands before it did not reach it",
    Kind.TIMEOUT.label: "it did not answer in time",
    Kind.BROKEN.label: "its connections failed",
    Kind.UNREACHED.label: "it could not be reached",
}
"""The last trouble of an origin, in words."""


def gate_of(origin: str) -> str:
    """The gate of an origin's queue: its own, or the one that a `download_slot` in brackets names."""
    return origin.partition(" (")[2][:-1] or origin


def health_of_origins(connection: Connection, run_id: int) -> dict[str, OriginHealth]:
    """The health of every gate that a sample was kept of, by gate."""
    counts: dict[tuple[str, str], int] = {
        (gate, code): count
        for gate, code, count in connection.execute(text(_DECISIONS), {"run": run_id})
    }
    return {
        row.gate: _account(
            row, counts.get((row.gate, BACK_OFF), 0), counts.get((row.gate, EASE), 0)
        )
        for row in connection.execute(text(_STATES), {"run": run_id})
    }


def health_of_gate(connection: Connection, run_id: int, gate: str) -> OriginHealth | None:
    """The health of one gate, without its counts; None where no sample was kept."""
    row = connection.execute(text(_OF_GATE), {"run": run_id, "gate": gate}).first()
    return None if row is None else _account(row, 0, 0)


def troubled_gates(
    connection: Connection, run_id: int, limit: int
) -> tuple[int, dict[str, OriginHealth]]:
    """How many gates are held to less than they might be, and the health of those that it was decided of last."""
    rows = connection.execute(text(_TROUBLED), {"run": run_id, "limit": limit})
    found = {row.gate: _account(row, 0, 0) for row in rows}
    if len(found) < limit:
        return len(found), found
    return int(connection.scalar(text(_COUNT_TROUBLED), {"run": run_id}) or 0), found


def _account(row: Any, backed_off: int, eased: int) -> OriginHealth:
    state = load(HealthState, json.loads(row.state))
    return OriginHealth(
        concurrency=state.concurrency,
        interval_s=round(state.interval_s, 3),
        is_held_back=not row.is_calm,
        is_closed=state.is_closed,
        cause=state.cause or None,
        failing_since=iso(int((state.failing_since or 0.0) * 1000)),
        backed_off=backed_off,
        eased=eased,
        updated_at=iso(row.updated_ms),
    )


def closed_sentence(origin: str, health: OriginHealth | None, *, is_over: bool) -> str | None:
    """That an origin is closed, and why; None where it is not."""
    if health is None or not health.is_closed:
        return None
    then = "" if is_over else "; a resumed run asks it again, with one request first"
    return f"{origin} was closed for this run: nothing but failures for too long, {cause_words(health)}{then}."


def pace_words(health: OriginHealth | None) -> str:
    """What an origin is held to, and since which trouble, to be added to a sentence; "" at ease."""
    if health is None or not health.is_held_back:
        return ""
    requests = "1 request" if health.concurrency == 1 else f"{health.concurrency} requests"
    why = f", because {cause_words(health)}" if health.cause else ""
    return f" It is held to {requests} in flight, {health.interval_s:g} s apart{why}."


def cause_words(health: OriginHealth) -> str:
    """The last trouble, in words."""
    return _WORDS.get(health.cause or "", f"last {health.cause}")
