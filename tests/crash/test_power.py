"""Power cuts, seen from inside SQLite: what was flushed is there, and what is left is always a prefix of commits.

The cuts are those of `power`: what was flushed last and no more, the log cut off at a frame or anywhere, frames zeroed
or missing. Each is made of a real crawl that was killed, and the run is resumed on what is left.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

SEEDS = 5


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What came of the schedules, some of them under FULL and some under NORMAL."""
    told = tmp_path_factory.mktemp("power") / "outcomes.json"
    command = [
        sys.executable,
        "-m",
        "tests.crash",
        "--power",
        "--seeds",
        str(SEEDS),
        "--json",
        str(told),
    ]
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.exists(), played.stdout + played.stderr
    found: list[dict[str, Any]] = json.loads(told.read_text())
    return found


@pytest.mark.slow
def test_a_power_cut_leaves_a_prefix_of_commits(outcomes: list[dict[str, Any]]) -> None:
    """`verify` is clean, resuming works, no generation is given twice; under FULL nothing acknowledged is lost."""
    assert sum(len(outcome["cuts"]) for outcome in outcomes) > SEEDS
    faults = {outcome["seed"]: outcome["faults"] for outcome in outcomes if outcome["faults"]}
    assert faults == {}


@pytest.mark.slow
def test_normal_gives_up_the_last_commits(outcomes: list[dict[str, Any]]) -> None:
    """The cuts take something where they may: FULL is no better than NORMAL only until the power fails."""
    assert sum(outcome["taken"] for outcome in outcomes if not outcome["is_durable"]) > 0
