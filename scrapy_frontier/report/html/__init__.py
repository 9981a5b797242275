"""The report as one page of HTML, to be opened from a file or mailed."""

from scrapy_frontier.report.html.page import content_policy, render_html
from scrapy_frontier.report.html.read import read_facts

__all__ = ["content_policy", "read_facts", "render_html"]
