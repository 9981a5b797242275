"""What the budgets of a run cut, those of Scrapy's settings among them: read from the ledger, not from a counter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.identity.rejections import URL_TOO_LONG
from scrapy_frontier.report.account import Budget
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import parsed, urls
from scrapy_frontier.states import UNRESOLVED, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from scrapy_frontier.report.account import Attempts, Redirects, RejectedCause, Stop
    from scrapy_frontier.report.figures import Figures
    from scrapy_frontier.report.names import Codes

FIRST_WORD: Final = "budget."
"""How the rules begin that are budgets of the frontier's own."""

_OF_SCRAPY: Final = frozenset({"depth.limit"})
"""Rules that keep a budget of Scrapy's settings and hold identities back."""

REDIRECTS: Final = "redirect.limit"
TOO_LARGE: Final = "download.too_large"

_HELD: Final = (
    "SELECT c.state, t.detail, count(*), min(c.identity_id), min(t.at_ms) FROM current AS c"
    " JOIN transition AS t ON t.seq = c.last_seq"
    " WHERE c.run_id = :run AND c.state IN (:suppressed, :deferred) AND c.reason_id = :reason"
    " GROUP BY c.state, t.detail"
)
_EVER: Final = (
    "SELECT rule, pattern, most, used, held, first_id, first_ms FROM budget"
    " WHERE run_id = :run AND held > 0"
)

NOTHING: Final = Budget("", None, None, None, None, None, 0, 0, 0, 0, 0, 0)


def budgets(
    connection: Connection,
    run_id: int,
    figures: Figures,
    codes: Codes,
    stop: Stop,
    rejected: Iterable[RejectedCause],
    attempts: Attempts,
    redirects: Redirects,
) -> tuple[Budget, ...]:
    """Every budget that cut anything, by rule and pattern."""
    found: dict[tuple[str, str], Budget] = {}
    for reason_id in sorted({standing.reason_id for standing in figures.standing}):
        rule = codes[reason_id]
        if rule.startswith(FIRST_WORD) or rule in _OF_SCRAPY:
            for budget in _held(connection, run_id, reason_id, rule):
                key = (rule, budget.pattern or "")
                found[key] = _added(found[key], budget) if key in found else budget
    for budget in _let_in_again(connection, run_id):
        key = (budget.rule, budget.pattern or "")
        known = found.get(key)
        found[key] = budget if known is None else replace(known, held=max(budget.held, known.held))
    ordered = [found[key] for key in sorted(found)]
    return (*ordered, *_of_other_counts(rejected, attempts, redirects), *_ending(figures, stop))


def _held(connection: Connection, run_id: int, reason_id: int, rule: str) -> Iterator[Budget]:
    """What a rule keeps out now, by the inputs that decided."""
    values = {
        "run": run_id,
        "reason": reason_id,
        "suppressed": int(State.SUPPRESSED),
        "deferred": int(State.DEFERRED),
    }
    rows = connection.execute(text(_HELD), values).all()
    examples = urls(connection, [row[3] for row in rows])
    for state, detail, count, first, at_ms in sorted(rows, key=lambda row: row[3]):
        inputs = parsed(detail)
        known: dict[str, Any] = inputs if isinstance(inputs, dict) else {}
        yield replace(
            NOTHING,
            rule=rule,
            pattern=known.get("pattern") or None,
            limit=known.get("limit"),
            used=known.get("used", known.get("depth")),
            first_example=examples[first],
            first_at=iso(at_ms),
            suppressed=count if state == State.SUPPRESSED else 0,
            deferred=count if state == State.DEFERRED else 0,
            held=count,
        )


def _added(first: Budget, other: Budget) -> Budget:
    return replace(
        first,
        suppressed=first.suppressed + other.suppressed,
        deferred=first.deferred + other.deferred,
        held=first.held + other.held,
    )


def _let_in_again(connection: Connection, run_id: int) -> Iterator[Budget]:
    """What budgets have held back at any time."""
    rows = connection.execute(text(_EVER), {"run": run_id}).all()
    examples = urls(connection, [row.first_id for row in rows])
    for row in rows:
        yield replace(
            NOTHING,
            rule=row.rule,
            pattern=row.pattern or None,
            limit=row.most,
            used=row.most,
            first_example=examples.get(row.first_id),
            first_at=iso(row.first_ms),
            held=row.held,
        )


def _of_other_counts(
    rejected: Iterable[RejectedCause], attempts: Attempts, redirects: Redirects
) -> Iterator[Budget]:
    """Limits of Scrapy's settings that cut references, chains and responses."""
    too_long = [cause for cause in rejected if cause.rule == URL_TOO_LONG]
    if too_long:
        count = sum(cause.count for cause in too_long)
        yield replace(NOTHING, rule=URL_TOO_LONG, first_example=too_long[0].example, rejected=count)
    if redirects.refused.get(REDIRECTS):
        yield replace(NOTHING, rule=REDIRECTS, failed=redirects.refused[REDIRECTS])
    if attempts.by_outcome.get(TOO_LARGE):
        yield replace(NOTHING, rule=TOO_LARGE, failed=attempts.by_outcome[TOO_LARGE])


def _ending(figures: Figures, stop: Stop) -> Iterator[Budget]:
    """The budget that ended the run: what it left in the queue is neither excluded nor held back."""
    reason = stop.reason or ""
    if not (reason.startswith("budget:") or reason == "deadline") or reason == "budget:urls":
        return
    detail = stop.detail if isinstance(stop.detail, dict) else {}
    yield replace(
        NOTHING,
        rule=reason.replace(":", "."),
        limit=detail.get("limit"),
        used=detail.get("used"),
        unresolved=figures.standing_in(UNRESOLVED),
    )
