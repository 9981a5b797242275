"""`FRONTIER_REPORT_HTML`: the page that a crawl leaves beside the other forms of its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crawls import Follower, Lab

from scrapy_frontier import report
from scrapy_frontier.testing import page, text

PAGE = {"FRONTIER_REPORT_HTML": True}


async def test_the_page_is_of_the_same_account(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account is made once for all forms, and the page has its numbers and its URLs."""
    made: list[Any] = []
    coverage = report.coverage

    def counted(*arguments: Any, **options: Any) -> Any:
        made.append(coverage(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(report, "coverage", counted)
    lab.main.on("/", page("", ["/a", "/gone"]))
    lab.main.on("/a", page("a"))
    lab.main.on("/gone", text("gone", 410))
    result = await lab.crawl(Follower, PAGE, seeds=[lab.main / ""])
    result.assert_finished()
    assert len(made) == 1
    (path,) = (lab.folder / "reports").glob("*.html")
    told = json.loads(path.with_suffix(".json").read_text("utf-8"))
    html = path.read_text("utf-8")
    assert told["identities"]["discovered"] == 3
    for sentence in ("2 of 3 admitted", "1 gone.", "It adds up: all", lab.main / "gone"):
        assert sentence in html


async def test_without_the_setting_there_is_none(lab: Lab) -> None:
    """It costs a reading of every reference: only who asks for it pays."""
    lab.main.on("/", page())
    await lab.crawl(Follower, seeds=[lab.main / ""])
    assert {path.suffix for path in (lab.folder / "reports").iterdir()} == {".json", ".txt"}


async def test_a_page_that_cannot_be_made_loses_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The account is written first; the log says what is missing and how to have it."""

    def broken(*_: Any) -> str:
        raise ZeroDivisionError("no chart")

    monkeypatch.setattr("scrapy_frontier.report.html.render_html", broken)
    lab.main.on("/", page("", ["/a"]))
    result = await lab.crawl(Follower, {"FRONTIER_REPORT_HTML": True}, seeds=[lab.main / ""])
    result.assert_finished()
    files: list[Path] = sorted((lab.folder / "reports").iterdir())
    assert [path.suffix for path in files] == [".json", ".txt"]
    (record,) = [one for one in caplog.records if one.__dict__.get("action") == "report_failed"]
    assert "no chart" in record.getMessage()
    assert "scrapy frontier report --format html" in record.getMessage()
