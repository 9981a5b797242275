"""What a store has to say: reads the ledger and what it refers to, and writes nothing."""

from scrapy_frontier.report.account import Coverage
from scrapy_frontier.report.coverage import coverage
from scrapy_frontier.report.render import render_long, render_short

__all__ = ["Coverage", "coverage", "render_long", "render_short"]
