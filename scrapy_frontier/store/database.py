"""What differs between databases: the contract that each kind of store keeps.

Everything else - batches, rows, readers, audit, reports, recovery - is one code that runs on all of them.
`store.sqlite` and `store.postgresql` are the two kinds. A database must:

- give one connection that writes, whose every transaction excludes other writers of the store from its first
  statement to its commit: ids can then be handed out as the highest plus one, and commits come in the order of ids;
- give readers that see one snapshot from their first statement on and cannot write;
- refuse, by itself, to change or delete a row of the ledger;
- free the lock of a run with the process that holds it, however that ends.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scrapy_frontier.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from scrapy_frontier.store.bulk import Cursor


class Library(Protocol):
    """The program that executes the statements, as it names itself."""

    @property
    def name(self) -> str:
        """Its name in one word, small letters."""

    @property
    def version(self) -> str:
        """Its version, as it says it."""

    @property
    def has_wal_reset_fault(self) -> bool:
        """Whether only one process at a time may write to the store."""

    def advice(self) -> str | None:
        """What the operator should know and do about it; None where it is sound."""

    def check_age(self) -> None:
        """Raise a `StoreError` if it is too old for the schema."""


class Lock(Protocol):
    """A lock between processes, which its holder loses when it ends."""

    def acquire(self) -> None:
        """Take it, or raise `RunLocked`, which says who has it and what to do."""

    def release(self) -> None:
        """Give it back. Does nothing where it is not held."""

    def holder(self) -> str:
        """Who has it."""

    def is_held(self) -> bool | None:
        """Whether some process has it; None where that cannot be told."""


@dataclass(frozen=True)
class Trouble:
    """One way in which a store fails: its cause and remedy, and whether waiting may help."""

    advice: str
    is_retryable: bool = False
    error: type[StoreError] = StoreError


class Location(Protocol):
    """Where a store is."""

    @property
    def url(self) -> str:
        """Its URL, fit to be shown: without a password."""

    @property
    def path(self) -> Path | None:
        """The absolute path of its file; None where it is no file."""

    @property
    def is_temporary(self) -> bool:
        """Whether it exists in this process only, and so is always made."""

    @property
    def database(self) -> Database:
        """The kind of database."""

    def check_readable(self) -> None:
        """Raise a `StoreError` that tells why it cannot be read, where that is known without opening it."""

    def check_writable(self, *, create: bool) -> None:
        """Raise a `StoreError` that tells why it cannot be written, where that is known without opening it."""


class Database(Protocol):
    """One kind of database. `location` is always one of its own kind."""

    @property
    def name(self) -> str:
        """SQLAlchemy's name of the dialect."""

    @property
    def title(self) -> str:
        """Its name in a sentence, with the article."""

    @property
    def remedy(self) -> str:
        """What to give a store instead of a place that something else uses."""

    def writing_engine(self, location: Any, synchronous: str, *, create: bool) -> Engine:
        """An engine with one connection, whose transactions exclude other writers; lost, it is not made again."""

    def reading_engine(self, location: Any) -> Engine:
        """An engine for short snapshots; its connections cannot write."""

    def library_of(self, connection: Connection) -> Library:
        """The program behind a connection."""

    def store_lock(self, location: Any, library: Any) -> Lock:
        """What a process holds as long as it may write to the store."""

    def run_lock(self, location: Any, connection: Connection | Engine, run_id: int) -> Lock:
        """What the one process that works on a run holds.

        `connection` is the writing one; of a store that is open for reading, the engine to ask by.
        """

    def prepare(self, connection: Connection) -> None:
        """Switch a database to what the store needs, for good; outside a transaction."""

    def survey(self, connection: Connection) -> tuple[bool, bool]:
        """Whether there is no table at all; whether there is a table `meta` with `key` and `value`."""

    def marks(self, connection: Connection) -> dict[str, str]:
        """What the table `meta` says."""

    def data_version(self, connection: Connection) -> int:
        """A number that changes whenever another connection has written since it was last asked for."""

    def checkpoint(self, connection: Connection, mode: str) -> tuple[int, int, int]:
        """Take the write-ahead log into the store; (0, -1, -1) where it is not for us to do."""

    def durably(self, connection: Connection) -> AbstractContextManager[None]:
        """A block whose commits survive a power cut, whatever the writing engine was made with.

        It begins and ends outside a transaction.
        """

    def unlinked(self, connection: Connection) -> AbstractContextManager[None]:
        """Within the block tables may be rebuilt although others refer to them."""

    def dangling_references(self, connection: Connection) -> Sequence[tuple[Any, ...]]:
        """(table, ..., table referred to) of each row that breaks a foreign key."""

    def damage(self, connection: Connection) -> tuple[list[str], bool]:
        """What the database's own check of the store finds, and whether the store can be read on."""

    def ledger_triggers(self, connection: Connection) -> set[str]:
        """The triggers that guard the ledger and are in force."""

    def unguarded(self, connection: Connection) -> AbstractContextManager[None]:
        """Within the block, which lies in one transaction, rows of the ledger may be deleted."""

    def compact(self, connection: Connection) -> None:
        """Give free space back to the disk, outside a transaction."""

    def cursor(self, connection: Connection) -> Cursor:
        """A cursor inside the transaction of `connection`, past SQLAlchemy's own execution."""

    def stream(self, connection: Connection) -> Cursor:
        """A cursor for one long answer, which is not held in memory whole: read it by `fetchmany`."""

    def stopper(self, connection: Connection) -> Callable[[], None]:
        """Ends the statement that runs on a connection, with an error there; to be called from another thread."""

    def size(self, connection: Connection) -> int:
        """Bytes that the store takes."""


def database_named(name: str) -> Database:
    """The database of this dialect."""
    if name == "sqlite":
        from scrapy_frontier.store.sqlite_database import SQLITE

        return SQLITE
    from scrapy_frontier.store.postgresql.database import POSTGRESQL

    return POSTGRESQL
