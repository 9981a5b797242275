"""The lock of a run on a PostgreSQL server: an advisory lock of the session that writes.

It ends with the session, and so with the process: nothing has to be cleaned up by hand. It is held by the connection
that writes: whoever has lost the one has lost the other.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine

from scrapy_frontier.errors import RunLocked, StoreError
from scrapy_frontier.store.locks import PATIENCE_S, refusal_of_run
from scrapy_frontier.store.postgresql.engines import ask, lock_class

if TYPE_CHECKING:
    from scrapy_frontier.store.postgresql.location import PostgresqlLocation

_HOLDER: Final = """
SELECT a.application_name, coalesce(host(a.client_addr), 'this host'), a.backend_start, a.pid
FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.classid::bigint = %s::bigint AND l.objid::bigint = %s::bigint
"""


class SessionRunLock:
    """One process works on a run."""

    def __init__(
        self, location: PostgresqlLocation, connection: Connection | Engine, run_id: int
    ) -> None:
        self._location = location
        self._connection = connection
        self._run_id = run_id
        self._is_mine = False

    def acquire(self) -> None:
        """Take the lock, or raise `RunLocked`, which says who has it and what to do."""
        if self._is_mine:
            return
        give_up_at = time.monotonic() + PATIENCE_S
        while not self._try():
            if time.monotonic() > give_up_at:
                raise RunLocked(refusal_of_run(self._run_id, self._location.url, self.holder()))
            time.sleep(0.05)
        self._is_mine = True

    def release(self) -> None:
        """Give the lock back. Does nothing where it is not held, or the connection is gone, and the lock with it."""
        if not self._is_mine:
            return
        self._is_mine = False
        connection = self._writing()
        if connection.closed or connection.invalidated:
            return
        from psycopg import OperationalError

        statement = "SELECT pg_advisory_unlock(%s::integer, %s::integer)"
        # A connection that has died meanwhile has no lock to give back.
        with suppress(OperationalError):
            ask(connection, statement, self._key(connection))

    def holder(self) -> str:
        """Who has the lock, as the server sees it."""
        found = self._holders()
        if not found:
            return "another process"
        name, host, since, pid = found[0]
        # Who may not see the sessions of other users gets their number and nothing else.
        begun = f" since {since:%Y-%m-%dT%H:%M:%S%z}" if since is not None else ""
        return f"{name or 'another process'} at {host}{begun} (session {pid} of the server)"

    def is_held(self) -> bool | None:
        """Whether a process has the lock."""
        return bool(self._holders())

    def _try(self) -> bool:
        # One session may take its lock several times: another object of this process is another holder.
        connection = self._writing()
        if self._holders():
            return False
        statement = "SELECT pg_try_advisory_lock(%s::integer, %s::integer)"
        ((is_taken,),) = ask(connection, statement, self._key(connection))
        return bool(is_taken)

    def _writing(self) -> Connection:
        if isinstance(self._connection, Engine):
            raise StoreError(
                f"{self._location.url} was opened for reading; a run's lock is taken by who writes"
            )
        return self._connection

    def _key(self, connection: Connection) -> tuple[int, int]:
        return connection.info["writing"].lock_class, self._run_id

    def _holders(self) -> list[tuple[Any, ...]]:
        if isinstance(self._connection, Engine):
            with self._connection.connect() as reader:
                number = lock_class(reader.connection.driver_connection)
                return self._look(reader, number)
        return self._look(self._connection, self._key(self._connection)[0])

    def _look(self, connection: Connection, number: int) -> list[tuple[Any, ...]]:
        # pg_locks shows both halves of the key without their sign.
        return ask(connection, _HOLDER, (number % 2**32, self._run_id))
