"""What no part of the package does to a store, on each kind of database: to see how it takes it."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.sqlite import DRIVER


def change(store: Store, statement: str, **values: object) -> None:
    """Change rows behind the store's back: no trigger, foreign key or CHECK constraint holds it up."""
    connection = store.writer_connection()
    if store.database.name == "postgresql":
        with connection.begin():
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            _change_unchecked(connection, statement, values)
        return
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA foreign_keys = 0")
    with connection.begin():
        triggers = connection.execute(
            text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        ).all()
        for name, _ in triggers:
            connection.execute(text(f"DROP TRIGGER {name}"))
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = 1")
        connection.execute(text(statement), values)
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = 0")
        for _, sql in triggers:
            connection.execute(text(sql))
    cursor.execute("PRAGMA foreign_keys = 1")


def _change_unchecked(connection: Connection, statement: str, values: dict[str, object]) -> None:
    """On PostgreSQL a CHECK constraint is taken away while it stands in the way."""
    try:
        with connection.begin_nested():
            connection.execute(text(statement), values)
            return
    except IntegrityError as error:
        broken = getattr(error.orig, "diag").constraint_name  # noqa: B009 - known to psycopg alone
    table, definition = connection.execute(
        text(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conname = :name"
        ),
        {"name": broken},
    ).one()
    connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {broken}")
    _change_unchecked(connection, statement, values)
    again = definition.removesuffix(" NOT VALID").replace("%", "%%")
    connection.exec_driver_sql(f"ALTER TABLE {table} ADD CONSTRAINT {broken} {again} NOT VALID")


def drop_trigger(connection: Connection, name: str) -> None:
    """Take a guard away from the ledger."""
    on_table = " ON transition" if connection.dialect.name == "postgresql" else ""
    with connection.begin():
        connection.exec_driver_sql(f'DROP TRIGGER "{name}"{on_table}')


def be_patient(store: Store, milliseconds: int) -> None:
    """How long the writing connection waits for another one."""
    _set(store, f"PRAGMA busy_timeout = {milliseconds}", f"SET lock_timeout = {milliseconds}")


def refuse_writes(store: Store, *, refused: bool) -> None:
    """Let the database refuse what the writing connection writes."""
    _set(
        store,
        f"PRAGMA query_only = {int(refused)}",
        f"SET default_transaction_read_only = {'on' if refused else 'off'}",
    )


def _set(store: Store, on_sqlite: str, on_postgresql: str) -> None:
    raw = store.writer_connection().connection.driver_connection
    assert raw is not None
    if store.database.name == "sqlite":
        raw.execute(on_sqlite)
    else:
        raw.execute(on_postgresql)
        raw.commit()


def hold_write_lock(store: Store, url: str) -> Callable[[], None]:
    """Another connection that writes; the answer gives its lock back."""
    if store.path is not None:
        connection = DRIVER.connect(str(store.path), isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        return lambda: (connection.execute("ROLLBACK"), connection.close())  # type: ignore[func-returns-value]
    other = open_store(url)
    transaction = other.writer_connection().begin()
    return lambda: (transaction.rollback(), other.close())  # type: ignore[func-returns-value]
