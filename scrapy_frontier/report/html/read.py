"""Reads all that the page shows beside the account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_frontier.report.html.asked import asked
from scrapy_frontier.report.html.facts import Facts
from scrapy_frontier.report.html.graph import link_graph
from scrapy_frontier.report.html.growth import growth
from scrapy_frontier.report.html.odd import odd_urls
from scrapy_frontier.report.html.pace import pace
from scrapy_frontier.report.html.timeline import timeline
from scrapy_frontier.report.names import Codes

if TYPE_CHECKING:
    from sqlalchemy import Connection


def read_facts(connection: Connection, run_id: int) -> Facts:
    """The facts of a run, in the snapshot in which its account was read."""
    codes = Codes.of(connection)
    over_time = timeline(connection, run_id)
    odd_total, odd = odd_urls(connection, run_id, codes)
    return Facts(
        asked=asked(connection, run_id),
        timeline=over_time,
        pace=pace(connection, run_id),
        growth=growth(connection, run_id, over_time),
        graph=link_graph(connection, run_id, codes),
        odd_total=odd_total,
        odd=odd,
    )
