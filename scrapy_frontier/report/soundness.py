"""The store as a database: its file, its references, and the triggers that guard the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.store.database import database_named

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.findings import Findings

TRIGGERS: Final = ("transition_no_UPDATE", "transition_no_DELETE")

_EXAMPLES: Final = 100

# Columns that no foreign key guards: the ledger's are too many to be checked at each write.
_DANGLING: Final = {
    "transition.reason_id": ("seq", "reason", "reason_id"),
    "attempt.visit_id": ("attempt_id", "visit", "visit_id"),
    "attempt.outcome_id": ("attempt_id", "reason", "reason_id"),
    "emission.attempt_id": ("emission_id", "attempt", "attempt_id"),
    "rejection.run_id": ("rejection_id", "run", "run_id"),
    "rejection.source_id": ("rejection_id", "identity", "identity_id"),
    "rejection.reason_id": ("rejection_id", "reason", "reason_id"),
    "identity.source_id": ("identity_id", "identity", "identity_id"),
    "late.outcome_id": ("late_id", "reason", "reason_id"),
    "quarantine.outcome_id": ("quarantine_id", "reason", "reason_id"),
    "current.visit_id": ("identity_id", "visit", "visit_id"),
    "seed.identity_id": ("identity_id", "identity", "identity_id"),
}


def check_file(connection: Connection, findings: Findings) -> bool:
    """The database's own checks of the store, its CHECK constraints and foreign keys; False: do not go on."""
    problems, is_readable = database_named(connection.dialect.name).damage(connection)
    for problem in problems:
        findings.add(0, 0, problem)
    return is_readable


def check_dangling(connection: Connection, findings: Findings) -> None:
    """Every number that refers to a row refers to one that is there; 0 refers to none."""
    for column, (key, parent, parent_key) in _DANGLING.items():
        table, _, name = column.partition(".")
        query = (
            f"SELECT {key}, {name} FROM {table} AS child WHERE child.{name} <> 0 AND NOT EXISTS"
            f" (SELECT 1 FROM {parent} AS parent WHERE parent.{parent_key} = child.{name})"
            f" LIMIT {_EXAMPLES}"
        )
        for row, number in connection.execute(text(query)):
            findings.add(
                0, 0, f"{column} of row {row} is {number}, and table {parent} has no such row"
            )


def check_triggers(connection: Connection, findings: Findings) -> None:
    """The ledger can be neither changed nor shortened (invariant 10)."""
    present = database_named(connection.dialect.name).ledger_triggers(connection)
    for trigger in TRIGGERS:
        if trigger not in present:
            findings.add(10, 0, f"the trigger {trigger} is gone: the ledger is not protected")
