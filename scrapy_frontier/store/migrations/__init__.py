"""Migrations: an older store brought to the schema of this package, forwards only.

A change of `store.schema` comes with a new file in `versions/` and a new `SCHEMA_VERSION`; a
released file is never edited. A new store is made from `store.schema` directly, and a test holds
the two equal. Which schema a store has stands in its table `meta`, so Alembic keeps no table of its
own here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection

from scrapy_frontier import failpoints
from scrapy_frontier.errors import StoreError
from scrapy_frontier.logs import get_logger
from scrapy_frontier.store import schema
from scrapy_frontier.store.database import database_named
from scrapy_frontier.store.standing import mark, schema_version

logger = get_logger(__name__)

HERE: Final = Path(__file__).parent


def migrate(connection: Connection, url: str) -> None:
    """Bring the store to `schema.SCHEMA_VERSION` in one transaction: whole, or not at all."""
    database = database_named(connection.dialect.name)
    with database.unlinked(connection), connection.begin():
        found = schema_version(connection, url)  # again: another process may have been faster
        if found == schema.SCHEMA_VERSION:
            return
        failpoints.reach("migrate.begun")
        upgrade(connection, found)
        _check_references(connection, url)
        mark(connection)
        failpoints.reach("migrate.before_commit")
    failpoints.reach("migrate.committed")
    logger.info(
        "Migrated %s from schema %s to %s",
        url,
        found,
        schema.SCHEMA_VERSION,
        extra={"action": "store_migrated"},
    )


def upgrade(connection: Connection, found: str | None) -> None:
    """Apply every migration after `found` (None: all), inside the transaction of the caller."""
    with Operations.context(MigrationContext.configure(connection)):
        for step in _steps_after(found):
            step.module.upgrade()
            failpoints.reach("migrate.step")


def _steps_after(found: str | None) -> list[Script]:
    newest_first = ScriptDirectory(str(HERE)).iterate_revisions(
        schema.SCHEMA_VERSION, found or "base"
    )
    return list(newest_first)[::-1]


def _check_references(connection: Connection, url: str) -> None:
    dangling = database_named(connection.dialect.name).dangling_references(connection)
    if dangling:
        raise StoreError(
            f"{url} was not migrated: {len(dangling)} rows refer to rows that are missing, the "
            f"first in table {dangling[0][0]!r}; run `scrapy frontier verify` with the version "
            "that wrote it"
        )
