"""What stands beside the tables of a store, and keeps its ledger from being changed."""

from __future__ import annotations

from typing import Final

WRITES_SEQUENCE: Final = "store_writes"
"""On PostgreSQL: counts the transactions of all writers, so that each sees whether it was alone since its last one."""

_SQLITE_GUARDS: Final = tuple(
    f"CREATE TRIGGER transition_no_{verb} BEFORE {verb} ON transition\n"
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for verb in ("UPDATE", "DELETE")
)

_POSTGRESQL_GUARDS: Final = (
    f"CREATE SEQUENCE {WRITES_SEQUENCE}",
    "CREATE FUNCTION transition_is_kept() RETURNS trigger LANGUAGE plpgsql AS\n"
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';"
    " END $$",
    *(
        f'CREATE TRIGGER "transition_no_{verb}" BEFORE {verb} ON transition\n'
        "FOR EACH STATEMENT EXECUTE FUNCTION transition_is_kept()"
        for verb in ("UPDATE", "DELETE", "TRUNCATE")
    ),
)

GUARDS: Final = {"sqlite": _SQLITE_GUARDS, "postgresql": _POSTGRESQL_GUARDS}
"""What stands beside the tables, by dialect: above all the triggers that keep the ledger from being changed."""
