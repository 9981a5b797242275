"""What is compared: the same spider under three schedulers, told apart by settings only."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scrapy_frontier

MEMORY = "memory"
"""Scrapy's default scheduler, which keeps nothing."""

JOBDIR = "jobdir"
"""Scrapy's default scheduler with a JOBDIR: queues and fingerprints on disk, without fsync."""

FRONTIER = "frontier"
"""scrapy_frontier on SQLite with `synchronous=FULL`."""

HEADERS = "headers"
"""The same with `FRONTIER_EVIDENCE = "headers"`."""

BODY = "body"
"""The same with `FRONTIER_EVIDENCE = "body"`."""

WATCHED = "watched"
"""`frontier`, with others who watch it: see `watchers`."""

EVIDENCE = (FRONTIER, HEADERS, BODY)
UNCHECKED = "unchecked"
"""The same without rules about traps and without likeness: what those cost is the difference."""

VARIANTS = (MEMORY, JOBDIR, FRONTIER)
"""Those compared by default."""

KNOWN = (*VARIANTS, UNCHECKED)

COMMON: dict[str, Any] = {
    "LOG_LEVEL": "WARNING",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
}


def settings_of(variant: str, folder: Path) -> dict[str, Any]:
    """The settings of a variant whose files, if it keeps any, go to `folder`."""
    frontier = {
        "ADDONS": {"scrapy_frontier.Addon": 500},
        "FRONTIER_STORE": f"sqlite:///{folder / 'frontier.db'}",
    }
    own: dict[str, dict[str, Any]] = {
        MEMORY: {},
        JOBDIR: {"JOBDIR": str(folder / "job")},
        FRONTIER: frontier,
        HEADERS: {**frontier, "FRONTIER_EVIDENCE": HEADERS},
        BODY: {**frontier, "FRONTIER_EVIDENCE": BODY},
        WATCHED: frontier,
        UNCHECKED: {**frontier, "FRONTIER_TRAPS": False, "FRONTIER_LIKENESS": False},
    }
    return COMMON | own[variant]


def has_frontier() -> bool:
    """Whether the package under test has its addon: without it only the baselines can run."""
    return hasattr(scrapy_frontier, "Addon")


def add_variant_option(parser: argparse.ArgumentParser, known: Sequence[str] = KNOWN) -> None:
    """`--variants a,b,c`, by default all that can run. The first is the measure of the others."""

    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"no variant {', '.join(unknown)} here")
        return chosen

    runnable = [
        name for name in known if name != UNCHECKED and (name not in EVIDENCE or has_frontier())
    ]
    parser.add_argument(
        "--variants",
        type=names,
        default=runnable,
        metavar="NAMES",
        help=f"of {', '.join(known)}; the first counts as 1.00",
    )
