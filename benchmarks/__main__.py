"""`python -m benchmarks NAME [options]`: ratios side by side from one run. See README.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from benchmarks import (
    crawl,
    evidence,
    fairness,
    health,
    lateness,
    memory,
    raw_scheduler,
    rendering,
    store,
    throttle,
    watched,
)
from benchmarks.figures import Table, environment, environment_text
from benchmarks.fresh import MeasurementError, scratch_folder


class Benchmark(Protocol):
    """What each benchmark module offers."""

    __doc__: str | None
    QUICK: list[str]

    def add_options(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> list[Table]: ...


BENCHMARKS: dict[str, Benchmark] = {
    "crawl": crawl,
    "raw_scheduler": raw_scheduler,
    "memory": memory,
    "store": store,
    "evidence": evidence,
    "fairness": fairness,
    "lateness": lateness,
    "health": health,
    "throttle": throttle,
    "rendering": rendering,
    "watched": watched,
}


def _parser(name: str) -> argparse.ArgumentParser:
    benchmark = BENCHMARKS[name]
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=benchmark.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    benchmark.add_options(parser)
    return parser


def _top_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "name", choices=[*BENCHMARKS, "all"], help="what to measure; NAME --help shows its options"
    )
    parser.add_argument("--quick", action="store_true", help="sizes that only show that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    parser.add_argument(
        "--folder", type=Path, help="where stores are put (default: .scrapy/benchmarks)"
    )
    return parser


def _run_one(
    name: str, arguments: Sequence[str], *, quick: bool, folder: Path | None
) -> list[Table] | None:
    benchmark = BENCHMARKS[name]
    options = _parser(name).parse_args([*(benchmark.QUICK if quick else ()), *arguments])
    options.folder = folder
    try:
        tables = benchmark.run(options)
    except MeasurementError as error:
        print(f"\n{name}: {error}", file=sys.stderr)
        return None
    for table in tables:
        print(table.text(), flush=True)
    return tables


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks; 1 where one could not be carried out or did not do the same work in every
    variant.
    """
    if len(arguments) > 1 and arguments[0] in BENCHMARKS and {"-h", "--help"} & set(arguments):
        _parser(arguments[0]).parse_args(arguments[1:])
    options, rest = _top_parser().parse_known_args(arguments)
    names = list(BENCHMARKS) if options.name == "all" else [options.name]
    with scratch_folder(options.folder) as folder:
        found = environment(folder)
    print(environment_text(found), flush=True)
    results: dict[str, list[Table]] = {}
    status = 0
    for name in names:
        tables = _run_one(name, rest, quick=options.quick, folder=options.folder)
        if tables is None:
            status = 1
        else:
            results[name] = tables
    if options.json:
        _write(options.json, found, results)
    return status


def _write(path: Path, found: dict[str, object], results: dict[str, list[Table]]) -> None:
    measured = [
        {
            "benchmark": name,
            "title": table.title,
            "columns": table.columns,
            "rows": table.rows,
            "data": table.data,
        }
        for name, tables in results.items()
        for table in tables
    ]
    path.write_text(json.dumps({"environment": found, "tables": measured}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
