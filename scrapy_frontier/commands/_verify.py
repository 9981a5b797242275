"""`frontier verify`: the ledger replayed, and all invariants checked."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.progress import shown
from scrapy_frontier.report.layout import counted
from scrapy_frontier.report.redacted import redacted
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.report.verify import verify

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.report.verify import Verification


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def _run(invocation: Invocation) -> int:
    with invocation.store() as store:
        run_id = None
        with store.reader() as connection:
            redaction = invocation.redaction(connection)
            if invocation.options.run is not None:
                run_id = find_run(connection, invocation.options.run)
        artifacts = invocation.artifacts_if_any(store)
        with shown() as progress:
            found = verify(store, run_id=run_id, progress=progress, artifacts=artifacts)
    verification = redacted(found, redaction)
    invocation.answer(_text(verification), asdict(verification))
    return 0 if verification.is_sound else 1


def _text(verification: Verification) -> str:
    lines = [
        f"invariant {finding.invariant}: {finding.text}" if finding.invariant else finding.text
        for finding in verification.findings
    ]
    if verification.omitted:
        lines.append(f"... and {counted(verification.omitted, 'more finding')}.")
    checked = (
        f"{counted(verification.transitions, 'transition')} of"
        f" {counted(verification.identities, 'identity', 'identities')} replayed"
    )
    if verification.is_sound:
        return f"Sound: {checked}, every invariant holds.\n"
    found = len(verification.findings) + verification.omitted
    return "\n".join([*lines, f"NOT SOUND: {checked}, {counted(found, 'finding')}."]) + "\n"


COMMAND = Subcommand("verify", "Replay the ledger and check every invariant", _add_arguments, _run)
