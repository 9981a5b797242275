"""Two runs beside each other: what became of the same URLs in each of them."""

from scrapy_frontier.report.diff.comparison import Difference, Kind
from scrapy_frontier.report.diff.runs import Side, differences
from scrapy_frontier.report.diff.standing import Standing

__all__ = ["Difference", "Kind", "Side", "Standing", "differences"]
