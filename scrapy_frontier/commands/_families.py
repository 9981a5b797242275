"""`frontier families`: what was found by shape of URL, what it brought, and what is held of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.report.families import families
from scrapy_frontier.report.render_families import render_families

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--origin", metavar="ORIGIN", help="only families of this origin")
    parser.add_argument("--held", action="store_true", help="only families that a brake holds")


def _run(invocation: Invocation) -> int:
    options = invocation.options
    with invocation.view() as view:
        found = [
            one
            for one in map(view.shown, families(view.connection, view.run_id))
            if (options.origin is None or one.origin == options.origin.rstrip("/"))
            and (one.deferred or not options.held)
        ]
        data = {"run": view.run_id, "families": [one.to_json() for one in found]}
        invocation.answer(render_families(found, view.run_id), data)
    return 0


COMMAND = Subcommand(
    "families", "Show the families of URLs, and what traps hold of them", _add_arguments, _run
)
