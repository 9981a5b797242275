"""What the budgets on admission do to the ledger: what is accepted counts, what comes after the limit is held back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy import budgets
from scrapy_frontier.policy.budgets import Breach, Claim, first_breach
from scrapy_frontier.states import Event, State
from scrapy_frontier.store import rows
from scrapy_frontier.store.batch import Batch, Standing
from scrapy_frontier.store.messages import HoldBack, LetIn, Reason, Reconsider

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOM: Final = Reason("budget.room")
RAISED: Final = Reason("policy.changed")


def breach_of(batch: Batch, claims: tuple[Claim, ...]) -> Breach | None:
    """The budget in which nothing is left for these claims."""
    if not claims:
        return None
    used = {(c.rule, c.pattern): batch.use_of(c.rule, c.pattern).used for c in claims}
    return first_breach(claims, used)


def accept(batch: Batch, claims: Iterable[Claim]) -> None:
    """A URL is accepted: it counts in each of its budgets."""
    for claim in claims:
        use = batch.use_of(claim.rule, claim.pattern)
        use.used += 1
        use.most = claim.limit


def is_held(batch: Batch, standing: Standing, claims: tuple[Claim, ...], at_ms: int) -> bool:
    """Count a new identity that the scope admits in its budgets, or hold it back where one of them is spent."""
    breach = breach_of(batch, claims)
    if breach is None:
        accept(batch, claims)
        if batch.max_pending is None or batch.pending < batch.max_pending:
            return False
        breach = Breach(budgets.PENDING, "", batch.max_pending, batch.pending)
        batch.committed.held_back += 1
    _hold(batch, standing, breach, at_ms)
    return True


def hold_back(batch: Batch, message: HoldBack) -> None:
    """A budget was spent while an identity stood in the queue."""
    standing = batch.standings.get(message.identity_id)
    if standing is not None and standing.state == State.SCHEDULED:
        _hold(batch, standing, message.breach, message.at_ms)


def _hold(batch: Batch, standing: Standing, breach: Breach, at_ms: int) -> None:
    reason = Reason(breach.rule, json.dumps(breach.inputs(), ensure_ascii=False))
    batch.append(standing, Event.DEFER, at_ms, reason)
    use = batch.use_of(breach.rule, breach.pattern)
    use.most = breach.limit
    if not use.held:
        use.first_id, use.first_ms = standing.identity_id, at_ms
    use.held += 1


def let_in(batch: Batch, message: LetIn) -> None:
    """There is room in the queue again."""
    reason_id = batch.reason_id(budgets.PENDING)
    room = message.limit
    if batch.max_pending is not None:
        room = min(room, max(0, batch.max_pending - batch.pending))
    found = rows.held_back(batch.cursor, batch.run_id, reason_id, room)
    batch.load((), {number for number in found if number not in batch.standings})
    moved = 0
    for number in found:
        standing = batch.standings[number]
        if standing.state == State.DEFERRED and standing.reason_id == reason_id:
            batch.append(standing, Event.RELEASE, message.at_ms, ROOM)
            batch.schedule(standing)
            moved += 1
    if message.on_commit is not None:
        batch.committed.answers.append((message.on_commit, moved))


def reconsider(batch: Batch, message: Reconsider) -> None:
    """A budget that held an identity back may have been raised, or taken away."""
    standing = batch.standings.get(message.identity_id)
    if standing is None or standing.state != State.DEFERRED:
        return
    if breach_of(batch, message.claims) is None:
        accept(batch, message.claims)
        batch.append(standing, Event.RELEASE, message.at_ms, RAISED)
        batch.schedule(standing)
