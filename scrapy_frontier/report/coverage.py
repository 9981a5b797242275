"""The coverage report: what a run covered, what not and why, and whether its account adds up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report import account, equations
from scrapy_frontier.report.budgets import budgets
from scrapy_frontier.report.causes import causes, rejected_causes
from scrapy_frontier.report.deadletters import dead_letters
from scrapy_frontier.report.duplicates import duplicates
from scrapy_frontier.report.families import families
from scrapy_frontier.report.figures import REFERENCE_COUNTS, Figures, read_figures
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import Codes, label, parsed
from scrapy_frontier.report.origins import origin_accounts
from scrapy_frontier.report.redirects import redirects
from scrapy_frontier.report.rendering import rendering_account
from scrapy_frontier.report.robots.accounts import robots_accounts
from scrapy_frontier.report.robots.fetches import robots_fetches
from scrapy_frontier.report.runs import RunNotFound
from scrapy_frontier.report.unfinished import unfinished
from scrapy_frontier.states import UNRESOLVED, Disposition, Event, State
from scrapy_frontier.store.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

REPORT_VERSION: Final = 1
"""Rises when a field of the JSON changes its meaning or goes."""

FAMILIES_LISTED: Final = 200
"""Families listed in one report, those with the most URLs held back first; the command lists all."""

DEAD_LETTERS_LISTED: Final = 1000
"""Dead letters listed in one report; their number is `identities.terminal.failed`."""


def coverage(
    connection: Connection,
    run_id: int,
    *,
    is_live: bool | None = None,
    progress: Progress = silent,
) -> account.Coverage:
    """The account of a run as the connection's snapshot shows it. Raises `RunNotFound`.

    `is_live`: whether a process holds the run's lock; an open run without one was interrupted.
    """
    run = _run(connection, run_id, is_live)
    figures = read_figures(connection, run_id, progress)[run_id]
    progress("Naming what it holds", 0, 0)
    codes = Codes.of(connection)
    checked = equations.equations(figures, run.state)
    failed = tuple(equation.text for equation in checked if not equation.holds)
    tallies = _tallies(connection, run_id)
    fetches = robots_fetches(connection, run_id, figures)
    stop = _stop(connection, run)
    attempts = _attempts(figures, codes)
    rejected = rejected_causes(connection, figures, codes)
    hops = redirects(connection, run_id, figures, codes)
    return account.Coverage(
        schema_version=REPORT_VERSION,
        run=run,
        stop=stop,
        identities=_identities(figures, codes),
        moves=_moves(figures),
        attempts=attempts,
        references=_references(figures, codes),
        reconciled=not failed,
        failed_equations=failed,
        equations=tuple(equation.text for equation in checked),
        causes=causes(connection, run_id, figures, codes, fetches),
        rejected=rejected,
        origins=origin_accounts(connection, run_id, figures, fetches),
        budgets=budgets(connection, run_id, figures, codes, stop, rejected, attempts, hops),
        families=families(connection, run_id)[:FAMILIES_LISTED],
        duplicates=duplicates(connection, run_id),
        rendering=rendering_account(connection, run_id),
        unfinished=unfinished(connection, run_id, figures, codes),
        redirects=hops,
        robots=robots_accounts(connection, run_id, figures, codes, tallies.get("waiver", ())),
        robots_txt=fetches.account(),
        deadletters=dead_letters(connection, run_id, DEAD_LETTERS_LISTED, fetches),
        parameter_rules=tallies.get("parameter_rule", ()),
        waivers=tallies.get("waiver", ()),
        unserialisable=tallies.get("unserialisable", ()),
        sessions=_sessions(connection, run_id, figures),
    )


_RUN: Final = (
    "SELECT r.run_id, r.name, r.spider, r.state, r.started_ms, r.finished_ms, p.digest"
    " FROM run AS r JOIN policy AS p ON p.policy_id = r.policy_id WHERE r.run_id = :run"
)
_STOP: Final = "SELECT stop_reason, stop_detail FROM run WHERE run_id = :run"
_TALLIES: Final = (
    "SELECT kind, name, count, example FROM tally WHERE run_id = :run"
    " ORDER BY kind, count DESC, name"
)
_SESSIONS: Final = (
    "SELECT s.session_id, s.worker, p.digest, s.started_ms, s.ended_ms"
    " FROM session AS s JOIN policy AS p ON p.policy_id = s.policy_id"
    " WHERE s.run_id = :run ORDER BY s.session_id"
)


def _run(connection: Connection, run_id: int, is_live: bool | None) -> account.RunAccount:
    row = connection.execute(text(_RUN), {"run": run_id}).first()
    if row is None:
        raise RunNotFound(f"no run with the id {run_id} in this store")
    number, name, spider, state, started_ms, finished_ms, digest = row
    return account.RunAccount(
        number,
        name,
        spider,
        state,
        iso(started_ms),
        iso(finished_ms),
        digest,
        is_live if state == "running" else False,
    )


def _stop(connection: Connection, run: account.RunAccount) -> account.Stop:
    reason, detail = connection.execute(text(_STOP), {"run": run.id}).one()
    if reason is None and run.state == "running" and run.is_live is False:
        reason = "interrupted"
    return account.Stop(reason, parsed(detail))


def _tallies(connection: Connection, run_id: int) -> dict[str, tuple[account.Counted, ...]]:
    tallies: dict[str, tuple[account.Counted, ...]] = {}
    for kind, name, count, example in connection.execute(text(_TALLIES), {"run": run_id}):
        tallies[kind] = (*tallies.get(kind, ()), account.Counted(name, count, example))
    return tallies


def _identities(figures: Figures, codes: Codes) -> account.Identities:
    def by_rule(state: State) -> dict[str, int]:
        return _most(
            (codes[standing.reason_id], found.count)
            for standing, found in figures.standing.items()
            if standing.state == state
        )

    return account.Identities(
        discovered=figures.identities,
        admitted=figures.standing_in(equations.ADMITTED),
        suppressed=by_rule(State.SUPPRESSED),
        deferred=by_rule(State.DEFERRED),
        terminal=_most(
            (label(Disposition, standing.disposition), found.count)
            for standing, found in figures.standing.items()
            if standing.state == State.TERMINAL
        ),
        unresolved=_most(
            (label(State, standing.state), found.count)
            for standing, found in figures.standing.items()
            if standing.state in UNRESOLVED
        ),
    )


def _moves(figures: Figures) -> tuple[account.MoveCount, ...]:
    return tuple(
        account.MoveCount(
            label(Event, event), label(State, ends >> 4), label(State, ends & 15), count
        )
        for (event, ends), count in sorted(
            figures.moves.items(), key=lambda item: (item[0][1] >> 4, item[0][1] & 15, item[0][0])
        )
    )


def _attempts(figures: Figures, codes: Codes) -> account.Attempts:
    return account.Attempts(
        total=figures.attempted(),
        by_outcome=_most(
            (codes[kind.outcome_id], found.count)
            for kind, found in figures.attempts.items()
            if kind.outcome_id
        ),
        open=figures.attempts_without_outcome(),
        retries=figures.events(Event.BECOME_DUE),
        late=figures.late.total(),
        quarantined=figures.quarantined,
    )


def _references(figures: Figures, codes: Codes) -> account.References:
    kinds = sorted({kind for kind, _ in figures.references})
    return account.References(
        total=figures.referred("total"),
        fresh=figures.referred("fresh"),
        duplicates=figures.referred("duplicates"),
        excluded=figures.referred("excluded"),
        rejected=_most(
            (codes[reason_id], found.count) for (_, reason_id), found in figures.rejected.items()
        ),
        by_kind={
            label(ReferenceKind, kind): account.KindAccount(
                *(figures.references[kind, name] for name in REFERENCE_COUNTS)
            )
            for kind in kinds
        },
    )


def _sessions(
    connection: Connection, run_id: int, figures: Figures
) -> tuple[account.SessionAccount, ...]:
    attempts: Counter[int] = Counter()
    for kind, found in figures.attempts.items():
        attempts[kind.session_id] += found.count
    return tuple(
        account.SessionAccount(
            number, worker, digest, iso(started_ms), iso(ended_ms), attempts[number]
        )
        for number, worker, digest, started_ms, ended_ms in connection.execute(
            text(_SESSIONS), {"run": run_id}
        )
    )


def _most(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Added up by name, the largest first."""
    added: Counter[str] = Counter()
    for name, count in counts:
        added[name] += count
    return dict(sorted(added.items(), key=lambda item: (-item[1], item[0])))
