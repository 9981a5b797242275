"""Results that were kept and not applied, held against the attempts that they speak for (invariants 3 and 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.findings import Findings

# A power cut can take back leases (`synchronous = NORMAL`), whose numbers are given again under higher generations.
_OF_NO_LEASE: Final = (
    "SELECT n.{key}, n.identity_id FROM {table} AS n WHERE NOT EXISTS (SELECT 1 FROM attempt AS a"
    " WHERE a.attempt_id = n.attempt_id AND a.identity_id = n.identity_id AND a.generation = n.generation)"
    " AND NOT EXISTS (SELECT 1 FROM attempt AS a WHERE a.attempt_id = n.attempt_id AND a.generation > n.generation)"
    " LIMIT 100"
)
# What is in quarantine contradicts something: what the attempt has brought, in time or too late.
_OF_NO_CONFLICT: Final = (
    "SELECT q.quarantine_id, q.identity_id FROM quarantine AS q WHERE NOT EXISTS (SELECT 1 FROM attempt AS a"
    " WHERE a.attempt_id = q.attempt_id AND a.payload = q.first_payload) AND NOT EXISTS (SELECT 1 FROM late AS l"
    " WHERE l.attempt_id = q.attempt_id AND l.payload = q.first_payload) LIMIT 100"
)
_APPLIED: Final = (
    "SELECT q.quarantine_id, q.identity_id FROM quarantine AS q JOIN attempt AS a ON a.attempt_id = q.attempt_id"
    " WHERE a.payload = q.payload LIMIT 100"
)


def check_unapplied(connection: Connection, findings: Findings) -> None:
    """Late results and quarantined ones belong to the attempt, lease and first payload that they name."""
    for table in ("late", "quarantine"):
        query = _OF_NO_LEASE.format(table=table, key=f"{table}_id")
        for number, identity in connection.execute(text(query)):
            findings.add(3, identity, f"row {number} of table {table} is of no lease of it")
    for number, identity in connection.execute(text(_OF_NO_CONFLICT)):
        findings.add(6, identity, f"quarantined result {number} contradicts nothing on record")
    for number, identity in connection.execute(text(_APPLIED)):
        findings.add(6, identity, f"quarantined result {number} has been applied")
