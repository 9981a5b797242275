"""`frontier robots`: the records of robots.txt, and what they say of a URL."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.report.robots.answers import RecordAnswer, UrlAnswer, read_subject
from scrapy_frontier.report.robots.records import entries, entry_of
from scrapy_frontier.report.robots.render import render_record, render_records, render_url
from scrapy_frontier.report.robots.run_policy import RunPolicy

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation, View
    from scrapy_frontier.report.robots.answers import Subject

EPILOG: Final = (
    "An origin (https://host:port, or a robots.txt) shows its whole record, a URL what that record"
    " and FRONTIER_ROBOTS_RULES say of it to the agent of the run. Without an argument all records"
    " of the store are listed, or with --run those of one run's origins. Exit status: 0 there is a"
    " record, or the URL may be fetched; 1 the origin is unknown, or the URL may not be fetched: it"
    " is forbidden, or it waits for a robots.txt; 2 bad usage."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("subject", nargs="?", metavar="ORIGIN_OR_URL")
    parser.add_argument("--full", action="store_true", help="show a long robots.txt whole")


def _run(invocation: Invocation) -> int:
    with invocation.view() as view:
        policy = RunPolicy.of(view.connection, view.run_id)
        asked = invocation.options.subject
        if asked is None:
            return _list(invocation, view, policy)
        return _answer(invocation, view, policy, read_subject(view.connection, asked))


def _list(invocation: Invocation, view: View, policy: RunPolicy) -> int:
    only = None if invocation.options.run is None else view.run_id
    now = time.time()
    found = [RecordAnswer.of(entry, policy, now) for entry in entries(view.connection, only)]
    if not policy.obeys:
        invocation.note(f"run {policy.run_id} asks no robots.txt: ROBOTSTXT_OBEY is off in it")
    invocation.answer(render_records(found), [one.to_json() for one in found])
    return 0


def _answer(invocation: Invocation, view: View, policy: RunPolicy, subject: Subject) -> int:
    entry = entry_of(view.connection, subject.origin)
    known = None if entry is None else view.shown(RecordAnswer.of(entry, policy, time.time()))
    run: dict[str, Any] = {"run": view.run_id, "agent": asdict(policy.agent)}
    if subject.url is not None:
        said = view.shown(UrlAnswer.of(subject.url, known, policy))
        text = render_url(said, subject.origin, policy)
        invocation.answer(text, {**run, **said.to_json()})
        return 0 if said.is_allowed else 1
    if known is None:
        nothing = {"origin": subject.origin, "state": None}
        text = f"No robots.txt of {subject.origin} in this store.\n"
        invocation.answer(text, {**run, **nothing})
        return 1
    text = render_record(known, policy, is_full=invocation.options.full)
    invocation.answer(text, {**run, **known.to_json(), "lines": known.lines()})
    return 0


COMMAND = Subcommand(
    "robots",
    "Show the robots.txt on record, and what they say of a URL",
    _add_arguments,
    _run,
    epilog=EPILOG,
)
