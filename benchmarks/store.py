"""The store alone: life cycles of a URL per CPU second, on SQLite with `synchronous=FULL`.

A life cycle is a reference to a new URL, its dispatch, its response and the end of its page: six
transitions of the ledger with what belongs to them. `bare` writes the same number of rows through
the same SQLite library from one thread, without messages, checks or answers, in transactions of as
many life cycles as are under way: what the disk and the library allow.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from benchmarks import bare_sqlite, fresh
from benchmarks.figures import Spread, Table, ratios
from benchmarks.fresh import Figures
from benchmarks.frontier_store import write_lives
from benchmarks.variants import FRONTIER, add_variant_option
from scrapy_frontier.store.opening import open_store

BARE = "bare"

POSTGRESQL = "postgresql"
"""The same writer on a PostgreSQL server, which `--postgresql` names; its processor time is not in the figures."""

QUICK = ["--lives", "2000", "--under-way", "64,500", "--reps", "1"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    add_variant_option(parser, (BARE, FRONTIER))
    parser.add_argument(
        "--postgresql",
        metavar="URL",
        help="a database of a PostgreSQL server, as FRONTIER_STORE has it: adds the variant `postgresql`,"
        " which makes schemas of its own there and drops them",
    )
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
    variants = [*options.variants, *([POSTGRESQL] if options.postgresql else [])]
    for _ in range(options.reps):
        turn = {}
        for variant in variants:
            with fresh.scratch_folder(options.folder) as folder:
                turn[variant] = fresh.measure(
                    "benchmarks.store:measure",
                    variant=variant,
                    folder=str(folder),
                    lives=options.lives,
                    under_way=under_way,
                    server=options.postgresql,
                )
        turns.append(turn)
    table = Table(
        f"store: {options.lives} life cycles, {under_way} under way, {options.reps} turns",
        ("variant", "lives/CPU s", "ratio", "lives/s", "commits", "bytes/URL"),
    )
    for variant in variants:
        figures = [turn[variant] for turn in turns]
        per_cpu = [options.lives / f["cpu_s"] for f in figures]
        base = [options.lives / turn[variants[0]]["cpu_s"] for turn in turns]
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


def measure(variant: str, folder: str, lives: int, under_way: int, server: str | None) -> Figures:
    """Runs in the measuring process."""
    path = Path(folder) / "store.db"
    if variant == BARE:
        commits, spent = bare_sqlite.write_lives(path, lives, under_way)
        size = _size(path)
    elif variant == FRONTIER:
        commits, spent = write_lives(f"sqlite:///{path}", lives, under_way)
        size = _size(path)
    else:
        with own_schema(str(server)) as url:
            commits, spent = write_lives(url, lives, under_way)
            with open_store(url, read_only=True) as store, store.reader() as connection:
                size = store.database.size(connection)
    return {
        "variant": variant,
        "lives": lives,
        "under_way": under_way,
        "cpu_s": spent.cpu_s,
        "wall_s": spent.wall_s,
        "commits": commits,
        "bytes": size,
    }


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob("store.db*"))


@contextmanager
def own_schema(server: str) -> Iterator[str]:
    """The URL of a new schema of a server's database, dropped in the end."""
    name = f"benchmark_{os.getpid()}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    try:
        url = make_url(server).update_query_dict({"options": f"-csearch_path={name}"})
        yield url.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()
