"""`frontier report`: the coverage report of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.progress import shown
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report import coverage, render_long

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which", nargs="?", metavar="RUN", help="id or name of the run (default: the latest)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to FILE instead of standard output"
    )


def _run(invocation: Invocation) -> int:
    which, run = invocation.options.which, invocation.options.run
    if which is not None and run is not None and which != run:
        raise ConfigError(f"two runs were named, {which!r} and {run!r}: name one")
    from scrapy_frontier.report.html import read_facts, render_html  # only this command draws

    is_html = invocation.options.format == "html"
    with invocation.view(which) as view, shown() as progress:
        account = view.shown(
            coverage(view.connection, view.run_id, is_live=view.is_live, progress=progress)
        )
        progress("Reading links and times" if is_html else "", 0, 0)
        facts = view.shown(read_facts(view.connection, view.run_id)) if is_html else None
    text = render_long(account) if facts is None else render_html(account, facts)
    invocation.answer(text, account.to_json(), invocation.options.output)
    return 0


COMMAND = Subcommand(
    "report",
    "Report what a run covered, what not and why",
    _add_arguments,
    _run,
    formats=("text", "json", "html"),
)
