"""`frontier quarantine`: results that were kept and not applied."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.report.set_aside import late, quarantined, render

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation

EPILOG: Final = (
    "In quarantine: a second response of one attempt with other bytes than the first. Late: what an"
    " attempt brought when its lease had been taken back. Neither has changed any state. Exit"
    " status: 0, also where there are some; 2 bad usage."
)


def _add_arguments(_: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def _run(invocation: Invocation) -> int:
    with invocation.view() as view:
        conflicts = view.shown(quarantined(view.connection, view.run_id))
        late_ones = view.shown(late(view.connection, view.run_id))
    data = {
        "run": view.run_id,
        "quarantine": [asdict(one) for one in conflicts],
        "late": [asdict(one) for one in late_ones],
    }
    invocation.answer(render(conflicts, late_ones, view.run_id), data)
    return 0


COMMAND = Subcommand(
    "quarantine",
    "Show results that were kept and not applied: conflicting and late ones",
    _add_arguments,
    _run,
    epilog=EPILOG,
)
