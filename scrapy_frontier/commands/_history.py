"""`frontier history`: every transition of a URL."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.report.history import history
from scrapy_frontier.report.lookup import look_up
from scrapy_frontier.report.render_url import render_history

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL")


def _run(invocation: Invocation) -> int:
    with invocation.view() as view:
        lookup = look_up(view.connection, view.run_id, invocation.options.url)
        histories = view.shown(
            [(found, history(view.connection, found.identity_id)) for found in lookup.identities]
        )
        lookup = view.shown(lookup)
    data = {
        "run": view.run_id,
        "asked": lookup.asked,
        "url": lookup.url,
        "rule": lookup.rejection.rule if lookup.rejection else None,
        "identities": [
            {
                "identity": found.identity_id,
                "method": found.method,
                "url": found.url,
                "transitions": [asdict(step) for step in steps],
            }
            for found, steps in histories
        ],
    }
    invocation.answer(render_history(lookup, histories, view.run_id), data)
    if not histories:
        invocation.note_unknown(invocation.options.url)
    return 0 if histories else 1


COMMAND = Subcommand("history", "Show every transition of a URL", _add_arguments, _run)
