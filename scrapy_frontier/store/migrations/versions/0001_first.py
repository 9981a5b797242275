"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables in an empty database."""
    op.create_table(
        "attempt",
        sa.Column("attempt_id", Big, autoincrement=False, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("session_id", Big, nullable=False),
        sa.Column("visit_id", Big, nullable=False),
        sa.Column("generation", Big, nullable=False),
        sa.Column("dispatched_ms", Big, nullable=False),
        sa.Column("finished_ms", Big, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("size", Big, nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("outcome_id", Big, nullable=True),
        sa.PrimaryKeyConstraint("attempt_id"),
        sqlite_strict=True,
    )
    op.create_table(
        "current",
        sa.Column("identity_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("origin_id", Big, nullable=False),
        sa.Column("state", sa.Integer(), nullable=False),
        sa.Column("disposition", sa.Integer(), nullable=False),
        sa.Column("reason_id", Big, nullable=False),
        sa.Column("rank", Big, nullable=False),
        sa.Column("due_ms", Big, nullable=False),
        sa.Column("visit_id", Big, nullable=False),
        sa.Column("attempt_id", Big, nullable=False),
        sa.Column("generation", Big, nullable=False),
        sa.Column("last_seq", Big, nullable=False),
        sa.CheckConstraint(
            "(state = 6) = (disposition <> 0) AND disposition IN (0, 1, 2, 3, 4, 5, 6, 7, 8)",
            name="current_disposition",
        ),
        sa.CheckConstraint(
            "state IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND state <> 0", name="current_state"
        ),
        sa.PrimaryKeyConstraint("identity_id"),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_current_due",
        "current",
        ["run_id", "due_ms"],
        unique=False,
        sqlite_where=sa.text("due_ms > 0"),
        postgresql_where=sa.text("due_ms > 0"),
    )
    op.create_index(
        "ix_current_scheduled",
        "current",
        ["origin_id", "rank", "identity_id"],
        unique=False,
        sqlite_where=sa.text("state = 3"),
        postgresql_where=sa.text("state = 3"),
    )
    op.create_table(
        "emission",
        sa.Column("emission_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("source_id", Big, nullable=False),
        sa.Column("attempt_id", Big, nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("fresh", sa.Integer(), nullable=False),
        sa.Column("duplicates", sa.Integer(), nullable=False),
        sa.Column("excluded", sa.Integer(), nullable=False),
        sa.Column("rejected", sa.Integer(), nullable=False),
        sa.Column("targets", sa.LargeBinary(), nullable=False),
        sa.Column("observations", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "total = fresh + duplicates + excluded + rejected", name="emission_total"
        ),
        sa.PrimaryKeyConstraint("emission_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_emission_source", "emission", ["source_id"], unique=False)
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
        sqlite_strict=True,
    )
    op.create_table(
        "policy",
        sa.Column("policy_id", Big, autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_ms", Big, nullable=False),
        sa.PrimaryKeyConstraint("policy_id"),
        sa.UniqueConstraint("digest"),
        sqlite_strict=True,
    )
    op.create_table(
        "reason",
        sa.Column("reason_id", Big, autoincrement=False, nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("reason_id"),
        sa.UniqueConstraint("code"),
        sqlite_strict=True,
    )
    op.create_table(
        "rejection",
        sa.Column("rejection_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("source_id", Big, nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("reason_id", Big, nullable=False),
        sa.Column("observed", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("rejection_id"),
        sqlite_strict=True,
    )
    op.create_table(
        "robots",
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("updated_ms", Big, nullable=False),
        sa.PrimaryKeyConstraint("origin"),
        sqlite_strict=True,
    )
    op.create_table(
        "robots_text",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_strict=True,
    )
    op.create_table(
        "seed",
        sa.Column("identity_id", Big, autoincrement=False, nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("identity_id"),
        sqlite_strict=True,
    )
    op.create_table(
        "tally",
        sa.Column("run_id", Big, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("count", Big, nullable=False),
        sa.Column("example", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "kind", "name"),
        sqlite_strict=True,
    )
    op.create_table(
        "transition",
        sa.Column("seq", Big, autoincrement=False, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("prev_seq", Big, nullable=False),
        sa.Column("attempt_id", Big, nullable=False),
        sa.Column("event", sa.Integer(), nullable=False),
        sa.Column("from_to", sa.Integer(), nullable=False),
        sa.Column("disposition", sa.Integer(), nullable=False),
        sa.Column("at_ms", Big, nullable=False),
        sa.Column("context_id", Big, nullable=False),
        sa.Column("reason_id", Big, nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("evidence", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "(event = 1 AND from_to IN (1)) OR (event = 2 AND from_to IN (18)) OR (event = 3 AND "
            "from_to IN (25)) OR (event = 4 AND from_to IN (25, 41, 57, 73, 121, 137)) OR (event = "
            "5 AND from_to IN (24, 40, 56)) OR (event = 6 AND from_to IN (35)) OR (event = 7 AND "
            "from_to IN (52)) OR (event = 8 AND from_to IN (54, 134)) OR (event = 9 AND from_to IN "
            "(69)) OR (event = 10 AND from_to IN (71, 87)) OR (event = 11 AND from_to IN (67, 83)) "
            "OR (event = 12 AND from_to IN (70, 86, 118)) OR (event = 13 AND from_to IN (86)) OR "
            "(event = 14 AND from_to IN (86)) OR (event = 15 AND from_to IN (86)) OR (event = 16 "
            "AND from_to IN (115)) OR (event = 17 AND from_to IN (131)) OR (event = 18 AND from_to "
            "IN (146)) OR (event = 19 AND from_to IN (99))",
            name="transition_legal",
        ),
        sa.CheckConstraint(
            "(from_to % 16 = 6) = (disposition <> 0) AND event IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "
            "11, 12, 13, 14, 15, 16, 17, 18, 19)",
            name="transition_disposition",
        ),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_strict=True,
    )
    op.create_table(
        "run",
        sa.Column("run_id", Big, autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spider", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_ms", Big, nullable=False),
        sa.Column("finished_ms", Big, nullable=True),
        sa.Column("stop_reason", sa.Text(), nullable=True),
        sa.Column("stop_detail", sa.Text(), nullable=True),
        sa.Column("policy_id", Big, nullable=False),
        sa.CheckConstraint("state IN ('running', 'stopped', 'finished')", name="run_state"),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["policy.policy_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_run_name", "run", ["name"], unique=False)
    op.create_table(
        "origin",
        sa.Column("origin_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("next_eligible_ms", Big, server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.run_id"],
        ),
        sa.PrimaryKeyConstraint("origin_id"),
        sa.UniqueConstraint("run_id", "origin", name="ux_origin"),
        sqlite_strict=True,
    )
    op.create_table(
        "session",
        sa.Column("session_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("policy_id", Big, nullable=False),
        sa.Column("started_ms", Big, nullable=False),
        sa.Column("ended_ms", Big, nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["policy.policy_id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.run_id"],
        ),
        sa.PrimaryKeyConstraint("session_id"),
        sqlite_strict=True,
    )
    op.create_index("ix_session_run", "session", ["run_id"], unique=False)
    op.create_table(
        "context",
        sa.Column("context_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("policy_id", Big, nullable=False),
        sa.Column("session_id", Big, nullable=False),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["policy.policy_id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.run_id"],
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["session.session_id"],
        ),
        sa.PrimaryKeyConstraint("context_id"),
        sa.UniqueConstraint("run_id", "policy_id", "session_id", name="ux_context"),
        sqlite_strict=True,
    )
    op.create_table(
        "identity",
        sa.Column("identity_id", Big, autoincrement=False, nullable=False),
        sa.Column("run_id", Big, nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("origin_id", Big, nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("source_id", Big, nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("record", sa.Text(), nullable=True),
        sa.CheckConstraint("length(key) = 16", name="identity_key"),
        sa.ForeignKeyConstraint(
            ["origin_id"],
            ["origin.origin_id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.run_id"],
        ),
        sa.PrimaryKeyConstraint("identity_id"),
        sqlite_strict=True,
    )
    op.create_index("ux_identity_key", "identity", ["run_id", "key"], unique=True)
    op.create_table(
        "visit",
        sa.Column("visit_id", Big, autoincrement=False, nullable=False),
        sa.Column("identity_id", Big, nullable=False),
        sa.Column("record", sa.Text(), nullable=True),
        sa.Column("rank", Big, nullable=False),
        sa.Column("due_ms", Big, nullable=False),
        sa.Column("is_waiting", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["identity_id"],
            ["identity.identity_id"],
        ),
        sa.PrimaryKeyConstraint("visit_id"),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_visit_waiting",
        "visit",
        ["identity_id"],
        unique=False,
        sqlite_where=sa.text("is_waiting = 1"),
        postgresql_where=sa.text("is_waiting = 1"),
    )
    if op.get_context().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER transition_no_{verb} BEFORE {verb} ON transition\n"
                "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )
