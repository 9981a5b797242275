"""Where the vector files lie.

Those of the web platform tests are other people's data and not part of this repository: they are
read from the folder in the environment variable FRONTIER_WPT_DATA, or from beside the repository.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OWN = ROOT / "tests" / "data"


def load_own(name: str) -> Any:
    """A vector file of this repository."""
    return json.loads((OWN / name).read_text(encoding="utf-8"))


def load_wpt(name: str) -> list[dict[str, Any]]:
    """The cases of a file of the web platform tests, its comments left out; skip where it is absent."""
    folder = os.environ.get("FRONTIER_WPT_DATA")
    path = (Path(folder) if folder else ROOT.parent / "shared" / "data") / name
    if not path.is_file():
        pytest.skip(f"no {name}: set FRONTIER_WPT_DATA to the url/resources of web-platform-tests")
    cases = json.loads(path.read_text(encoding="utf-8"))
    return [case for case in cases if isinstance(case, dict)]
