"""Rendered pages, and what they have asked for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables `rendering` and `sub_request`."""
    op.create_table(
        "rendering",
        sa.Column("attempt_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("wall_ms", Big, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"]),
        sa.PrimaryKeyConstraint("attempt_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_rendering_run", "rendering", ["run_id", "attempt_id"])
    op.create_table(
        "sub_request",
        sa.Column("attempt_id", Big, autoincrement=False, nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("count", Big, nullable=False),
        sa.Column("bytes", Big, nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", "origin", "type", "outcome"),
        sqlite_strict=True,
    )
    op.create_index("ix_sub_request_run", "sub_request", ["run_id", "attempt_id"])
