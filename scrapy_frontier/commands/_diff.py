"""`frontier diff`: what is different in a run from an earlier one."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.output import write
from scrapy_frontier.commands.progress import shown
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.diff import Side, differences
from scrapy_frontier.report.diff.render import Tally, render
from scrapy_frontier.report.redacted import redacted
from scrapy_frontier.report.runs import RunNotFound, find_run, list_runs
from scrapy_frontier.store.opening import open_store

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.report.diff import Difference, Standing
    from scrapy_frontier.report.runs import RunSummary
    from scrapy_frontier.store.opening import Store

LIMIT: Final = 20

PART: Final = 500
"""Lines that are written at once."""

EPILOG: Final = (
    "Both runs are read in the order of their fetch keys and held a page at a time. URLs are told in"
    " no other order. Robots.txt are left out. Kinds: new, gone, changed (other bytes), moved"
    " (redirects now, to another URL, or no longer), failing, recovered, allowed, suppressed"
    " (excluded or held back now), open (a run has not come to an end with it); each with where the"
    " URL stood and why. Exit status, as that of diff: 0 no difference, 1 differences, 2 trouble."
)

_OF_STANDING: Final = ("state", "disposition", "reason", "status", "content", "target")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="RUN", help="id or name of the earlier run")
    parser.add_argument("second", metavar="RUN", help="id or name of the later run")
    parser.add_argument(
        "--other-store", metavar="URL", help="the store of the second run, where it is another one"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=LIMIT,
        help=f"in the text, list so many of each kind at the most (default: {LIMIT})",
    )


def _run(invocation: Invocation) -> int:
    options = invocation.options
    if options.run is not None:
        raise ConfigError("--run names one run, and diff takes two: write both behind the command")
    with ExitStack() as stack:
        store = stack.enter_context(invocation.store())
        other = store
        if options.other_store:
            other = stack.enter_context(open_store(options.other_store, read_only=True))
        first, earlier = _side(store, options.first)
        second, later = _side(other, options.second)
        with other.reader() as connection:
            redaction = invocation.redaction(connection)
        progress = stack.enter_context(shown())
        found = (redacted(one, redaction) for one in differences(first, second, progress=progress))
        tally = Tally(max(0, options.limit))
        told = _counting(found, tally)
        _WRITERS[options.format](told, tally, earlier, later)
    return 1 if tally.counts else 0


def _side(store: Store, wanted: str) -> tuple[Side, RunSummary]:
    """A run and what it is. Raises `ConfigError` where there is none: that is trouble, no difference."""
    with store.reader() as connection:
        try:
            run_id = find_run(connection, wanted)
        except RunNotFound as error:
            raise ConfigError(str(error)) from error
        (summary,) = (run for run in list_runs(connection) if run.id == run_id)
    return Side(store, run_id), summary


def _counting(found: Iterable[Difference], tally: Tally) -> Iterator[Difference]:
    for one in found:
        tally.add(one)
        yield one


def _write_text(
    found: Iterable[Difference], tally: Tally, first: RunSummary, second: RunSummary
) -> None:
    for _ in found:
        pass
    title = f"From run {first.id} ({first.name}) to run {second.id} ({second.name})"
    write(sys.stdout, render(tally, title, _notes(first, second)))


def _write_json(
    found: Iterable[Difference], tally: Tally, first: RunSummary, second: RunSummary
) -> None:
    """One object, a difference a line: what reads it line by line needs no more memory than what wrote it."""
    head = {"from": _told(first), "to": _told(second), "notes": _notes(first, second)}
    write(sys.stdout, json.dumps(head, ensure_ascii=False)[:-1] + ', "differences": [')
    lines = (json.dumps(one.to_json(), ensure_ascii=False) for one in found)
    _write_in_parts(f"{',' if number else ''}\n{line}" for number, line in enumerate(lines))
    counts = json.dumps(tally.ordered())
    write(sys.stdout, f'\n], "same_text": {tally.same_text}, "counts": {counts}}}\n')


def _write_csv(
    found: Iterable[Difference], tally: Tally, first: RunSummary, second: RunSummary
) -> None:
    columns = [f"{side}_{name}" for side in ("was", "now") for name in _OF_STANDING]
    write(sys.stdout, _line(["kind", "method", "url", "same_text", *columns]))
    _write_in_parts(
        _line([one.kind, one.method, one.url, one.same_text, *_cells(one.was), *_cells(one.now)])
        for one in found
    )


_WRITERS: Final = {"text": _write_text, "json": _write_json, "csv": _write_csv}


def _write_in_parts(lines: Iterable[str]) -> None:
    left = iter(lines)
    while part := "".join(islice(left, PART)):
        write(sys.stdout, part)


def _cells(standing: Standing | None) -> list[Any]:
    return [None if standing is None else getattr(standing, name) for name in _OF_STANDING]


def _line(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue()


def _told(run: RunSummary) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.name,
        "state": run.state,
        "policy_version": run.policy_version,
    }


def _notes(first: RunSummary, second: RunSummary) -> list[str]:
    """What a reader must know before he believes a difference."""
    notes = [
        f"Run {run.id} is not finished: what it has not found or fetched is told as gone, new or open."
        for run in (first, second)
        if run.state != "finished"
    ]
    if first.policy_version != second.policy_version:
        notes.append(
            f"They have different policies, {first.policy_version} and {second.policy_version}:"
            " limits and rules make differences too."
        )
    return notes


COMMAND = Subcommand(
    "diff",
    "Compare two runs: what is new, gone, changed, moved, failing, allowed",
    _add_arguments,
    _run,
    formats=("text", "json", "csv"),
    epilog=EPILOG,
)
