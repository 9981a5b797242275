"""`frontier explain`: why a URL stands where it stands."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.report.explain import explain
from scrapy_frontier.report.render_url import render_explanation

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the URL, or a reference as a page spelled it")


def _run(invocation: Invocation) -> int:
    with invocation.view() as view:
        explanation = view.shown(
            explain(
                view.connection,
                view.run_id,
                invocation.options.url,
                now_ms=int(time.time() * 1000),
                is_live=view.is_live,
            )
        )
    text = render_explanation(explanation, view.run_id)
    invocation.answer(text, {"run": view.run_id, **explanation.to_json()})
    if not explanation.is_known:
        invocation.note_unknown(invocation.options.url)
    return 0 if explanation.is_known else 1


COMMAND = Subcommand("explain", "Explain where a URL stands, and why", _add_arguments, _run)
