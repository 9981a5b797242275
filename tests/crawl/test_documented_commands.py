"""Every command that a page of the documentation shows is run, on the store of a crawl of the example project."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import PAGES, ROOT

from scrapy_frontier.cli import main

SHOWN = re.compile(r"^\$ scrapy(?:-| )(frontier|crawl) (.*)$", re.MULTILINE)
SMALL = ["-s", "EXAMPLE_WEB_PORT=0", "-s", "CLOSESPIDER_PAGECOUNT=15", "-s", "LOG_LEVEL=INFO"]

STANDS_FOR = {
    "8c1d...e2": "{digest}",
    "SHAPE": "{shape}",
    "postgresql+psycopg:///copy": "sqlite:///copy.db",  # the same command on the other store
    "docs-20261201-042305": "autumn",
    "diff 3 7": "diff 1 2",
    "sqlite:///autumn.db": "sqlite:///copy.db",
    "myspider": "docs",
}
"""What a page writes for what differs from store to store."""

ELSEWHERE = {
    "serve": "it runs until it is stopped",
    "everything": "it needs a web that another process serves",
    "market": "it needs a browser: test_render_example.py",
}


def shown(kind: str) -> list[str]:
    """Each command line of the pages once, without what the shell does with its output."""
    lines = {
        re.split(r" (?:>|\|\|) ", line)[0]
        for page in PAGES
        for found, line in SHOWN.findall(page.read_text("utf-8"))
        if found == kind and line.split()[0] not in ELSEWHERE
    }
    return sorted(lines)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example project after two crawls, of which the later kept its responses, with a backup."""
    project = tmp_path_factory.mktemp("project") / "example_project"
    shutil.copytree(ROOT / "example_project", project, ignore=shutil.ignore_patterns(".scrapy"))
    crawl(project, "docs", *SMALL, "-s", "FRONTIER_RUN=spring")
    crawl(project, "docs", *SMALL, "-s", "FRONTIER_RUN=autumn", "-s", "FRONTIER_EVIDENCE=body")
    assert main(["backup", str(project / "copy.db"), "--store", store_of(project)]) == 0
    return project


def store_of(project: Path) -> str:
    return f"sqlite:///{project / '.scrapy' / 'frontier.db'}"


def crawl(project: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", *words],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


@pytest.fixture
def project(crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "project"
    shutil.copytree(crawled, copy)
    monkeypatch.chdir(copy)
    return copy


def filled_in(line: str, project: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words of a command line, with what stands for something replaced by it."""
    for written, meant in STANDS_FOR.items():
        line = line.replace(written, meant)
    if "{digest}" in line:
        main(["export", "transitions", "--store", store_of(project)])
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        line = line.replace("{digest}", next(row["evidence"] for row in rows if row["evidence"]))
    if "{shape}" in line:
        main(["families", "--format", "json", "--store", store_of(project)])
        families = json.loads(capsys.readouterr().out)["families"]
        line = line.replace("{shape}", shlex.quote(families[0]["family"]))
    return shlex.split(line)


@pytest.mark.parametrize("line", shown("frontier"))
def test_commands_of_the_frontier(
    line: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It answers: yes (0) or no (1). A use that it does not have would be 2."""
    words = filled_in(line, project, capsys)
    if words[0] == "backup" and "--restore" not in words:
        (project / "copy.db").unlink()
    if words[0] == "top" and "--once" not in words:
        words.append("--once")
    if words[0] == "reparse":
        command = [sys.executable, "-m", "scrapy", "frontier", *words]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        return
    if "--store" not in words:
        words += ["--store", store_of(project)]
    status = main(words)
    said = capsys.readouterr()
    assert status in (0, 1), said.err
    assert "Traceback" not in said.err
    for option in ("--output", "-o"):
        if option in words and status == 0:
            assert Path(words[words.index(option) + 1]).stat().st_size > 0


@pytest.mark.parametrize("line", shown("crawl"))
def test_crawls(line: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It runs, and its account adds up unless it was asked to make none."""
    words = filled_in(line, project, capsys)
    log = crawl(project, *words, *SMALL)
    assert ("The account adds up" in log) is ("ADDONS={}" not in words)
