"""What is kept of rendered pages: the document off the wire, the page that the spider saw, what it asked for."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from crawls import Lab
from rendering import RENDER, Reader, needs_browser, script

from scrapy_frontier.report.evidence import place_of
from scrapy_frontier.store.artifacts import ResponseRecord, open_artifacts
from scrapy_frontier.store.artifacts.references import references, sweep_orphans
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import page, text

pytestmark = [pytest.mark.browser, needs_browser]

KEEPING = {**RENDER, "FRONTIER_EVIDENCE": "body", "FRONTIER_RENDER_SCREENSHOT": True}
KEEPING["FRONTIER_RENDER_HAR"] = True


def site(lab: Lab) -> None:
    lab.main.on("/", script("fetch('/data').then(() => { document.title = 'made' })"))
    lab.main.on("/data", text("data"))


async def test_wire_page_picture_and_list_are_kept(lab: Lab) -> None:
    """Each is durable, found from the ledger, and left alone by a sweep."""
    site(lab)
    result = await lab.crawl(Reader, KEEPING, seeds=[lab.main / ""])
    result.assert_exhausted()
    with open_store(lab.store_url) as store:
        with store.reader() as connection:
            artifacts = open_artifacts(place_of(connection), store.path)
        named = [row for rows in references(store) for row in rows]
        records = [ResponseRecord.load(artifacts.get(row.digest)) for row in named]
        swept = sweep_orphans(store, artifacts, now=4e9)
        assert swept.removed == 0
        of_page = {one.form: one for one in records if one.url == lab.main / ""}
        wire, seen = of_page["wire"], of_page["seen"]
        assert b"<title>" not in artifacts.get(bytes.fromhex(wire.body.digest))
        assert b"<title>made" in artifacts.get(bytes.fromhex(seen.body.digest))
        lines = json.loads(artifacts.get(bytes.fromhex(seen.parts["sub_requests"].digest)))
        assert [(line["url"], line["outcome"]) for line in lines] == [
            (lab.main / "data", "http.200")
        ]
        assert artifacts.get(bytes.fromhex(seen.parts["screenshot"].digest)).startswith(b"\x89PNG")
        har = json.loads(artifacts.get(bytes.fromhex(seen.parts["har"].digest)))["log"]
        assert har["version"] == "1.2"
        entries = [
            (one["request"]["url"], one["response"]["status"], one["response"]["content"]["size"])
            for one in har["entries"]
        ]
        assert entries == [(lab.main / "", 200, wire.body.size), (lab.main / "data", 200, 4)]
        assert all(datetime.fromisoformat(one["startedDateTime"]) for one in har["entries"])
    assert result.findings == []


async def test_a_run_is_parsed_again_without_a_browser(lab: Lab) -> None:
    """The page that the callback saw is what a later parser gets; nothing is rendered, nothing sent."""
    site(lab)
    first = await lab.crawl(Reader, KEEPING, seeds=[lab.main / ""])
    first.assert_exhausted()
    asked = len(first.log)
    settings = {**KEEPING, "FRONTIER_REPARSE": "test", "FRONTIER_RUN": None}
    again = await lab.crawl(Reader, settings)
    again.assert_reconciled()
    assert len(again.log) == asked
    assert again.stats["frontier/render/pages"] == 0
    assert [item["text"] for item in again.items] == [item["text"] for item in first.items]


async def test_pages_cut_off_by_a_crash_are_rendered_from_evidence(lab: Lab) -> None:
    """A document that was captured before its page was processed is rendered when the run is resumed, not fetched."""
    site(lab)
    lab.main.on("/next", page("next"))
    broken = await lab.crawl(Breaking, KEEPING, seeds=[lab.main / ""])
    assert broken.coverage.stop.reason == "error"
    result = await lab.crawl(Reader, KEEPING, seeds=[lab.main / ""])
    result.assert_finished()
    assert result.log.hits_by_path()["/"] == 1
    assert "<title>made" in result.items[0]["text"]


class Breaking(Reader):
    """Brings the frontier down from its callback."""

    name = "reader"

    def parse(self, response: object) -> None:
        from scrapy_frontier.frontier import Frontier

        Frontier.of(self.crawler).fail(RuntimeError("the frontier is brought down"))
