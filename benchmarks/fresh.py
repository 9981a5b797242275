"""Runs one measurement in a process of its own, so that none inherits another's memory, caches or
imports.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

ROOT = Path(__file__).parents[1]


class MeasurementError(RuntimeError):
    """A measuring process ended without figures. The message ends with what it wrote to standard
    error.
    """


def measure(function: str, **arguments: Any) -> Figures:
    """Call `package.module:function` with JSON-able arguments in a fresh process and return the
    figures it reports.
    """
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.fresh", function, json.dumps(arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = process.stdout.splitlines()
    if process.returncode or not lines:
        raise MeasurementError(
            f"{function} with {arguments} ended with status {process.returncode}:\n"
            f"{process.stderr[-3000:]}"
        )
    figures: Figures = json.loads(lines[-1])
    return figures


def report(figures: Figures) -> None:
    """Hand the figures to the process that asked for them: the last line of standard output."""
    print(json.dumps(figures), flush=True)


@contextmanager
def scratch_folder(parent: Path | None) -> Iterator[Path]:
    """A folder for one measurement's files, on the disk of the project unless `parent` says
    otherwise.

    Not the system's temporary folder: where that is memory, a flush to disk costs nothing and the
    figures flatter.
    """
    parent = (parent or ROOT / ".scrapy" / "benchmarks").resolve()
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


def main() -> None:
    """Entry of the measuring process."""
    module, name = sys.argv[1].split(":")
    figures = getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))
    report(figures)


if __name__ == "__main__":
    main()
