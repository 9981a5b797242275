"""All subcommands, their options, and their exit status."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands import (
    _artifact,
    _backup,
    _deadletters,
    _diff,
    _doctor,
    _explain,
    _export,
    _families,
    _history,
    _migrate,
    _prune,
    _quarantine,
    _release,
    _reparse,
    _report,
    _robots,
    _runs,
    _serve,
    _sweep,
    _top,
    _verify,
)
from scrapy_frontier.commands.invocation import Invocation, Subcommand
from scrapy_frontier.commands.output import write
from scrapy_frontier.errors import FrontierError
from scrapy_frontier.policy.redaction import Redaction, RedactionRule
from scrapy_frontier.report.runs import NoRuns
from scrapy_frontier.store.redaction import draw_key

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

SUBCOMMANDS: Final[tuple[Subcommand, ...]] = (
    _runs.COMMAND,
    _top.COMMAND,
    _serve.COMMAND,
    _report.COMMAND,
    _diff.COMMAND,
    _explain.COMMAND,
    _history.COMMAND,
    _deadletters.COMMAND,
    _deadletters.REQUEUE,
    _artifact.COMMAND,
    _sweep.COMMAND,
    _quarantine.COMMAND,
    _reparse.COMMAND,
    _robots.COMMAND,
    _families.COMMAND,
    _release.COMMAND,
    _verify.COMMAND,
    _backup.COMMAND,
    _export.COMMAND,
    _migrate.COMMAND,
    _prune.COMMAND,
    _doctor.COMMAND,
)

FINE: Final = 0
NO: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130


def add_subcommands(parser: argparse.ArgumentParser, program: str) -> None:
    """Give `parser` a parser for each subcommand, which puts its name into `subcommand`."""
    subparsers = parser.add_subparsers(
        dest="subcommand", title="Commands", metavar="<command>", prog=program
    )
    for command in SUBCOMMANDS:
        subparser = subparsers.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary}.",
            epilog=command.epilog,
        )
        command.add_arguments(subparser)
        _add_common(subparser, command)


def execute(options: argparse.Namespace, settings: BaseSettings) -> int:
    """Run the subcommand that was chosen, and return its exit status."""
    (command,) = (one for one in SUBCOMMANDS if one.name == options.subcommand)
    invocation = Invocation(options, settings)
    try:
        invocation.redaction_rule()  # a bad one is refused by every command, also by one that shows no URL
        return command.run(invocation)
    except NoRuns as error:
        return _complain(invocation, error, NO)
    except FrontierError as error:
        return _complain(invocation, error, UNUSABLE)
    except KeyboardInterrupt:
        return INTERRUPTED


def _complain(invocation: Invocation, error: FrontierError, status: int) -> int:
    text = str(error)
    if not invocation.options.no_redact:
        text = Redaction(RedactionRule(), draw_key()).text(text)
    write(sys.stderr, f"frontier {invocation.options.subcommand}: {text}\n")
    return status


def _add_common(parser: argparse.ArgumentParser, command: Subcommand) -> None:
    parser.add_argument(
        "--store",
        metavar="URL",
        help="the store to read, as sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE (default:"
        " FRONTIER_STORE, else frontier.db in JOBDIR, else in the project's .scrapy folder)",
    )
    parser.add_argument("--run", metavar="RUN", help="id or name of the run (default: the latest)")
    parser.add_argument(
        "--no-redact",
        action="store_true",
        help="show URLs whole, also what FRONTIER_REDACT hides in them",
    )
    parser.add_argument("--format", choices=command.formats, default=command.formats[0])
    parser.add_argument(
        "-s",
        "--set",
        dest="further_set",
        action="append",
        default=argparse.SUPPRESS,
        metavar="NAME=VALUE",
        help="set a setting (may be repeated)",
    )
