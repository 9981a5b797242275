"""What a running crawl says of itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table `situation`."""
    op.create_table(
        "situation",
        sa.Column("run_id", Big, autoincrement=False, nullable=False),
        sa.Column("at_ms", Big, nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id"),
        sqlite_strict=True,
    )
