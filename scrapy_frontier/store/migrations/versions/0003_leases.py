"""Leases that expire; late results and conflicting ones are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

LEASED = sa.text("state IN (4, 5)")


def upgrade() -> None:
    """Give attempts an expiry, and late and conflicting results tables of their own."""
    with op.batch_alter_table("attempt", table_kwargs={"sqlite_strict": True}) as attempt:
        attempt.add_column(
            sa.Column("expires_ms", Big, nullable=False, server_default=sa.text("0"))
        )
    op.create_index(
        "ix_current_leased",
        "current",
        ["run_id"],
        unique=False,
        sqlite_where=LEASED,
        postgresql_where=LEASED,
    )
    op.create_table(
        "late",
        sa.Column("late_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("attempt_id", Big, nullable=False),
        sa.Column("generation", Big, nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("outcome_id", Big, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("size", Big, nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("at_ms", Big, nullable=False),
        sa.PrimaryKeyConstraint("late_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_late_attempt", "late", ["attempt_id"], unique=False)
    op.create_table(
        "quarantine",
        sa.Column("quarantine_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("attempt_id", Big, nullable=False),
        sa.Column("generation", Big, nullable=False),
        sa.Column("outcome_id", Big, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("size", Big, nullable=True),
        sa.Column("first_payload", sa.LargeBinary(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("at_ms", Big, nullable=False),
        sa.CheckConstraint("payload <> first_payload", name="quarantine_differs"),
        sa.PrimaryKeyConstraint("quarantine_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_quarantine_attempt", "quarantine", ["attempt_id"], unique=False)
