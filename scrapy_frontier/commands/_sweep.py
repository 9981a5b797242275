"""`frontier sweep`: evidence that nothing names, removed once it is old enough."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.report.layout import counted, number
from scrapy_frontier.store.artifacts.references import sweep_orphans
from scrapy_frontier.store.artifacts.sweep import GRACE_S

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.store.artifacts.sweep import Swept


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace",
        type=float,
        default=GRACE_S / 3600,
        metavar="HOURS",
        help="leave alone what was written in this time (default: %(default)g)",
    )
    parser.add_argument("--dry-run", action="store_true", help="count only, remove nothing")


def _run(invocation: Invocation) -> int:
    options = invocation.options
    with invocation.store() as store:
        swept = sweep_orphans(
            store,
            invocation.artifacts(store),
            time.time(),
            options.grace * 3600,
            dry_run=options.dry_run,
        )
    invocation.answer(_text(swept, dry_run=options.dry_run), asdict(swept))
    return 0


def _text(swept: Swept, *, dry_run: bool) -> str:
    done = "would be removed" if dry_run else "removed"
    return (
        f"{counted(swept.removed, 'orphan')} of {counted(swept.seen, 'artifact')} {done},"
        f" {number(swept.bytes)} bytes; {counted(swept.young, 'orphan')} younger than the grace"
        " period left alone.\n"
    )


COMMAND = Subcommand(
    "sweep", "Remove evidence that no transition names any more", _add_arguments, _run
)
"""`--run` says nothing here: an artifact may belong to several runs."""
