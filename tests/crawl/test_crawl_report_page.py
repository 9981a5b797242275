"""`FRONTIER_REPORT_HTML`: the page that a crawl leaves beside the other forms of its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crawls import Follower, Lab, on_both_stores

from scrapy_frontier import report
from scrapy_frontier.report.html import read_facts
from scrapy_frontier.report.html.charts import pace_chart
from scrapy_frontier.report.html.facts import Pace, Sample
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Answer, Request, page, text

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


@on_both_stores
async def test_families_are_drawn_as_they_grew(lab: Lab) -> None:
    """Each curve only rises, and ends at the number of the account: URLs, fetches, pages with new content."""

    def item(request: Request) -> Answer:
        """Two neighbours have the same text, and no two others."""
        number = int(request.target.rpartition("=")[2])
        told = " ".join(f"{name}{number // 2}" for name in ("oak", "ash", "elm", "fir") * 10)
        nexts = [number + step for step in (1, 2) if number + step < 60]
        links = "".join(f"<a href='/item?id={one}'>next</a>" for one in nexts or [0])
        return Answer(f"<html><body><p>{told}</p>{links}</body></html>")

    lab.main.on("/item", item)
    settings = {"FRONTIER_REPORT_DIR": str(lab.folder / "reports"), **PAGE}
    settings |= {"DOWNLOAD_DELAY": 0.02, "FRONTIER_MAX_INTERVAL": 0.1}
    result = await lab.crawl(Follower, settings, seeds=[lab.main / "item?id=0"])
    result.assert_exhausted()
    with open_store(result.store_url, read_only=True) as store, store.reader() as connection:
        facts = read_facts(connection, result.run_id)
    (grown,) = facts.growth
    (family,) = (one for one in result.coverage.families if one.discovered > 1)
    assert (grown.origin, grown.family) == (family.origin, family.family)
    assert len(grown.found) == len(facts.timeline.slices) > 1
    for curve in (grown.found, grown.fetched, grown.brought):
        assert list(curve) == sorted(curve)
    brought = round((family.new_content or 0) * family.read)
    ends = grown.found[-1], grown.fetched[-1], grown.brought[-1]
    assert ends == (family.discovered, family.fetched, brought)
    assert 0 < brought < family.fetched
    (path,) = (lab.folder / "reports").glob("*.html")
    assert f"Growth of {family.family}" in path.read_text("utf-8")


def test_a_pace_that_never_changed_is_not_drawn() -> None:
    """A flat line says nothing; one change of one origin does."""
    steady = tuple(
        Sample(at_ms, origin, "health.hold", 4, 0.5)
        for at_ms in (0, 60_000)
        for origin in ("http://a.example", "http://b.example")
    )
    eased = Sample(90_000, "http://a.example", "health.grow", 4, 0.4)
    assert pace_chart(Pace(4, steady)) is None
    assert pace_chart(Pace(5, (*steady, eased))) is not None
