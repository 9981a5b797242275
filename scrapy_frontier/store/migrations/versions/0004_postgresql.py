"""PostgreSQL: the guards of the ledger, and the count of all writers' transactions."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add what the first schema had for SQLite only."""
    if op.get_context().dialect.name != "postgresql":
        return
    op.execute("CREATE SEQUENCE store_writes")
    op.execute(
        "CREATE FUNCTION transition_is_kept() RETURNS trigger LANGUAGE plpgsql AS\n"
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';"
        " END $$"
    )
    for verb in ("UPDATE", "DELETE", "TRUNCATE"):
        op.execute(
            f'CREATE TRIGGER "transition_no_{verb}" BEFORE {verb} ON transition\n'
            "FOR EACH STATEMENT EXECUTE FUNCTION transition_is_kept()"
        )
