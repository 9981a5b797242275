"""The store alone: life cycles of a URL per CPU second, on SQLite with `synchronous=FULL`.

A life cycle is a reference to a new URL, its dispatch, its response and the end of its page: six
transitions of the ledger with what belongs to them. `bare` writes the same number of rows through
the same SQLite library from one thread, without messages, checks or answers, in transactions of as
many life cycles as are under way: what the disk and the library allow.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import fresh
from benchmarks.figures import Spread, Table, ratios
from benchmarks.fresh import Figures
from benchmarks.variants import FRONTIER, add_variant_option

BARE = "bare"

MODULES = {BARE: "benchmarks.bare_sqlite", FRONTIER: "benchmarks.frontier_store"}

QUICK = ["--lives", "2000", "--under-way", "64,500", "--reps", "1"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    add_variant_option(parser, (BARE, FRONTIER))
    parser.add_argument("--lives", type=int, default=20_000, help="life cycles")
    parser.add_argument("--reps", type=int, default=3, help="turns; medians are taken over them")
    parser.add_argument(
        "--under-way",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[16, 64, 1000],
        metavar="N,N",
        help="life cycles under way at once: they set the size of transactions",
    )


def run(options: argparse.Namespace) -> list[Table]:
    """One table for each number of life cycles under way."""
    return [_compare(under_way, options) for under_way in options.under_way]


def _compare(under_way: int, options: argparse.Namespace) -> Table:
    turns = []
    for _ in range(options.reps):
        turn = {}
        for variant in options.variants:
            with fresh.scratch_folder(options.folder) as folder:
                turn[variant] = fresh.measure(
                    "benchmarks.store:measure",
                    variant=variant,
                    folder=str(folder),
                    lives=options.lives,
                    under_way=under_way,
                )
        turns.append(turn)
    table = Table(
        f"store: {options.lives} life cycles, {under_way} under way, {options.reps} turns",
        ("variant", "lives/CPU s", "ratio", "lives/s", "commits", "bytes/URL"),
    )
    for variant in options.variants:
        figures = [turn[variant] for turn in turns]
        per_cpu = [options.lives / f["cpu_s"] for f in figures]
        base = [options.lives / turn[options.variants[0]]["cpu_s"] for turn in turns]
        table.add(
            variant,
            Spread.of(per_cpu).text(0),
            ratios(per_cpu, base).text(2),
            Spread.of(options.lives / f["wall_s"] for f in figures).text(0),
            Spread.of(f["commits"] for f in figures).text(0),
            Spread.of(f["bytes"] / options.lives for f in figures).text(0),
        )
    table.data.extend(figures for turn in turns for figures in turn.values())
    return table


def measure(variant: str, folder: str, lives: int, under_way: int) -> Figures:
    """Runs in the measuring process."""
    path = Path(folder) / "store.db"
    commits, spent = importlib.import_module(MODULES[variant]).write_lives(path, lives, under_way)
    return {
        "variant": variant,
        "lives": lives,
        "under_way": under_way,
        "cpu_s": spent.cpu_s,
        "wall_s": spent.wall_s,
        "commits": commits,
        "bytes": sum(file.stat().st_size for file in path.parent.glob("store.db*")),
    }
