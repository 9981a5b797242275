"""`frontier prune`: whole runs dropped, after they were shown."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.commands.progress import shown
from scrapy_frontier.errors import ConfigError, RunLocked
from scrapy_frontier.report import layout
from scrapy_frontier.report.layout import counted
from scrapy_frontier.report.retention import Candidate, candidates, choose
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.prune import Pruned, compact, prune

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.store.opening import Store

HELD_UP: Final = 100_000
"""Identities of one run that may be dropped while another run is crawled in the same file: some seconds."""

EPILOG: Final = (
    "Without --yes nothing is dropped: the runs are only listed. A run that a process works on is never"
    " dropped; one that can be resumed only if it is named, or with --unfinished. What other runs refer to"
    " stays. Artifacts of dropped runs are removed by `scrapy frontier sweep`."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", nargs="*", metavar="RUN", help="ids or names of runs to drop")
    parser.add_argument(
        "--older-than",
        type=float,
        metavar="DAYS",
        help="runs in which nothing has happened for so many days",
    )
    parser.add_argument(
        "--keep-last", type=int, metavar="N", help="all runs but the last N, or that many at least"
    )
    parser.add_argument(
        "--unfinished", action="store_true", help="also runs that could still be resumed"
    )
    parser.add_argument("--yes", action="store_true", help="drop them")
    parser.add_argument(
        "--vacuum",
        action="store_true",
        help="give the space back to the disk, which takes as much again for a while; without it, it"
        " is used for what comes next",
    )


def _run(invocation: Invocation) -> int:
    options = invocation.options
    named = [*options.which, *([options.run] if options.run is not None else [])]
    _check(options, named)
    if not options.yes:
        with invocation.store() as store:
            chosen = _choose(store, options, named)
        invocation.answer(
            _plan(chosen), {"dropped": False, "runs": [asdict(one) for one in chosen]}
        )
        return 0
    with open_store(invocation.store_url) as store, shown() as progress:
        chosen = _choose(store, options, named)
        _check_others(store, chosen)
        done = [prune(store, one.run, progress) for one in chosen]
        if options.vacuum and done:
            progress("Compacting the store", 0, 0)
            compact(store)
    invocation.answer(_text(done), {"dropped": True, "runs": [asdict(one) for one in done]})
    return 0


def _check(options: argparse.Namespace, named: Sequence[str]) -> None:
    by_rule = options.older_than is not None or options.keep_last is not None
    if named and (by_rule or options.unfinished):
        raise ConfigError("name the runs, or choose them by --older-than and --keep-last: not both")
    if not named and not by_rule:
        raise ConfigError("which runs? Name them, or choose them by --older-than or --keep-last")
    if (options.older_than or 0) < 0 or (options.keep_last or 0) < 0:
        raise ConfigError("--older-than and --keep-last cannot be less than 0")


def _choose(
    store: Store, options: argparse.Namespace, named: Sequence[str]
) -> tuple[Candidate, ...]:
    with store.reader() as connection:
        wanted = {find_run(connection, name) for name in named}
        # Where it cannot be told, the lock that a prune takes tells it.
        runs = candidates(connection, lambda run_id: bool(is_live(store, run_id)))
    if not named:
        age_s = options.older_than and options.older_than * 86_400
        before_ms = None if age_s is None else int((time.time() - age_s) * 1000)
        keep = options.keep_last or 0
        return choose(runs, before_ms=before_ms, keep_last=keep, unfinished=options.unfinished)
    chosen = tuple(run for run in runs if run.run in wanted)
    for run in chosen:
        if run.is_live:
            raise RunLocked(
                f"run {run.run} ({run.name}) is being crawled by {store.run_lock(run.run).holder()}:"
                " stop it first, and it can be dropped"
            )
    return chosen


def _check_others(store: Store, chosen: Sequence[Candidate]) -> None:
    """One file has one writer: a long transaction would stop the crawl of another run."""
    most = max((run.identities for run in chosen), default=0)
    if store.path is None or most <= HELD_UP:
        return
    with store.reader() as connection:
        runs = candidates(connection, lambda run_id: bool(is_live(store, run_id)))
    live = [str(run.run) for run in runs if run.is_live]
    if live:
        raise RunLocked(
            f"run {', '.join(live)} is being crawled in this store, and would be held up too long by"
            f" dropping a run of {layout.number(most)} URLs: drop it when that crawl has ended"
        )


def _plan(chosen: Sequence[Candidate]) -> str:
    if not chosen:
        return "No run to drop.\n"
    rows = [
        (run.run, (run.last_at or "-")[:16].replace("T", " "), run.state, run.identities, run.name)
        for run in chosen
    ]
    lines = layout.table(["run", "last used (UTC)", "state", "URLs", "name"], rows)
    return "\n".join([*lines, "Nothing is dropped yet: say --yes to drop them."]) + "\n"


def _text(done: Sequence[Pruned]) -> str:
    if not done:
        return "No run to drop.\n"
    return "".join(f"Dropped run {one.run}: {_rows(one.rows)}.\n" for one in done)


def _rows(rows: dict[str, Any]) -> str:
    return ", ".join(
        (
            counted(rows.get("identity", 0), "identity", "identities"),
            counted(rows.get("transition", 0), "transition"),
            counted(rows.get("attempt", 0), "attempt"),
        )
    )


COMMAND = Subcommand(
    "prune", "Drop whole runs, after showing them", _add_arguments, _run, epilog=EPILOG
)
