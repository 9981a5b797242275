"""`scrapy-frontier`: the subcommands of `scrapy frontier`, also outside a project."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import get_project_settings

from scrapy_frontier import __version__
from scrapy_frontier.commands.registry import add_subcommands, execute

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="scrapy-frontier",
        description="Runs, reports and checks of the frontier's store.",
        epilog="Exit status: 0 fine, 1 the answer is no, 2 bad usage or a store that cannot be read.",
    )
    parser.add_argument("--version", action="version", version=f"scrapy-frontier {__version__}")
    add_subcommands(parser, parser.prog)
    options = parser.parse_args(arguments)
    if options.subcommand is None:
        parser.error("a command is needed")
    settings = get_project_settings()
    try:
        given = arglist_to_dict(getattr(options, "further_set", []))
    except ValueError:
        parser.error("-s needs NAME=VALUE")
    settings.setdict(given, priority="cmdline")
    return execute(options, settings)
