"""Play seeded schedules; exit status 1 where one found a fault. See `tests.crash`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import pkgutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import scrapy_frontier
from scrapy_frontier.failpoints import POINTS

from .schedules import CRAWL_POINTS, make_schedule
from .sessions import Outcome, Trial, play

COVER_TRIES = 5
"""Schedules that try to come to one point, with `--cover`."""

WANTED = ("alembic.operations", "scrapy.cmdline", "scrapy.commands.crawl")

UNWANTED = ("scrapy_frontier.resolver", "scrapy_frontier.store.migrations.versions")
"""Modules that no crawl of these needs; some want a reactor."""


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="how many schedules (50)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="replay this one alone")
    parser.add_argument(
        "--point",
        default="",
        choices=["", *CRAWL_POINTS],
        help="kill there first, in every schedule",
    )
    parser.add_argument(
        "--store",
        default="",
        help="URL of a PostgreSQL database, in which each schedule gets a schema; by default it gets an SQLite file",
    )
    parser.add_argument(
        "--spawn", action="store_true", help="start each crawl anew instead of forking it"
    )
    parser.add_argument(
        "--power", action="store_true", help="let the power fail with each kill (SQLite alone)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="schedules at the same time (1)")
    parser.add_argument(
        "--cover", action="store_true", help="play on until every point has killed a crawl"
    )
    parser.add_argument(
        "--keep", type=Path, help="keep what the crawls leave behind in this folder"
    )
    parser.add_argument("--json", type=Path, help="write what came of each schedule into this file")
    return parser


def main() -> int:
    """Play the schedules that the command line asks for."""
    options = make_parser().parse_args()
    seeds = (
        [options.seed]
        if options.seed is not None
        else range(options.first, options.first + options.seeds)
    )
    import_all()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crash-") as temporary:
        folder = Path(options.keep or temporary)
        outcomes = share(list(seeds), options, folder)
        if options.cover:
            outcomes += cover(outcomes, options, folder)
    if options.json:
        options.json.write_text(json.dumps(list(map(asdict, outcomes)), indent=1))
    summarise(outcomes, time.monotonic() - began)
    is_short = options.cover and never_killed_at(outcomes)
    return int(bool(is_short) or any(outcome.faults for outcome in outcomes))


def import_all() -> None:
    """Import what every crawl needs, before the first fork. None of it may install a reactor or open anything."""
    from scrapy.settings import default_settings
    from scrapy.utils.misc import load_object

    modules = pkgutil.walk_packages(scrapy_frontier.__path__, "scrapy_frontier.")
    for name in [*WANTED, *(module.name for module in modules)]:
        if not name.startswith(UNWANTED):
            # A part that needs an extra is not there without it.
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(name)
    for name, value in vars(default_settings).items():
        if name.endswith("_BASE"):
            for path in [*value, *value.values()]:
                if isinstance(path, str) and "." in path:
                    load_object(path)
    assert "twisted.internet.reactor" not in sys.modules, "a fork would share the reactor"


def share(seeds: list[int], options: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Play the seeds in `--jobs` processes, which tell as they go."""
    folder.mkdir(parents=True, exist_ok=True)
    if options.jobs == 1:
        return play_all(seeds, options, folder)
    outcomes, workers = [], []
    for number in range(options.jobs):
        told = folder / f"outcomes-{os.getpid()}-{number}.json"
        pid = os.fork()
        if not pid:
            status = 1
            try:
                played = play_all(seeds[number :: options.jobs], options, folder)
                told.write_text(json.dumps(list(map(asdict, played))))
                status = 0
            finally:
                os._exit(status)
        workers.append((pid, told))
    for pid, told in workers:
        if os.waitpid(pid, 0)[1]:
            raise SystemExit("a process of the harness failed; see above")
        outcomes += [Outcome(**values) for values in json.loads(told.read_text())]
    return sorted(outcomes, key=lambda outcome: outcome.seed)


def play_all(seeds: list[int], options: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Play the seeds one after the other."""
    outcomes = []
    for seed in seeds:
        schedule = make_schedule(seed, options.point)
        trial = Trial(
            schedule,
            folder / f"seed-{seed}",
            options.store,
            spawns=options.spawn,
            cuts_power=options.power,
        )
        outcome = play(trial, keep=options.keep is not None)
        outcomes.append(outcome)
        if outcome.faults:
            print(f"{schedule}\n    " + "\n    ".join(outcome.faults), flush=True)
    return outcomes


def cover(outcomes: list[Outcome], options: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Kill at each point where nothing was killed yet; when a crawl comes there is also a matter of timing."""
    more: list[Outcome] = []
    for point in never_killed_at(outcomes):
        for seed in range(options.first, options.first + COVER_TRIES):
            options.point = point
            more += play_all([seed], options, folder / point)
            if point not in never_killed_at(more):
                break
    return more


def never_killed_at(outcomes: list[Outcome]) -> list[str]:
    """The points of a crawl that ended none."""
    killed = {kill.partition(":")[0] for outcome in outcomes for kill in outcome.kills}
    return [name for name in CRAWL_POINTS if name not in killed]


def summarise(outcomes: list[Outcome], seconds: float) -> None:
    """Say what was done, and where nothing was killed."""
    kills: Counter[str] = Counter(
        kill.partition(":")[0] for outcome in outcomes for kill in outcome.kills
    )
    reached = {name for outcome in outcomes for name in outcome.reached}
    figures: dict[str, Any] = {
        name: sum(getattr(outcome, name) for outcome in outcomes)
        for name in ("sessions", "hits", "identities", "repeats")
    }
    named = sum(n for name, n in kills.items() if name in POINTS)
    cuts = sum(len(outcome.cuts) for outcome in outcomes)
    print(
        f"{len(outcomes)} schedules in {seconds:.0f} s: {figures['sessions']} crawls, {sum(kills.values())} killed"
        f" ({named} of them at a named point), {cuts} power cuts, {figures['hits']} requests,"
        f" {figures['identities']} identities, {figures['repeats']} leases taken back"
    )
    never = never_killed_at(outcomes)
    if never:
        unreached = [name for name in never if name not in reached]
        print(
            f"never killed at: {', '.join(never)}; never reached: {', '.join(unreached) or 'none'}"
        )
    faulty = [outcome.seed for outcome in outcomes if outcome.faults]
    print(f"faults in {len(faulty)} schedules: {faulty}" if faulty else "no fault found")


if __name__ == "__main__":
    sys.exit(main())
