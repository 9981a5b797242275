"""`doctor` tells what a store is about to run into."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from scrapy_frontier.cli import main
from scrapy_frontier.store.opening import open_store


@pytest.mark.parametrize(
    ("free", "level", "status"), [(2 << 30, "ok", 0), (500 << 20, "warn", 0), (50 << 20, "FAIL", 1)]
)
def test_doctor_tells_the_room_on_the_disk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    free: int,
    level: str,
    status: int,
) -> None:
    """A disk that is about to be full is told before a crawl has to stop."""
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage)
    url = f"sqlite:///{tmp_path / 'frontier.db'}"
    open_store(url, create=True).close()
    agent = "USER_AGENT=bot (+https://bot.example)"
    assert main(["doctor", "--store", url, "-s", agent, "--format", "json"]) == status
    checks = json.loads(capsys.readouterr().out)
    (disk,) = [check for check in checks if check["name"] == "disk"]
    assert disk["level"] == level
    assert (disk["cure"] is None) == (level == "ok")
