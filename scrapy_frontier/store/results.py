"""Results that are not applied: late ones, repeated ones, and those that contradict an earlier one.

A result is known by its attempt and the digest of its payload (invariant 6). An attempt is known by its number and its
generation: a power cut can take a number back, which is given again then; a generation is not (invariant 3).
"""

from __future__ import annotations

from enum import Enum, auto

from scrapy_frontier.states import Event, State
from scrapy_frontier.store.batch import Batch, Standing
from scrapy_frontier.store.messages import Finding, Lease, Move
from scrapy_frontier.store.rows import Row


class Delivery(Enum):
    """How a response stands to what its attempt has brought before."""

    FIRST = auto()
    REPEATED = auto()
    """The same payload as before, which was applied."""
    REPEATED_LATE = auto()
    """The same payload as before, which came too late."""
    CONFLICTING = auto()


def delivery(batch: Batch, message: Move, standing: Standing | None) -> Delivery:
    """Compare a response with what its attempt has brought before; any other message is a first one."""
    lease, finding = message.lease, message.finding
    if message.event is not Event.RESPOND or finding is None or finding.payload is None:
        return Delivery.FIRST
    if (
        standing is not None
        and standing.state == State.FETCHING
        and standing.attempt_id == lease.attempt_id
    ):
        return Delivery.FIRST
    applied = _applied_payload(batch, lease)
    before = applied if applied is not None else _late_payload(batch, lease)
    if before is None:
        return Delivery.FIRST
    if before != finding.payload:
        return Delivery.CONFLICTING
    return Delivery.REPEATED if applied is not None else Delivery.REPEATED_LATE


def keep_late(
    batch: Batch, lease: Lease, event: Event, outcome: str, finding: Finding | None, at_ms: int
) -> None:
    """Keep what an attempt brought when its lease was not in force any more; once, however often it is delivered.

    A lease that was never granted brings nothing: there is no attempt that it could speak for.
    """
    if not lease.generation:
        return
    code = finding.outcome if finding is not None else outcome
    brought = (
        int(event),
        batch.reason_id(code),
        finding.status if finding is not None else None,
        finding.size if finding is not None else None,
        finding.payload if finding is not None else None,
    )
    if brought in _late_of(batch, lease):
        return
    batch.counters.late += 1
    batch.late.append(
        (
            batch.counters.late,
            batch.run_id,
            lease.identity_id,
            lease.attempt_id,
            lease.generation,
            *brought,
            at_ms,
        )
    )


def set_aside(batch: Batch, lease: Lease, finding: Finding, at_ms: int) -> None:
    """Quarantine a result that contradicts the first one of its attempt; once, however often it is delivered."""
    first = _applied_payload(batch, lease) or _late_payload(batch, lease)
    if first is None or finding.payload in _quarantined(batch, lease):
        return
    batch.counters.quarantine += 1
    batch.quarantined.append(
        (
            batch.counters.quarantine,
            batch.run_id,
            lease.identity_id,
            lease.attempt_id,
            lease.generation,
            batch.reason_id(finding.outcome),
            finding.status,
            finding.size,
            first,
            finding.payload,
            at_ms,
        )
    )


def _applied_payload(batch: Batch, lease: Lease) -> bytes | None:
    """The digest of the payload that an attempt has brought in time, None where it has brought none."""
    if _generation_of(batch, lease.attempt_id) != lease.generation:
        return None
    for row in batch.finished_attempts:
        if row[0] == lease.attempt_id:
            return _digest(row[4])
    batch.cursor.execute("SELECT payload FROM attempt WHERE attempt_id = ?", (lease.attempt_id,))
    found = batch.cursor.fetchone()
    return None if found is None else _digest(found[0])


def _generation_of(batch: Batch, attempt_id: int) -> int | None:
    """The generation that an attempt was granted under, None where there is no such attempt."""
    for row in batch.attempts:
        if row[0] == attempt_id:
            return int(row[4])
    batch.cursor.execute("SELECT generation FROM attempt WHERE attempt_id = ?", (attempt_id,))
    found = batch.cursor.fetchone()
    return None if found is None else int(found[0])


def _late_payload(batch: Batch, lease: Lease) -> bytes | None:
    """The digest of the first payload that an attempt has brought too late."""
    late = _late_of(batch, lease)
    return next((payload for *_, payload in late if payload is not None), None)


def _late_of(
    batch: Batch, lease: Lease
) -> list[tuple[int, int, int | None, int | None, bytes | None]]:
    """(event, outcome id, status, size, payload) of all that an attempt has brought too late, in that order."""
    batch.cursor.execute(
        "SELECT event, outcome_id, status, size, payload FROM late"
        " WHERE attempt_id = ? AND generation = ? ORDER BY late_id",
        (lease.attempt_id, lease.generation),
    )
    stored = [(*row[:4], _digest(row[4])) for row in batch.cursor.fetchall()]
    return [*stored, *(row[5:10] for row in batch.late if _speaks_for(row, lease))]


def _quarantined(batch: Batch, lease: Lease) -> list[bytes | None]:
    batch.cursor.execute(
        "SELECT payload FROM quarantine WHERE attempt_id = ? AND generation = ?",
        (lease.attempt_id, lease.generation),
    )
    stored = [_digest(row[0]) for row in batch.cursor.fetchall()]
    return [*stored, *(row[9] for row in batch.quarantined if _speaks_for(row, lease))]


def _speaks_for(row: Row, lease: Lease) -> bool:
    """Whether a row of `late` or `quarantine` is about this lease."""
    return bool(row[3] == lease.attempt_id and row[4] == lease.generation)


def _digest(value: bytes | None) -> bytes | None:
    return None if value is None else bytes(value)
