"""Whole crawls alone and watched: by `frontier top`, and by a reader who reloads the pages of `frontier serve` twice a
second. CPU seconds are those of the crawl; seconds hold what the watchers take of the machine too.
"""

from __future__ import annotations

import argparse

from benchmarks import crawl
from benchmarks.figures import Table
from benchmarks.variants import FRONTIER, WATCHED

QUICK = crawl.QUICK


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `crawl`, with other variants."""
    crawl.add_options(parser, (FRONTIER, WATCHED))


def run(options: argparse.Namespace) -> list[Table]:
    """The tables of `crawl`."""
    return crawl.run(options)
