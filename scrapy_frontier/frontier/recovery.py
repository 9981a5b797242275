"""What a resumed run does before it dispatches anything: nothing that was under way is lost, nothing is
repeated unseen.

The run's lock proves that no other process works on it, so every lease found is a dead one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select, update

from scrapy_frontier import failpoints
from scrapy_frontier.errors import ArtifactError
from scrapy_frontier.frontier.attempts import REPLAYED
from scrapy_frontier.frontier.cut_off import CutOff
from scrapy_frontier.frontier.replays import Replay
from scrapy_frontier.frontier.runs import reason_id, transaction
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.budgets import Claim
from scrapy_frontier.policy.leases import NOT_REPEATED
from scrapy_frontier.policy.robots import ROBOTS_PENDING
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store import rows, schema
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.leases import ABANDONED, UNSAFE
from scrapy_frontier.store.messages import (
    Dispatch,
    Head,
    Lease,
    Message,
    Reason,
    Reconsider,
    Transit,
)
from scrapy_frontier.store.on_reference import DEPTH_LIMIT, UNSERIALISABLE
from scrapy_frontier.store.opening import Store
from scrapy_frontier.store.rows import cursor_of

if TYPE_CHECKING:
    from scrapy_frontier.frontier.evidence import Evidence

logger = get_logger(__name__)

CHUNK: Final = 1000

LOST_LEASE: Final = Reason("lease.lost")
EVIDENCE_KEPT: Final = Reason("evidence.kept")
BY_EVIDENCE: Final = Reason(REPLAYED)


@dataclass(frozen=True, slots=True)
class Recovered:
    """How many identities each step of the recovery moved."""

    reclaimed: int = 0
    unserialisable: int = 0
    abandoned: int = 0
    excluded: int = 0
    readmitted: int = 0
    unsafe: int = 0
    let_in: int = 0
    replays: Sequence[Replay] = ()


_RECEIVED: Final = (
    "SELECT c.identity_id, t.evidence FROM current AS c JOIN identity AS i ON i.identity_id = c.identity_id"
    " JOIN transition AS t ON t.seq = c.last_seq LEFT JOIN visit AS v ON v.visit_id = c.visit_id"
    f" WHERE c.run_id = ? AND c.state IN ({State.FETCHING:d}, {State.FETCHED:d}) AND t.evidence IS NOT NULL"
    f" AND i.kind NOT IN ({ReferenceKind.DIRECT:d}, {ReferenceKind.ROBOTS:d})"
    " AND CASE WHEN c.visit_id = 0 THEN i.record ELSE v.record END IS NOT NULL"
    " AND c.identity_id > ? ORDER BY c.identity_id LIMIT ?"
)
"""What has a response on record that was not processed; whoever issues direct requests is gone with his process."""

Judge = Callable[[str, str | None], Reason | None]
"""(url, request record) to the reason that excludes it, or None where the scope in force admits it."""

Room = Callable[[str, int, str], tuple[Claim, ...] | None]
"""(url, depth, rule that holds it) to the budgets it counts in were it let in; None where the rule holds it still."""


class Recovery:
    """Runs once, on the writer's connection, before the writer's thread starts."""

    def __init__(
        self,
        store: Store,
        applier: Applier,
        run_id: int,
        now_ms: int,
        cut_off: CutOff,
        evidence: Evidence | None = None,
    ) -> None:
        self._store = store
        self._applier = applier
        self._run_id = run_id
        self._now_ms = now_ms
        self._cut_off = cut_off
        self._evidence = evidence

    def run(self, judge: Judge | None, room: Room | None = None) -> Recovered:
        """Reclaim what was under way; with `judge`, apply a changed scope to what waits and to what was excluded; with
        `room`, let in what budgets held back and would not any more.
        """
        failpoints.reach("recover.begun")
        self._keep_intervals()
        replays = self._replay()
        # The server may have acted on it: whoever wants it twice says so (`frontier requeue`).
        unsafe = self._transit(
            "SELECT c.identity_id FROM current AS c JOIN identity AS i ON i.identity_id = c.identity_id"
            " LEFT JOIN visit AS v ON v.visit_id = c.visit_id"
            f" WHERE c.run_id = ? AND c.state IN ({State.FETCHING:d}, {State.FETCHED:d})"
            f" AND c.generation < {self._applier.session_id << 32} AND {UNSAFE}",
            Event.GIVE_UP,
            Reason(NOT_REPEATED),
            Disposition.FAILED,
        )
        reclaimed = self._transit(
            f"SELECT identity_id FROM current WHERE run_id = ? AND state IN ({State.FETCHING:d}, {State.FETCHED:d})"
            f" AND generation < {self._applier.session_id << 32}",
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
        let_in = 0 if room is None else self._reconsider(room)
        failpoints.reach("recover.done")
        return Recovered(reclaimed, lost, abandoned, excluded, readmitted, unsafe, let_in, replays)

    def _replay(self) -> list[Replay]:
        """Take a new lease on what was received whole and not processed: its evidence answers it once more.

        In one transaction, so that no crash in between makes a request of it. An attempt that was being answered from
        evidence is so again: the transition that stands last names the response.
        """
        replays: list[Replay] = []
        if self._evidence is None:
            return replays
        last = 0
        while part := self._page(_RECEIVED, (self._run_id, last, CHUNK)):
            last = part[-1][0]
            kept = {number: bytes(digest) for number, digest in part if self._is_whole(digest)}
            leases = [Lease(number) for number in kept]
            if leases:
                self._apply(
                    [
                        Transit(list(kept), Event.RECLAIM, EVIDENCE_KEPT, self._now_ms),
                        *(self._dispatch(lease, kept) for lease in leases),
                    ]
                )
            by_identity = {lease.identity_id: lease for lease in leases}
            for head in self._heads(list(kept)):
                number = head.identity_id
                replays.append(Replay(head, by_identity[number], kept[number]))
        return replays

    def _dispatch(self, lease: Lease, kept: dict[int, bytes]) -> Dispatch:
        return Dispatch(lease, self._now_ms, BY_EVIDENCE, evidence=kept[lease.identity_id])

    def _is_whole(self, digest: bytes) -> bool:
        assert self._evidence is not None
        try:
            return self._evidence.is_whole(bytes(digest))
        except ArtifactError as error:
            logger.error(
                "A response that was received is asked for again: %s",
                error,
                extra={"action": "evidence_unreadable"},
            )
            return False

    def _heads(self, identity_ids: list[int]) -> list[Head]:
        with transaction(self._store, "recovering the run") as connection:
            return [Head(*row) for row in rows.heads(cursor_of(connection), identity_ids)]

    def _keep_intervals(self) -> None:
        """Before the leases are taken back: what is taken back does not show any more that it was on the wire."""
        with transaction(self._store, "recovering the run") as connection:
            timings = self._cut_off(cursor_of(connection), self._run_id, self._now_ms)
        if timings:
            self._apply(timings)

    def _reconsider(self, room: Room) -> int:
        """Look again at what budgets have held back, in the order of discovery: a limit may have been raised."""
        last, before = 0, self._count_deferred()
        while True:
            part = self._page(
                "SELECT c.identity_id, i.url, i.depth, r.code FROM current AS c JOIN identity AS i USING (identity_id)"
                " JOIN reason AS r ON r.reason_id = c.reason_id WHERE c.run_id = ? AND c.identity_id > ?"
                f" AND c.state = {State.DEFERRED:d} AND (r.code LIKE 'budget.%' OR r.code = '{DEPTH_LIMIT}')"
                f" ORDER BY c.identity_id LIMIT {CHUNK}",
                (self._run_id, last),
            )
            if not part:
                return before - self._count_deferred()
            last = part[-1][0]
            found = ((number, room(url, depth, rule)) for number, url, depth, rule in part)
            self._apply(
                [Reconsider(n, claims, self._now_ms) for n, claims in found if claims is not None]
            )

    def _count_deferred(self) -> int:
        query = f"SELECT count(*) FROM current WHERE run_id = ? AND state = {State.DEFERRED:d}"
        return int(self._page(query, (self._run_id,))[0][0])

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
            schema.session.c.run_id == self._run_id,
            schema.session.c.session_id < self._applier.session_id,
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
            self._applier.refresh(self._store)
            batch = self._applier.apply(cursor_of(connection), messages)
        self._applier.keep(batch)
        failpoints.reach("recover.part")
