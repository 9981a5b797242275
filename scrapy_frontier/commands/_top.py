"""`frontier top`: a running crawl, from another terminal."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.commands.screen import frames
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.live import View
from scrapy_frontier.report.render_live import render_frame

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation

INTERVAL_S: Final = 2.0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--once", action="store_true", help="show one frame and end, as --format json always does"
    )
    parser.add_argument(
        "--interval",
        type=float,
        default=INTERVAL_S,
        metavar="SECONDS",
        help=f"between two frames (default: {INTERVAL_S:g})",
    )


def _run(invocation: Invocation) -> int:
    options = invocation.options
    if not 0.1 <= options.interval <= 3600:
        raise ConfigError(f"--interval {options.interval:g}: must be from 0.1 to 3600 seconds")
    with invocation.store() as store:
        view = View(store, options.run, partial(is_live, store))
        if options.once or invocation.is_json:
            frame = view.frame()
            invocation.answer("\n".join(render_frame(frame)) + "\n", frame.to_json())
            return 0
        return _show(view, options.interval)


def _show(view: View, interval_s: float) -> int:
    try:
        with frames(sys.stdout) as show:
            while True:
                show([*render_frame(view.frame()), "", "Ctrl-C ends this view, not the crawl."])
                time.sleep(interval_s)
    except KeyboardInterrupt:  # how it is meant to end
        return 0


COMMAND = Subcommand(
    "top",
    "Watch a run from another terminal: its pace, what waits, what is in trouble",
    _add_arguments,
    _run,
)
