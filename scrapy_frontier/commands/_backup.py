"""`frontier backup`: a checked copy of the store, while crawls go on; and the way back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.progress import shown
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.layout import counted, size
from scrapy_frontier.store.backup import Backup, back_up, restore
from scrapy_frontier.store.location import locate
from scrapy_frontier.store.opening import open_store

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation

EPILOG: Final = (
    "The copy is a store like any other: --store sqlite:///FILE reads it, and a crawl can go on from"
    " it. A file that is there already is left alone unless --overwrite is said. Of a PostgreSQL"
    " database make a backup by pg_dump."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="where the copy is, or is to be")
    parser.add_argument(
        "--restore",
        action="store_true",
        help="the other way: put the copy FILE where the store is to stand; no crawl may run there",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the file that is there already"
    )


def _run(invocation: Invocation) -> int:
    options = invocation.options
    if options.run is not None:
        raise ConfigError("a backup holds all runs of a store: leave --run away")
    if options.restore:
        made, words = _restore(invocation, options.file, options.overwrite), "Restored"
    else:
        with invocation.store() as store, shown() as progress:
            made = back_up(store, options.file, overwrite=options.overwrite, progress=progress)
        words = "Copied to"
    invocation.answer(_text(words, made), asdict(made))
    return 0


def _restore(invocation: Invocation, copy: Path, overwrite: bool) -> Backup:
    target = locate(invocation.store_url).path
    if target is None:
        raise ConfigError("--restore needs a store that is a file: name it with --store")
    if target == copy.resolve():
        raise ConfigError(f"{copy} is the store itself: name the copy, and the store with --store")
    with open_store(f"sqlite:///{copy}", read_only=True) as source, shown() as progress:
        return restore(source, target, overwrite=overwrite, progress=progress)


def _text(words: str, made: Backup) -> str:
    held = ", ".join(
        (
            counted(made.runs, "run"),
            counted(made.identities, "identity", "identities"),
            counted(made.transitions, "transition"),
            counted(made.attempts, "attempt"),
        )
    )
    return f"{words} {made.path}: {size(made.size)}, {held}; the copy is checked.\n"


COMMAND = Subcommand(
    "backup",
    "Copy the store while crawls go on, or put a copy back",
    _add_arguments,
    _run,
    epilog=EPILOG,
)
