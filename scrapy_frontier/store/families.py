"""Families of URLs in the ledger: their numbers, the brakes on them, and the likeness of fetched pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_frontier.policy.traps.signature import SIGNATURE_VERSION
from scrapy_frontier.store.messages import FamilyBraked, Likened, Message, Reference

if TYPE_CHECKING:
    from scrapy_frontier.store.batch import Batch
    from scrapy_frontier.store.rows import Cursor

TRAP: Final = "trap."
"""What the reason codes of all rules about traps begin with."""

RELEASED: Final = "operator.release"
"""The reason of what an operator has let go."""


def names_in(messages: Iterable[Message]) -> set[str]:
    """The families that messages name."""
    return {
        message.family
        for message in messages
        if isinstance(message, Reference | FamilyBraked) and message.family
    }


def family_id(batch: Batch, name: str) -> int:
    """The number of a family; a new one gets one."""
    known = batch.known_families.get(name)
    if known is None:
        batch.counters.family += 1
        known = batch.known_families[name] = batch.counters.family
        batch.families.append(
            (known, batch.run_id, name, SIGNATURE_VERSION, None, None, None, None)
        )
    return known


def braked(batch: Batch, message: FamilyBraked) -> None:
    """A family is held from now on, or is held wider than before."""
    number = family_id(batch, message.family)
    batch.brakes[number] = (number, message.rule, message.detail, message.at_ms)


def likened(batch: Batch, message: Likened) -> None:
    """A page was read; a page that is processed twice in one attempt counts once."""
    row = (message.attempt_id, batch.run_id, message.identity_id, *message.values)
    batch.likeness.setdefault(message.attempt_id, row)


class StoredFamily(NamedTuple):
    """A family with a brake, or one that was released."""

    name: str
    rule: str | None
    detail: str | None
    released_ms: int | None


class StoredIdentity(NamedTuple):
    """An identity as the rules about traps see it."""

    identity_id: int
    url: str
    source_id: int


class StoredLikeness(NamedTuple):
    """What is kept of the text of a page."""

    identity_id: int
    url: str
    digest: int
    bare: int
    simhash: int
    words: int
    novelty: int
    outside: int
    kind: int
    like_id: int


def marked_families(cursor: Cursor, run_id: int) -> list[StoredFamily]:
    """The families of a run with a brake, and those that were released."""
    cursor.execute(
        "SELECT name, rule, detail, released_ms FROM family WHERE run_id = ?"
        " AND (rule IS NOT NULL OR released_ms IS NOT NULL) ORDER BY family_id",
        (run_id,),
    )
    return [StoredFamily(*row) for row in cursor.fetchall()]


def latest_identities(cursor: Cursor, run_id: int, limit: int) -> list[StoredIdentity]:
    """The newest identities of a run that are in a family, oldest first."""
    cursor.execute(
        "SELECT identity_id, url, source_id FROM identity WHERE run_id = ? AND family_id > 0"
        " ORDER BY identity_id DESC LIMIT ?",
        (run_id, limit),
    )
    return [StoredIdentity(*row) for row in cursor.fetchall()][::-1]


def latest_likeness(cursor: Cursor, run_id: int, limit: int) -> list[StoredLikeness]:
    """The texts of the pages of a run that were read last, oldest first."""
    cursor.execute(
        "SELECT l.identity_id, i.url, l.digest, l.bare, l.simhash, l.words, l.novelty, l.outside, l.kind, l.like_id"
        " FROM likeness AS l JOIN identity AS i ON i.identity_id = l.identity_id WHERE l.run_id = ?"
        " ORDER BY l.attempt_id DESC LIMIT ?",
        (run_id, limit),
    )
    return [StoredLikeness(*row) for row in cursor.fetchall()][::-1]


def released_identities(cursor: Cursor, run_id: int) -> list[int]:
    """The identities that an operator let go and that wait for their turn."""
    cursor.execute(
        "SELECT c.identity_id FROM current AS c JOIN reason AS r ON r.reason_id = c.reason_id"
        " WHERE c.run_id = ? AND c.state = 3 AND r.code = ?",
        (run_id, RELEASED),
    )
    return [int(row[0]) for row in cursor.fetchall()]
