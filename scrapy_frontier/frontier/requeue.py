"""An operator asks for further attempts of a run that nobody works on: it goes on with them when it is resumed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.frontier import runs
from scrapy_frontier.frontier.attempts import detail
from scrapy_frontier.frontier.retries import FAULTS, HOLDS
from scrapy_frontier.identity.records import without_meta
from scrapy_frontier.states import State
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.messages import Reason, Requeue
from scrapy_frontier.store.rows import cursor_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.store.opening import Store

REQUEUED: Final = "operator.requeue"
"""Reason: an operator asks for it again."""

CHUNK: Final = 500

_STANDING: Final = (
    "SELECT i.url, c.state, r.code, CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END AS record"
    " FROM current AS c JOIN identity AS i ON i.identity_id = c.identity_id"
    " LEFT JOIN visit AS v ON v.visit_id = c.visit_id LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
    " WHERE c.identity_id = :identity AND c.run_id = :run"
)


@dataclass(frozen=True, slots=True)
class Requeued:
    """What became of the wish: URLs that stand in their queues again, and those that cannot, with the reason."""

    urls: Sequence[str]
    refused: Mapping[str, str]


def requeue(
    store: Store, run_id: int, identity_ids: Iterable[int], wish: Mapping[str, Any]
) -> Requeued:
    """Give terminal identities of a run one more visit each, with all their attempts before them.

    `wish` is what the operator asked for, as the ledger keeps it. Raises `RunLocked` where a process works on the run.
    """
    with RunLock(store, run_id):
        with runs.transaction(store, "requeueing") as connection:
            session = runs.open_visit(connection, run_id, "requeue")
        applier = Applier(run_id, session.context_id, session.session_id)
        urls: list[str] = []
        refused: dict[str, str] = {}
        numbers = iter(identity_ids)
        while chunk := list(islice(numbers, CHUNK)):
            with runs.transaction(store, "requeueing") as connection:
                applier.load(cursor_of(connection))
                messages = _messages(connection, run_id, chunk, wish, urls, refused)
                batch = applier.apply(cursor_of(connection), messages)
            applier.keep(batch)
        with runs.transaction(store, "requeueing") as connection:
            runs.close_visit(connection, session, has_work=bool(urls))
    return Requeued(urls, refused)


def _messages(
    connection: Connection,
    run_id: int,
    identity_ids: Sequence[int],
    wish: Mapping[str, Any],
    urls: list[str],
    refused: dict[str, str],
) -> list[Requeue]:
    at_ms = int(time.time() * 1000)
    messages = []
    for number in identity_ids:
        row = connection.execute(text(_STANDING), {"identity": number, "run": run_id}).one()
        if row.state != State.TERMINAL:
            refused[row.url] = (
                f"it is {State(row.state).label}: only what has come to its end is asked for again"
            )
        elif row.record is None:
            refused[row.url] = "its request could not be stored, or was issued past the scheduler"
        else:
            urls.append(row.url)
            record = without_meta(row.record, (FAULTS, HOLDS))
            reason = Reason(REQUEUED, detail(was=row.code, **wish))
            messages.append(Requeue(number, record, reason, at_ms))
    return messages
