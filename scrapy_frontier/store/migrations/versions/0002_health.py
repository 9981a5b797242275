"""The health of origins: how each stands, and the decisions that led there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables `health` and `health_sample`."""
    op.create_table(
        "health",
        sa.Column("run_id", Big, nullable=False),
        sa.Column("gate", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("is_calm", sa.Integer(), nullable=False),
        sa.Column("updated_ms", Big, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "gate"),
        sqlite_strict=True,
    )
    op.create_table(
        "health_sample",
        sa.Column("sample_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("gate", sa.Text(), nullable=False),
        sa.Column("at_ms", Big, nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("interval_ms", Big, nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"]),
        sa.PrimaryKeyConstraint("sample_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_health_sample", "health_sample", ["run_id", "gate", "sample_id"])
