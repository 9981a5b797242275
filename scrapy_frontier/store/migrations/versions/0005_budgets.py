"""What is spent of each budget, and a way to what stands deferred."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table `budget` and the index of deferred identities."""
    op.create_table(
        "budget",
        sa.Column("run_id", Big, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("most", Big, nullable=False),
        sa.Column("used", Big, nullable=False),
        sa.Column("held", Big, nullable=False),
        sa.Column("first_id", Big, nullable=False),
        sa.Column("first_ms", Big, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "rule", "pattern"),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_current_deferred",
        "current",
        ["run_id", "reason_id", "rank", "identity_id"],
        unique=False,
        sqlite_where=sa.text("state = 8"),
        postgresql_where=sa.text("state = 8"),
    )
