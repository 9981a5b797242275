"""What a resumed run does before it dispatches anything: nothing that was under way is lost, nothing is
repeated unseen.

The run's lock proves that no other process works on it, so every lease found is a dead one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select, update

from scrapy_frontier import failpoints
from scrapy_frontier.frontier.cut_off import CutOff
from scrapy_frontier.frontier.runs import reason_id, transaction
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.robots import ROBOTS_PENDING
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store import schema
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.leases import ABANDONED
from scrapy_frontier.store.messages import Message, Reason, Transit
from scrapy_frontier.store.on_reference import UNSERIALISABLE
from scrapy_frontier.store.opening import Store
from scrapy_frontier.store.rows import cursor_of

logger = logging.getLogger(__name__)

CHUNK: Final = 1000

LOST_LEASE: Final = Reason("lease.lost")


@dataclass(frozen=True, slots=True)
class Recovered:
    """How many identities each step of the recovery moved."""

    reclaimed: int = 0
    unserialisable: int = 0
    abandoned: int = 0
    excluded: int = 0
    readmitted: int = 0


Judge = Callable[[str, str | None], Reason | None]
"""(url, request record) to the reason that excludes it, or None where the scope in force admits it."""


class Recovery:
    """Runs once, on the writer's connection, before the writer's thread starts."""

    def __init__(
        self, store: Store, applier: Applier, run_id: int, now_ms: int, cut_off: CutOff
    ) -> None:
        self._store = store
        self._applier = applier
        self._run_id = run_id
        self._now_ms = now_ms
        self._cut_off = cut_off

    def run(self, judge: Judge | None) -> Recovered:
        """Reclaim what was under way; with `judge`, apply a changed scope to what waits and to what was excluded."""
        failpoints.reach("recover.begun")
        self._keep_intervals()
        reclaimed = self._transit(
            f"SELECT identity_id FROM current WHERE run_id = ? AND state IN ({State.FETCHING:d}, {State.FETCHED:d})",
            Event.RECLAIM,
            LOST_LEASE,
        )
        self._mark_lost_attempts()
        failpoints.reach("recover.marked")
        # Whoever issued a request past the scheduler died with the process.
        abandoned = self._transit(
            f"SELECT c.identity_id FROM current AS c JOIN identity AS i USING (identity_id)"
            f" WHERE c.run_id = ? AND c.state IN ({State.SCHEDULED:d}, {State.ADMITTED:d})"
            f" AND i.kind IN ({ReferenceKind.DIRECT:d}, {ReferenceKind.ROBOTS:d})",
            Event.CANCEL,
            ABANDONED,
            Disposition.CANCELLED,
        )
        lost = self._transit(
            "SELECT c.identity_id FROM current AS c JOIN identity AS i USING (identity_id)"
            " LEFT JOIN visit AS v ON v.visit_id = c.visit_id"
            f" WHERE c.run_id = ? AND c.state = {State.SCHEDULED:d}"
            " AND CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END IS NULL",
            Event.DEFER,
            Reason(UNSERIALISABLE),
        )
        # They wait for an answer that this process asks for anew, when their turn comes.
        self._transit(
            "SELECT identity_id FROM current JOIN reason USING (reason_id)"
            f" WHERE run_id = ? AND state = {State.DEFERRED:d} AND code = '{ROBOTS_PENDING}'",
            Event.RELEASE,
            Reason("robots.settled"),
        )
        excluded = readmitted = 0
        if judge is not None:
            excluded, readmitted = self._judge_again(judge)
        failpoints.reach("recover.done")
        return Recovered(reclaimed, lost, abandoned, excluded, readmitted)

    def _keep_intervals(self) -> None:
        """Before the leases are taken back: what is taken back does not show any more that it was on the wire."""
        with transaction(self._store, "recovering the run") as connection:
            timings = self._cut_off(cursor_of(connection), self._run_id, self._now_ms)
        if timings:
            self._apply(timings)

    def _transit(
        self, query: str, event: Event, reason: Reason, disposition: Disposition | None = None
    ) -> int:
        moved = 0
        while True:
            identity_ids = [row[0] for row in self._page(f"{query} LIMIT {CHUNK}", (self._run_id,))]
            if not identity_ids:
                return moved
            self._apply([Transit(identity_ids, event, reason, self._now_ms, disposition)])
            moved += len(identity_ids)

    def _judge_again(self, judge: Judge) -> tuple[int, int]:
        excluded = readmitted = 0
        for part in self._judged_part():
            out: dict[Reason, list[int]] = {}
            back: list[int] = []
            for identity_id, url, record, state in part:
                reason = judge(url, record)
                if reason is None and state == State.SUPPRESSED:
                    back.append(identity_id)
                elif reason is not None and state != State.SUPPRESSED:
                    out.setdefault(reason, []).append(identity_id)
            messages: list[Message] = [
                Transit(numbers, Event.EXCLUDE, reason, self._now_ms)
                for reason, numbers in out.items()
            ]
            if back:
                messages.append(
                    Transit(back, Event.READMIT, Reason("policy.changed"), self._now_ms)
                )
            if messages:
                self._apply(messages)
            excluded += sum(map(len, out.values()))
            readmitted += len(back)
        return excluded, readmitted

    def _judged_part(self) -> Iterator[list[Any]]:
        last = 0
        while True:
            part = self._page(
                "SELECT c.identity_id, i.url, CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END, c.state"
                " FROM current AS c JOIN identity AS i USING (identity_id)"
                " LEFT JOIN visit AS v ON v.visit_id = c.visit_id LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
                f" WHERE c.run_id = ? AND c.identity_id > ? AND (c.state IN ({State.SCHEDULED:d},"
                f" {State.RETRYABLE:d}, {State.DEFERRED:d})"
                f" OR c.state = {State.SUPPRESSED:d} AND r.code LIKE 'scope.%')"
                f" ORDER BY c.identity_id LIMIT {CHUNK}",
                (self._run_id, last),
            )
            if not part:
                return
            last = part[-1][0]
            yield part

    def _mark_lost_attempts(self) -> None:
        """Attempts of dead sessions that never came to an end."""
        sessions = select(schema.session.c.session_id).where(
            schema.session.c.run_id == self._run_id
        )
        with transaction(self._store, "marking attempts that were lost") as connection:
            connection.execute(
                update(schema.attempt)
                .where(
                    schema.attempt.c.outcome_id.is_(None), schema.attempt.c.session_id.in_(sessions)
                )
                .values(outcome_id=reason_id(connection, LOST_LEASE.code))
            )
            # Requests that waited in memory only are gone with it.
            connection.execute(
                update(schema.visit)
                .where(schema.visit.c.is_waiting == 1, schema.visit.c.record.is_(None))
                .values(is_waiting=0)
            )
            self._applier.load(cursor_of(connection))

    def _page(self, query: str, parameters: tuple[Any, ...]) -> list[Any]:
        with transaction(self._store, "recovering the run") as connection:
            cursor = cursor_of(connection)
            cursor.execute(query, parameters)
            return list(cursor.fetchall())

    def _apply(self, messages: Sequence[Message]) -> None:
        with transaction(self._store, "recovering the run") as connection:
            batch = self._applier.apply(cursor_of(connection), messages)
        self._applier.keep(batch)
        failpoints.reach("recover.part")
