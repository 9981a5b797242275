"""Families of URLs with the brakes on them, and the likeness of fetched pages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables `family` and `likeness`, and to each identity its family."""
    with op.batch_alter_table("identity", table_kwargs={"sqlite_strict": True}) as identity:
        identity.add_column(
            sa.Column("family_id", Big, nullable=False, server_default=sa.text("0"))
        )
    op.create_table(
        "family",
        sa.Column("family_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("braked_ms", Big, nullable=True),
        sa.Column("released_ms", Big, nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"]),
        sa.PrimaryKeyConstraint("family_id"),
        sa.UniqueConstraint("run_id", "name", name="ux_family"),
        sqlite_strict=True,
    )
    op.create_table(
        "likeness",
        sa.Column("attempt_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", Big, nullable=False),
        sa.Column("bare", Big, nullable=False),
        sa.Column("simhash", Big, nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("novelty", sa.Integer(), nullable=False),
        sa.Column("outside", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("like_id", Big, nullable=False),
        sa.Column("distance", sa.Integer(), nullable=False),
        sa.Column("canonical", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"]),
        sa.PrimaryKeyConstraint("attempt_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_likeness_run", "likeness", ["run_id", "attempt_id"])
