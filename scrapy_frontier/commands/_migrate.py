"""`frontier migrate`: an older store gets the schema of this version, without a crawl on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.store import schema
from scrapy_frontier.store.opening import open_store

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation

EPILOG: Final = (
    "A crawl does the same when it opens its store. All of it happens in one transaction; a version of"
    " this package that is older than the schema does not read the store any more, so make a backup"
    " with the version that wrote it if you may want to go back."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def _run(invocation: Invocation) -> int:
    url = invocation.store_url
    open_store(url).close()
    text = f"The store has the schema {schema.SCHEMA_VERSION}, that of this version.\n"
    invocation.answer(text, {"schema": schema.SCHEMA_VERSION})
    return 0


COMMAND = Subcommand(
    "migrate",
    "Bring an older store to the schema of this version",
    _add_arguments,
    _run,
    epilog=EPILOG,
)
"""`--run` says nothing here: a store has one schema."""
