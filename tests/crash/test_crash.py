"""A few seeds of the harness, with a kill at every interruption point; hundreds are for the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_frontier.failpoints import POINTS

ROOT = Path(__file__).parents[2]

SEEDS = 12


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What came of the schedules. In a process of its own: it forks, and may hold no reactor."""
    told = tmp_path_factory.mktemp("crash") / "outcomes.json"
    command = [
        sys.executable,
        "-m",
        "tests.crash",
        "--seeds",
        str(SEEDS),
        "--cover",
        "--json",
        str(told),
    ]
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.exists(), played.stdout + played.stderr
    found: list[dict[str, Any]] = json.loads(told.read_text())
    return found


@pytest.mark.slow
def test_no_kill_loses_anything(outcomes: list[dict[str, Any]]) -> None:
    """Whatever the moment of the kill: nothing is lost, only what was in flight is repeated, the account adds up."""
    faults = {outcome["seed"]: outcome["faults"] for outcome in outcomes if outcome["faults"]}
    assert faults == {}


@pytest.mark.slow
def test_a_crawl_was_killed_at_every_point(outcomes: list[dict[str, Any]]) -> None:
    """A point of the code that no kill ever comes to would be a promise without a test."""
    from .schedules import ELSEWHERE

    killed = {kill.partition(":")[0] for outcome in outcomes for kill in outcome["kills"]}
    assert {name for name in POINTS if not name.startswith(ELSEWHERE)} <= killed
