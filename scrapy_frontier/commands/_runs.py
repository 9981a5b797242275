"""`frontier runs`: the runs of a store, a line each."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.report import layout
from scrapy_frontier.report.runs import find_run, list_runs

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.report.runs import RunSummary
    from scrapy_frontier.store.opening import Store


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def _run(invocation: Invocation) -> int:
    with invocation.store() as store:
        with store.reader() as connection:
            runs = list_runs(connection)
            if invocation.options.run is not None:
                only = find_run(connection, invocation.options.run)
                runs = tuple(run for run in runs if run.id == only)
        runs = tuple(_with_end(store, run) for run in runs)
    invocation.answer(_text(runs), [asdict(run) for run in runs])
    return 0


def _with_end(store: Store, run: RunSummary) -> RunSummary:
    """An open run that no process works on was interrupted."""
    if run.state == "running" and is_live(store, run.id) is False:
        return replace(run, stop_reason="interrupted")
    return run


def _text(runs: tuple[RunSummary, ...]) -> str:
    if not runs:
        return "No runs yet.\n"
    rows = [
        (
            run.id,
            (run.started_at or "-")[:16].replace("T", " "),
            "interrupted" if run.stop_reason == "interrupted" else run.state,
            run.discovered,
            run.succeeded,
            run.unresolved,
            run.suppressed,
            run.deferred,
            layout.shorten(run.spider, 16),
            run.name,
        )
        for run in runs
    ]
    headings = ["run", "started (UTC)", "state", "URLs", "done", "open", "excl.", "held"]
    return "\n".join(layout.table([*headings, "spider", "name"], rows)) + "\n"


COMMAND = Subcommand("runs", "List the runs of the store", _add_arguments, _run)
