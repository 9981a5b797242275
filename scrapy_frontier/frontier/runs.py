"""Opening and closing a run in the store: which run it is, who works on it, under which policy."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, func, insert, select, text, update

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.states import State
from scrapy_frontier.store import ids, schema
from scrapy_frontier.store.opening import Store
from scrapy_frontier.store.trouble import store_errors

REPARSE_OF: Final = "reparse_of"
"""What a session's detail calls the run that it parses again."""

FINISHED: Final = "finished"
STOPPED: Final = "stopped"


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that this process works on."""

    run_id: int
    name: str
    session_id: int
    context_id: int
    policy: str
    is_resumed: bool
    has_new_policy: bool


@contextmanager
def transaction(store: Store, what: str) -> Iterator[Connection]:
    """A transaction on the store's writing connection; errors of the database come out as `StoreError`."""
    connection = store.writer_connection()
    store.check_place()
    with store_errors(f"{what} in {store.url}"), connection.begin():
        yield connection


def reason_id(connection: Connection, code: str) -> int:
    """The number of a reason code in this store; a new code gets one."""
    reason = schema.reason
    found = connection.execute(select(reason.c.reason_id).where(reason.c.code == code)).scalar()
    if found is None:
        found = _next_id(connection, reason.c.reason_id)
        connection.execute(insert(reason).values(reason_id=found, code=code))
    return int(found)


def policy_digest(policy: Mapping[str, Any]) -> tuple[str, str]:
    """(digest, text) of a policy: the settings and rules in force, as canonical JSON."""
    text = json.dumps(policy, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest(), text


def find_unfinished(store: Store, spider: str, name: str | None, *, is_own: bool) -> int | None:
    """The run that a crawl with these settings continues, or None where it begins a new one.

    `is_own`: the store belongs to this job alone, so that its last unfinished run is meant, whatever its name. A run
    that parses an earlier one again is never continued: it has nothing to fetch.
    Raises `ConfigError` where the named run belongs to another spider.
    """
    if name is None:
        return None
    run = schema.run
    query = select(run.c.run_id, run.c.spider).where(run.c.state != FINISHED)
    query = query.where(run.c.spider == spider if is_own else run.c.name == name)
    query = query.where(run.c.run_id.not_in(_reparsing()))
    with store_errors(f"reading the runs of {store.url}"), store.reader() as connection:
        found = connection.execute(query.order_by(run.c.run_id.desc()).limit(1)).first()
    if found is None:
        return None
    if found.spider != spider:
        raise ConfigError(
            f"FRONTIER_RUN = {name!r} is an unfinished run of spider {found.spider!r}, not of {spider!r}; choose"
            " another name, or finish that run first"
        )
    return int(found.run_id)


def _reparsing() -> Select[tuple[int]]:
    session = schema.session
    return select(session.c.run_id).where(session.c.detail.contains(f'"{REPARSE_OF}"'))


def open_run(
    connection: Connection,
    run_id: int | None,
    *,
    spider: str,
    name: str | None,
    policy: Mapping[str, Any],
    versions: Mapping[str, str],
) -> OpenRun:
    """Begin a run (`run_id` None) or continue one, in the transaction of `connection`.

    The session's id is the epoch of the generations it grants: the caller commits it before any dispatch.
    """
    now_ms = int(time.time() * 1000)
    digest, text = policy_digest(policy)
    policy_id = _policy_id(connection, digest, text, now_ms)
    previous = None
    if run_id is None:
        run_id = _next_id(connection, schema.run.c.run_id)
        name = name or f"{spider}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
        connection.execute(
            insert(schema.run).values(
                run_id=run_id,
                name=name,
                spider=spider,
                state="running",
                started_ms=now_ms,
                policy_id=policy_id,
            )
        )
        is_resumed = False
    else:
        row = connection.execute(select(schema.run).where(schema.run.c.run_id == run_id)).one()
        name, previous, is_resumed = str(row.name), int(row.policy_id), True
        connection.execute(
            update(schema.run)
            .where(schema.run.c.run_id == run_id)
            .values(
                state="running",
                finished_ms=None,
                stop_reason=None,
                stop_detail=None,
                policy_id=policy_id,
            )
        )
    session_id, context_id = _open_session(connection, run_id, policy_id, now_ms, versions)
    return OpenRun(
        run_id, name, session_id, context_id, digest, is_resumed, previous not in (None, policy_id)
    )


@dataclass(frozen=True, slots=True)
class OperatorVisit:
    """A session in which nothing is crawled: an operator changes something."""

    run_id: int
    session_id: int
    context_id: int


def open_visit(connection: Connection, run_id: int, command: str) -> OperatorVisit:
    """Begin a session of an operator's command, under the policy that the run has."""
    run = schema.run
    policy_id = connection.execute(
        select(run.c.policy_id).where(run.c.run_id == run_id)
    ).scalar_one()
    now_ms = int(time.time() * 1000)
    session = _open_session(connection, run_id, policy_id, now_ms, {"command": command})
    return OperatorVisit(run_id, *session)


def close_visit(connection: Connection, visit: OperatorVisit, *, has_work: bool) -> None:
    """End it; a finished run that has work again is a stopped one, which can be resumed."""
    _end_session(connection, visit.session_id)
    if has_work:
        run = schema.run
        connection.execute(
            update(run)
            .where(run.c.run_id == visit.run_id, run.c.state == FINISHED)
            .values(state=STOPPED, stop_reason="operator")
        )


def _open_session(
    connection: Connection,
    run_id: int,
    policy_id: int,
    now_ms: int,
    versions: Mapping[str, str],
) -> tuple[int, int]:
    session_id = _next_id(connection, schema.session.c.session_id)
    connection.execute(
        insert(schema.session).values(
            session_id=session_id,
            run_id=run_id,
            worker=f"{socket.gethostname()}:{os.getpid()}",
            policy_id=policy_id,
            started_ms=now_ms,
            detail=json.dumps({"python": platform.python_version(), **versions}),
        )
    )
    context_id = _next_id(connection, schema.context.c.context_id)
    connection.execute(
        insert(schema.context).values(
            context_id=context_id, run_id=run_id, policy_id=policy_id, session_id=session_id
        )
    )
    return session_id, context_id


def _end_session(connection: Connection, session_id: int) -> None:
    connection.execute(
        update(schema.session)
        .where(schema.session.c.session_id == session_id)
        .values(ended_ms=int(time.time() * 1000))
    )


def close_run(
    connection: Connection, run: OpenRun, state: str, reason: str, detail: Mapping[str, Any]
) -> None:
    """Write how the run ended, in the transaction of `connection`."""
    now_ms = int(time.time() * 1000)
    _end_session(connection, run.session_id)
    connection.execute(
        update(schema.run)
        .where(schema.run.c.run_id == run.run_id)
        .values(
            state=state,
            finished_ms=now_ms,
            stop_reason=reason,
            stop_detail=json.dumps(detail, default=str),
        )
    )


def is_held_by(store: Store, run: OpenRun, rule: str) -> bool:
    """Whether a rule holds an identity of the run back."""
    query = (
        select(schema.current.c.identity_id)
        .join(schema.reason, schema.reason.c.reason_id == schema.current.c.reason_id)
        .where(
            schema.current.c.run_id == run.run_id,
            schema.current.c.state == int(State.DEFERRED),
            schema.reason.c.code == rule,
        )
        .limit(1)
    )
    with store.reader() as connection:
        return connection.execute(query).first() is not None


def _policy_id(connection: Connection, digest: str, text: str, now_ms: int) -> int:
    policy = schema.policy
    found = connection.execute(select(policy.c.policy_id).where(policy.c.digest == digest)).scalar()
    if found is not None:
        return int(found)
    policy_id = _next_id(connection, policy.c.policy_id)
    connection.execute(
        insert(policy).values(policy_id=policy_id, digest=digest, text=text, created_ms=now_ms)
    )
    return policy_id


def _next_id(connection: Connection, column: Any) -> int:
    highest = int(connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one())
    kept = ids.kept(connection.scalar(text(ids.QUERY)))
    return max(highest, kept.get(column.table.name, 0)) + 1
