"""Medians, spreads, ratios and the tables that show them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("scrapy", "twisted", "sqlalchemy", "pysqlite3", "queuelib", "lxml")


@dataclass(frozen=True)
class Spread:
    """The median of some repetitions, and their extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        listed = list(values)
        return cls(statistics.median(listed), min(listed), max(listed))

    def text(self, digits: int) -> str:
        """`median [low-high]`, or the median alone where nothing varies."""
        if self.low == self.high:
            return f"{self.median:,.{digits}f}"
        return f"{self.median:,.{digits}f} [{self.low:,.{digits}f}-{self.high:,.{digits}f}]"


def ratios(values: Sequence[float], measures: Sequence[float]) -> Spread:
    """The spread of each value divided by the measure of the same repetition."""
    return Spread.of(value / measure for value, measure in zip(values, measures, strict=True))


@dataclass
class Table:
    """One table of results: cells for people, and `data` with the same and more for programs."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(cells)

    def text(self) -> str:
        """The table with its title and notes, columns aligned."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[n]) for line in lines) for n in range(len(self.columns))]
        shown = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
        shown.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(
            ["", f"## {self.title}", "", *shown, *(f"  {note}" for note in self.notes)]
        )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    first = cells[0].ljust(widths[0])
    return [first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]


def environment(folder: Path) -> dict[str, Any]:
    """The machine and the versions that the figures hold for."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "flush_ms": round(flush_ms(folder), 2),
        "sqlite": _sqlite_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def environment_text(found: dict[str, Any]) -> str:
    """`environment` in three lines."""
    packages = ", ".join(f"{name} {number}" for name, number in found["packages"].items() if number)
    return (
        f"{found['processor']}, {found['cores']} cores, {found['system']}, load {found['load']}\n"
        f"Python {found['python']}, SQLite {found['sqlite']}, {packages}\n"
        f"flushing 4 KB to the disk in use: {found['flush_ms']} ms (median)"
    )


def flush_ms(folder: Path, tries: int = 20) -> float:
    """How long the disk under `folder` takes to make 4 KB durable, in milliseconds."""
    path = folder / "flush"
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(tries):
            started_at = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - started_at)
    path.unlink()
    return statistics.median(taken) * 1000


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "?"
    )


def _sqlite_version() -> str:
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        import sqlite3

        return f"{sqlite3.sqlite_version} (standard library)"
    return f"{dbapi2.sqlite_version} (pysqlite3)"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
