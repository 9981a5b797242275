"""The report as one page of HTML, to be opened from a file or mailed."""

from scrapy_frontier.report.html.page import render_html
from scrapy_frontier.report.html.read import read_facts

__all__ = ["read_facts", "render_html"]
