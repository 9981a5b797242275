"""How a database stands to this package: empty, current, older, newer, or somebody else's."""

from __future__ import annotations

import time
from typing import Final

from sqlalchemy import Connection, text

from scrapy_frontier import __version__, failpoints
from scrapy_frontier.errors import SchemaMismatch, StoreError
from scrapy_frontier.store import schema
from scrapy_frontier.store.database import database_named

EMPTY: Final = ""
"""The schema version of a database without tables."""


class EmptyStore(StoreError):
    """There is a file or database, and no crawl has written to it yet."""


def check_current(connection: Connection, url: str) -> None:
    """Raise unless the store has exactly the schema of this package."""
    found = schema_version(connection, url)
    if found == EMPTY:
        raise _empty(url)
    if found != schema.SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{url} has the schema {found}, and this scrapy_frontier {__version__} reads "
            f"{schema.SCHEMA_VERSION}; bring it up to date with `scrapy frontier migrate`, or read "
            "it with the version that wrote it"
        )


def bring_up_to_date(connection: Connection, url: str, *, create: bool) -> None:
    """Make the schema in an empty database, or migrate an older one; each in one transaction, whole
    or not at all.

    What is not ours, or newer, is refused before anything in it is changed.
    """
    found = schema_version(connection, url)
    if found == EMPTY and not create:
        raise _empty(url)
    database_named(connection.dialect.name).prepare(connection)
    if found == EMPTY:
        _create(connection, url)
    elif found != schema.SCHEMA_VERSION:
        from scrapy_frontier.store.migrations import migrate  # Alembic takes long to import

        migrate(connection, url)


def schema_version(connection: Connection, url: str) -> str:
    """The schema version that the database names, never a newer one; `EMPTY` without tables."""
    database = database_named(connection.dialect.name)
    is_empty, has_meta = database.survey(connection)
    if is_empty:
        return EMPTY
    said = database.marks(connection) if has_meta else {}
    if said.get("product") != schema.PRODUCT or "schema" not in said:
        raise SchemaMismatch(
            f"{url} is {database.title} of something else; nothing was changed in it: "
            f"{database.remedy}"
        )
    found = str(said["schema"])
    if found > schema.SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{url} has the schema {found}, given by scrapy_frontier {said.get('version')}; this "
            f"is {__version__}, which knows schemas up to {schema.SCHEMA_VERSION}: upgrade "
            "it, or use another store"
        )
    return found


def mark(connection: Connection, **marks: str) -> None:
    """Write into `meta` which schema the store has now and which version of the package gave it."""
    marks |= {"schema": schema.SCHEMA_VERSION, "version": __version__}
    statement = text(
        "INSERT INTO meta (key, value) VALUES (:key, :value)"
        " ON CONFLICT(key) DO UPDATE SET value = excluded.value"
    )
    connection.execute(statement, [{"key": key, "value": value} for key, value in marks.items()])


def _create(connection: Connection, url: str) -> None:
    with connection.begin():
        if schema_version(connection, url) != EMPTY:
            return  # another process was faster
        schema.metadata.create_all(connection, checkfirst=False)
        mark(connection, product=schema.PRODUCT, created_ms=str(int(time.time() * 1000)))
        failpoints.reach("create.before_commit")


def _empty(url: str) -> EmptyStore:
    return EmptyStore(
        f"{url} is empty: no crawl has written to it yet; start one, or check the URL"
    )
