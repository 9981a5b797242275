"""What README and quickstart show is what comes of the commands above it: word for word, but for the numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from documentation import ROOT

TEXT_BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"docs-\d{8}-\d{6}")
NUMBER = re.compile(r"\d[\d,.]*")
SLACK = 0.2
"""By how much a number may differ: how many copies are held back depends on the order in which pages come."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The log of the main job, and the report."""
    project = tmp_path_factory.mktemp("main-job") / "example_project"
    shutil.copytree(ROOT / "example_project", project, ignore=shutil.ignore_patterns(".scrapy"))
    scrapy = [sys.executable, "-m", "scrapy"]
    crawl, report = (
        subprocess.run(
            [*scrapy, *words], cwd=project, capture_output=True, text=True, timeout=180, check=True
        )
        for words in (
            ("crawl", "docs", "-s", "EXAMPLE_WEB_PORT=0"),
            ("frontier", "report"),
        )
    )
    log = [line.partition("] INFO: ")[2] for line in crawl.stderr.splitlines()]
    return "\n".join(log), report.stdout


def same(shown: str, came: str) -> bool:
    """Whether the words are the same, and the numbers nearly."""
    shown, came = (NAME.sub("a run", text) for text in (shown, came))
    if NUMBER.sub("#", shown) != NUMBER.sub("#", came):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(came), strict=True)
    return all(
        abs(_value(one) - _value(other)) <= max(2, SLACK * _value(one)) for one, other in pairs
    )


def _value(number: str) -> float:
    return float(number.replace(",", "").rstrip("."))


@pytest.mark.parametrize(
    ("page", "number", "of_report"),
    [("README.md", 0, True), ("docs/quickstart.md", 0, False), ("docs/quickstart.md", 1, True)],
)
def test_what_is_shown_comes(
    page: str, number: int, of_report: bool, said: tuple[str, str]
) -> None:
    shown = TEXT_BLOCK.findall((ROOT / page).read_text("utf-8"))[number].strip().splitlines()
    came = said[of_report].splitlines()
    missing = [
        line
        for line in shown
        if line and not line.startswith("From ") and not any(same(line, other) for other in came)
    ]
    assert missing == []
