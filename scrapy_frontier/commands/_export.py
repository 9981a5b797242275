"""`frontier export`: the rows of a run for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.commands.output import mute
from scrapy_frontier.commands.progress import shown
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.exports.export import Export
from scrapy_frontier.report.exports.formats import FORMATS, Format
from scrapy_frontier.report.exports.subjects import SUBJECTS, Subject
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.layout import counted
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.store.files import new_file

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation

EPILOG: Final = (
    "The rows are those of one moment, the beginning of the export, also while a crawl writes on:"
    " every row that was committed then, and none that came later. The moment is told on standard"
    " error, by the seq of its last transition. Rows go to standard output, or to --output, which"
    " appears whole at the end or not at all."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "; ".join(f"{one.name}: {one.summary}" for one in SUBJECTS.values())
    parser.add_argument("subject", nargs="?", choices=tuple(SUBJECTS), metavar="WHAT", help=what)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to this file")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the file that is there already"
    )


def _run(invocation: Invocation) -> int:
    options = invocation.options
    chosen = FORMATS[options.format]
    subject = _subject(chosen, options.subject)
    if options.output is None and not chosen.is_stream:
        raise ConfigError(f"--format {chosen.name} cannot be written to a pipe: name an --output")
    with invocation.store() as store:
        with store.reader() as connection:
            run_id = find_run(connection, options.run)
            redaction = None if chosen.is_evidence else invocation.redaction(connection)
        live = is_live(store, run_id)
        with shown() as progress:
            export = Export.begin(store, subject, run_id, progress, redaction)
            count = _write(export, chosen, options.output, overwrite=options.overwrite)
    where = "" if options.output is None else f" to {options.output}"
    going_on = ", while its crawl goes on" if live else ""
    invocation.note(
        f"{counted(count, 'row')} of {subject.name} of run {run_id} as of seq"
        f" {export.moment.seq}, {iso(export.moment.taken_ms)}{going_on}{where}"
    )
    return 0


def _subject(chosen: Format, named: str | None) -> Subject:
    name = named or chosen.subjects[0]
    if name not in chosen.subjects:
        held = ", ".join(chosen.subjects)
        raise ConfigError(f"--format {chosen.name} cannot hold {name}; it can hold: {held}")
    return SUBJECTS[name]


def _write(export: Export, chosen: Format, output: Path | None, *, overwrite: bool) -> int:
    if output is not None:
        with new_file(output, overwrite=overwrite) as part, part.open("wb") as file:
            return chosen.write(export, file)
    sys.stdout.flush()
    try:
        count = chosen.write(export, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # a reader such as head has what it wanted
        mute(sys.stdout)
        return 0
    return count


COMMAND = Subcommand(
    "export",
    "Write the rows of a run for other programs",
    _add_arguments,
    _run,
    formats=tuple(FORMATS),
    epilog=EPILOG,
)
