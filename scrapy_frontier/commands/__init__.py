"""`scrapy frontier ...`: what a store has to say, at the command line.

This module is imported at every start of `scrapy`, for any command: it must stay light, and an error
in it would break them all. Everything else is imported when the command runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """The command `frontier` of `scrapy`, with all its subcommands."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """What stands behind `scrapy frontier`."""
        return "<command> [options] [arguments]"

    def short_desc(self) -> str:
        """One line for the list of commands."""
        return "Runs, reports and checks of the frontier's store"

    def long_desc(self) -> str:
        """The same, with the exit status."""
        return (
            f"{self.short_desc()}. Exit status: 0 fine, 1 the answer is no, 2 bad usage or a store"
            ' that cannot be read. Use "scrapy frontier <command> -h" for one command.'
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """A parser for each subcommand, and Scrapy's own options."""
        from scrapy_frontier.commands.registry import add_subcommands

        add_subcommands(parser, "scrapy frontier")
        super().add_options(parser)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Take `-s NAME=VALUE` on either side of the subcommand."""
        opts.set = [*opts.set, *getattr(opts, "further_set", [])]
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the subcommand; its answer is the exit status."""
        from scrapy_frontier.commands.registry import execute

        if args:
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)
        if opts.subcommand is None:
            raise UsageError
        assert self.settings is not None
        self.exitcode = execute(opts, self.settings)
