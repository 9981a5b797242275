"""The market hall of the example project: one command renders it, and its account says where everything came from."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from crawls import Result
from rendering import needs_browser

from scrapy_frontier.cli import main
from scrapy_frontier.testing import RequestLog

pytestmark = [pytest.mark.browser, needs_browser]

PROJECT = Path(__file__).parents[2] / "example_project"


def crawl(folder: Path, *arguments: str) -> tuple[Result, list[Mapping[str, Any]]]:
    """`scrapy crawl market` as the README has it: what the store says, and the items."""
    store, items = f"sqlite:///{folder / 'store.db'}", folder / "items.jsonl"
    feeds = json.dumps({str(items): {"format": "jsonlines"}})
    settings = (f"FRONTIER_STORE={store}", f"FEEDS={feeds}", "EXAMPLE_WEB_PORT=0")
    options = [word for one in (*settings, *arguments) for word in ("-s", one)]
    command = [sys.executable, "-m", "scrapy", "crawl", "market", *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    lines = items.read_text().splitlines()
    return Result(store, RequestLog()), [json.loads(line) for line in lines]


def ends(result: Result) -> dict[str, str]:
    """How each path of the market ended, or the rule that left it out."""
    return {
        urlsplit(url).path + ("?" if "?" in url else ""): fate.disposition or fate.reason
        for url, fate in result.fates.items()
    }


def test_one_setting_renders_the_market(tmp_path: Path) -> None:
    """Content by XHR, the redirect, the scrolled goods, the pop-up and the download: all there, all accounted for."""
    result, items = crawl(tmp_path, "FRONTIER_RENDER=all")
    result.assert_reconciled()
    assert result.coverage.stop.reason == "exhausted"
    found = ends(result)
    pages = ("/", "/hours", "/goods", "/auction", "/auction/rules", "/prices", "/prices.csv")
    assert {found[path] for path in pages} == {"succeeded"}
    assert {found[f"/stalls/{n}"] for n in range(1, 7)} == {"succeeded"}
    assert {found[f"/api/stalls/{n}"] for n in range(1, 7)} == {"succeeded"}
    assert found["/old-hall"] == "redirected"
    assert found["/visits.js"] == "robots.disallow"
    prices = {(item["ware"], item["price"]) for item in items if "ware" in item}
    assert len([item for item in items if "ware" in item]) == 6 + 8
    assert len(prices) == 8
    rendering = result.coverage.rendering
    (origin,) = rendering.origins
    assert (rendering.pages, rendering.by_type) == (13, {"fetch": 7, "xhr": 6, "script": 1})
    assert (origin.sent, origin.by_outcome["robots.disallow"]) == (13, 1)
    assert rendering.heaviest[0].url.endswith("/goods")
    assert rendering.heaviest[0].bytes > 400
    for form in ("text", "html", "json"):
        report = tmp_path / form
        assert (
            main(["report", "--store", result.store_url, "--format", form, "-o", str(report)]) == 0
        )
        assert (
            "robots.disallow" in report.read_text().partition("Rendered pages")[2] or form == "json"
        )
    (goods,) = [item for item in items if item.get("title") == "All goods"]
    assert goods["words"] >= 3 * 40


def test_without_a_browser_there_is_little_to_see(tmp_path: Path) -> None:
    """The same spider on the same site: five shells, and no price."""
    result, items = crawl(tmp_path)
    result.assert_reconciled()
    assert sorted(ends(result)) == [
        "/",
        "/auction",
        "/goods",
        "/old-hall",
        "/prices",
        "/robots.txt",
    ]
    assert not [item for item in items if "ware" in item]
