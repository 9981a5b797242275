"""Whole crawls with the modes of `FRONTIER_EVIDENCE`: `frontier` keeps nothing, `headers` and `body` keep those.

Each response is synced to disk before the spider sees it, so seconds depend on the disk as much as on the processor.
"""

from __future__ import annotations

import argparse

from benchmarks import crawl
from benchmarks.figures import Table
from benchmarks.variants import EVIDENCE

QUICK = crawl.QUICK


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `crawl`, with other variants."""
    crawl.add_options(parser, EVIDENCE)


def run(options: argparse.Namespace) -> list[Table]:
    """The tables of `crawl`."""
    return crawl.run(options)
