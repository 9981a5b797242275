"""Letting go what is deferred: a family, an origin, or one URL of a run on which no process works.

The identities are scheduled under a policy version of their own, which names what was released, and the run can be
resumed: that is when they are fetched.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select, text, update

from scrapy_frontier.frontier import runs
from scrapy_frontier.identity import origin_of
from scrapy_frontier.states import Event, State
from scrapy_frontier.store import schema
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.families import RELEASED, TRAP
from scrapy_frontier.store.messages import Reason, Transit
from scrapy_frontier.store.rows import cursor_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.store.opening import Store

CHUNK: Final = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be let go: identities by their number, or what a rule holds on an origin or in a family.

    Without a `rule`, that is every rule about traps.
    """

    origin: str | None = None
    family: str | None = None
    identities: tuple[int, ...] = ()
    rule: str | None = None

    def covers(self, url: str, detail: str | None) -> bool:
        """Whether a URL that such a rule holds is meant."""
        if self.origin is not None and origin_of(url) != self.origin:
            return False
        return self.family is None or json.loads(detail or "{}").get("family") == self.family

    def inputs(self) -> dict[str, Any]:
        """What was asked for, as the reason keeps it."""
        named = {"origin": self.origin, "family": self.family, "rule": self.rule}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Released:
    """What was let go: identities, and families that no brake is put on any more."""

    run: int
    policy_version: str
    identities: int
    families: tuple[str, ...]


_HELD: Final = (
    "SELECT c.identity_id, i.url, t.detail FROM current AS c"
    " JOIN identity AS i ON i.identity_id = c.identity_id"
    " JOIN reason AS r ON r.reason_id = c.reason_id JOIN transition AS t ON t.seq = c.last_seq"
    f" WHERE c.run_id = :run AND c.state = {State.DEFERRED:d}"
    f" AND (r.code = :rule OR (:rule = '' AND r.code LIKE '{TRAP}%'))"
    " AND c.identity_id > :last ORDER BY c.identity_id LIMIT :limit"
)
_DEFERRED: Final = (
    "SELECT identity_id FROM current WHERE run_id = :run AND identity_id = :number"
    f" AND state = {State.DEFERRED:d}"
)


def release(store: Store, run_id: int, wanted: Wanted) -> Released:
    """Let go what is wanted. Raises `RunLocked` where a process works on the run; nothing is changed then."""
    lock = store.run_lock(run_id)
    lock.acquire()
    try:
        with runs.transaction(store, "reading what is deferred") as connection:
            numbers = list(_numbers(connection, run_id, wanted))
            families = _families(connection, run_id, wanted)
            before = connection.execute(
                select(schema.run).where(schema.run.c.run_id == run_id)
            ).one()
        if not numbers and not families:
            return Released(run_id, _digest(store, before.policy_id), 0, ())
        return _release(store, before, wanted, numbers, families)
    finally:
        lock.release()


def _release(
    store: Store, before: Any, wanted: Wanted, numbers: list[int], families: dict[int, str]
) -> Released:
    reason = Reason(RELEASED, json.dumps(wanted.inputs(), ensure_ascii=False))
    now_ms = int(time.time() * 1000)
    with runs.transaction(store, "releasing what is deferred") as connection:
        run = runs.open_run(
            connection,
            before.run_id,
            spider=before.spider,
            name=before.name,
            policy=_policy(connection, before.policy_id, wanted, numbers),
            versions={"scrapy-frontier": version("scrapy-frontier"), "command": "release"},
        )
        applier = Applier(run.run_id, run.context_id, run.session_id)
        cursor = cursor_of(connection)
        applier.load(cursor)
        for start in range(0, len(numbers), CHUNK):
            part = numbers[start : start + CHUNK]
            applier.keep(applier.apply(cursor, [Transit(part, Event.RELEASE, reason, now_ms)]))
        for family_id in families:
            connection.execute(
                update(schema.family)
                .where(schema.family.c.family_id == family_id)
                .values(released_ms=now_ms)
            )
        detail = {**json.loads(before.stop_detail or "{}"), "released": len(numbers)}
        runs.close_run(connection, run, runs.STOPPED, before.stop_reason or "interrupted", detail)
    return Released(run.run_id, run.policy, len(numbers), tuple(families.values()))


def _numbers(connection: Connection, run_id: int, wanted: Wanted) -> Iterator[int]:
    """The deferred identities that are meant."""
    for number in wanted.identities:
        yield from connection.scalars(text(_DEFERRED), {"run": run_id, "number": number})
    if wanted.identities:
        return
    last = 0
    while True:
        query = {"run": run_id, "last": last, "limit": CHUNK, "rule": wanted.rule or ""}
        part = connection.execute(text(_HELD), query).all()
        if not part:
            return
        last = part[-1].identity_id
        yield from (row.identity_id for row in part if wanted.covers(row.url, row.detail))


def _families(connection: Connection, run_id: int, wanted: Wanted) -> dict[int, str]:
    """The families that no brake is to be put on any more: those with one, or the one that is named."""
    if wanted.identities:
        return {}
    family = schema.family
    query = select(family.c.family_id, family.c.name, family.c.rule).where(
        family.c.run_id == run_id, family.c.released_ms.is_(None)
    )
    found = {}
    for family_id, name, rule in connection.execute(query):
        origin, _, shape = name.partition(" ")
        is_meant = shape == wanted.family if wanted.family is not None else rule is not None
        has_rule = wanted.rule in (None, f"{TRAP}{rule}")
        if is_meant and has_rule and wanted.origin in (None, origin):
            found[family_id] = name
    return found


def _policy(
    connection: Connection, policy_id: int, wanted: Wanted, numbers: list[int]
) -> dict[str, Any]:
    """The policy in force, and what is released on top of it."""
    policy = schema.policy
    stored = connection.execute(select(policy.c.text).where(policy.c.policy_id == policy_id))
    inputs: dict[str, Any] = json.loads(stored.scalar_one())
    said = {**wanted.inputs(), **({"identities": numbers} if wanted.identities else {})}
    return {**inputs, "released": [*inputs.get("released", ()), said]}


def _digest(store: Store, policy_id: int) -> str:
    policy = schema.policy
    with store.reader() as connection:
        found = connection.execute(select(policy.c.digest).where(policy.c.policy_id == policy_id))
        return str(found.scalar_one())
