"""One page of HTML that holds all of a report: opened from a file, it asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from scrapy_frontier.report import layout
from scrapy_frontier.report.html import charts, tables
from scrapy_frontier.report.html.flow import flow
from scrapy_frontier.report.instants import clock, iso
from scrapy_frontier.report.pages import pages_of
from scrapy_frontier.report.stops import stop_sentence
from scrapy_frontier.report.summary import detail_words, summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_frontier.report.account import Coverage
    from scrapy_frontier.report.html.facts import Facts

_FOLDER: Final = "templates"


def render_html(account: Coverage, facts: Facts, notice: str | None = None) -> str:
    """The page of an account. All text of the web in it is escaped, control characters are written out.

    `notice` stands above the report.
    """
    script, style = _source("tables.js"), _source("page.css")
    return (
        _environment()
        .get_template("page.html")
        .render(
            account=account,
            facts=facts,
            pages=pages_of(account),
            stop=stop_sentence(account),
            summary=summary(account),
            flow=flow(account),
            tables=_tables(account, facts),
            charts=_charts(facts),
            growth=charts.growth_charts(facts.growth, facts.timeline),
            policy=_as_text(dict(facts.asked.settings)),
            scope=_as_text({"FRONTIER_SCOPE": account.unfinished.scope})
            if account.unfinished.scope
            else None,
            script=Markup(script),
            style=Markup(style),
            content_policy=Markup(content_policy()),
            notice=notice,
        )
    )


def content_policy() -> str:
    """What the page may do, as a Content-Security-Policy: run its one script, and ask for nothing."""
    digest = base64.b64encode(hashlib.sha256(_source("tables.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


def _tables(account: Coverage, facts: Facts) -> dict[str, tables.Table]:
    made = (
        tables.causes_table(account),
        tables.rejected_table(account),
        tables.origins_table(account),
        tables.dead_letters_table(account, account.identities.terminal.get("failed", 0)),
        tables.robots_table(account),
        tables.budgets_table(account),
        tables.families_table(account),
        tables.duplicates_table(account),
        tables.asked_table(account),
        tables.rendered_table(account),
        tables.regions_table(account),
        tables.chains_table(facts),
        tables.broken_table(facts),
        tables.orphans_table(facts),
        tables.odd_table(facts),
        tables.pace_table(facts),
    )
    return {table.name: table for table in made}


def _charts(facts: Facts) -> dict[str, Markup | None]:
    return {
        "throughput": charts.throughput_chart(facts.timeline),
        "latency": charts.latency_chart(facts.timeline),
        "pace": charts.pace_chart(facts.pace),
        "depth": charts.depth_chart(facts.graph.by_depth),
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("scrapy_frontier.report.html", _FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    environment.filters.update(
        number=layout.number,
        size=layout.size,
        share=layout.share,
        clock=clock,
        at=lambda at_ms: clock(iso(at_ms)),
        cell=cell,
        data=data,
        told=detail_words,
    )
    environment.globals.update(first=tables.ROWS_AT_FIRST, filtered=tables.ROWS_TO_FILTER)
    return environment


def visible(value: Any) -> Any:
    """Text with what a browser or a reader might obey, or not see, written as an escape; markup of ours as it is."""
    return layout.printable(value) if type(value) is str else value


def cell(value: tables.Cell, kind: str) -> str:
    """What stands in a cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if kind == "bytes":
        return layout.size(int(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def data(table: tables.Table) -> Markup:
    """The rows as JSON that can stand in a page: nothing in it ends the element it stands in."""
    rows = [[visible(value) for value in row] for row in table.rows]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def _as_text(value: Mapping[str, Any]) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False).splitlines()


@cache
def _source(name: str) -> str:
    return files("scrapy_frontier.report.html").joinpath(_FOLDER).joinpath(name).read_text("utf-8")
