"""Interruption points: each is named once, kills at its hit, and is nothing where none is armed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import scrapy_frontier
from scrapy_frontier import failpoints
from scrapy_frontier.errors import ConfigError

PACKAGE = Path(scrapy_frontier.__file__).parent


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm()


def names_in_code() -> set[str]:
    """The names that boundaries of the package call themselves by."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "failpoints.reach":
                found.add(ast.literal_eval(node.args[0]))
    return found


def test_every_point_is_told_and_every_one_told_exists() -> None:
    """The list of points is that of the code: a point that nobody reaches would pass every test."""
    assert names_in_code() == set(failpoints.POINTS)


def test_a_point_kills_at_its_hit() -> None:
    """The process is gone at once: no handler runs, and nothing after the point."""
    script = (
        "from scrapy_frontier import failpoints\n"
        "try:\n"
        "    for number in range(5):\n"
        "        print(number, flush=True)\n"
        "        failpoints.reach('commit.after')\n"
        "        failpoints.reach('commit.begun')\n"
        "finally:\n"
        "    print('handler', flush=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={
            failpoints.VARIABLE: "commit.after:3, commit.begun:9",
            "PYTHONPATH": str(PACKAGE.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -9
    assert ended.stdout.split() == ["0", "1", "2"]


def test_the_points_reached_are_on_record(tmp_path: Path) -> None:
    """Each once for a process, in the order in which they were reached."""
    trace = tmp_path / "trace"
    failpoints.arm(trace=str(trace))
    for name in ("commit.after", "ack.after", "commit.after"):
        failpoints.reach(name)
    assert trace.read_text().split() == ["commit.after", "ack.after"]


@pytest.mark.parametrize("kills", ["commit.aftr", "commit.after:soon", "commit.after:-1"])
def test_a_misspelled_point_is_an_error(kills: str) -> None:
    """A test that kills nowhere would prove nothing."""
    with pytest.raises(ConfigError, match="is not a point"):
        failpoints.arm(kills)


def test_points_cost_nothing_where_none_is_armed() -> None:
    """Then a point is the call of one function that does nothing."""
    failpoints.arm()
    assert failpoints.reach is failpoints._pass
