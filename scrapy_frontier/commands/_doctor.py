"""`frontier doctor`: what this installation, its settings and its store are in want of."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.commands.rehearsal import rehearse
from scrapy_frontier.report import layout
from scrapy_frontier.report.doctor import Level, examine

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.report.doctor import Check

_MARGIN: Final = 18


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def _run(invocation: Invocation) -> int:
    options, settings = invocation.options, invocation.settings
    checks = examine(invocation.store_url, settings, options.run, is_live, rehearse)
    invocation.answer(_text(checks), [asdict(check) for check in checks])
    return 1 if any(check.level is Level.FAIL for check in checks) else 0


def _text(checks: Sequence[Check]) -> str:
    lines = []
    for check in checks:
        label = f"{check.level.value:<5} {check.name}"
        cure = [f"Cure: {check.cure}"] if check.cure else []
        lines += layout.labelled(label, [layout.printable(check.text), *cure], _MARGIN)
    return "\n".join(lines) + "\n"


COMMAND = Subcommand(
    "doctor", "Examine this installation, its settings and its store", _add_arguments, _run
)
