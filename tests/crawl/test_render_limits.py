"""Limits of a rendered page cut where they say, and what fails in the browser fails by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Lab
from rendering import RENDER, Listener, Reader, needs_browser, script

from scrapy_frontier.downloadermiddlewares.render import RenderMiddleware
from scrapy_frontier.handlers.failures import RenderError
from scrapy_frontier.testing import Answer, page, text

pytestmark = [pytest.mark.browser, needs_browser]

STALLED = Answer("", fault="stall")


def descendants(kind: str = "") -> list[int]:
    """The processes under this one whose command line has `kind` in it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if status[0] != "Z":
                children.setdefault(int(status[1]), []).append(int(entry.name))
    found, queue = [], [os.getpid()]
    while queue:
        for child in children.get(queue.pop(), []):
            queue.append(child)
            try:
                line = Path(f"/proc/{child}/cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if kind in line:
                found.append(child)
    return found


def killer(kind: str, not_kind: str = "nothing of that kind") -> Any:
    """An answer that kills such a process under this one as soon as it is asked for, the first time."""
    killed: list[int] = []

    def answer(_: Any) -> Answer:
        if not killed:
            killed.extend(pid for pid in descendants(kind) if pid not in descendants(not_kind))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return text("")

    return answer


def leaks(result: Crawl) -> dict[str, int]:
    """What is left of a crawl that has ended."""
    middleware = result.crawler.get_downloader_middleware(RenderMiddleware)
    assert isinstance(middleware, RenderMiddleware)
    deadline = time.monotonic() + 5
    while descendants("--user-data-dir") and time.monotonic() < deadline:
        time.sleep(0.05)
    return {
        "contexts": middleware.renderer.handler.open_contexts,
        "kept": len(middleware.renderer.handler.kept),
        "processes": len(descendants("--user-data-dir")),
    }


NOTHING = {"contexts": 0, "kept": 0, "processes": 0}


RESTLESS = {
    "hanging": "fetch('/hangs')",
    "restless": "setInterval(() => fetch('/again'), 20)",
    "endless": "setTimeout(() => { while (1); }, 100)",
}


async def test_time_is_cut_and_the_page_is_what_it_was(lab: Lab) -> None:
    """A page that does not come to rest is given as it is when its time is over, with the limit among its flags."""
    for name, code in RESTLESS.items():
        lab.main.on(f"/{name}", script(f"document.title = 'made'; {code}"))
    lab.main.on("/hangs", STALLED)
    lab.main.on("/again", text(""))
    settings = {**RENDER, "FRONTIER_RENDER_TIME": 1, "DOWNLOAD_TIMEOUT": 3}
    seeds = [lab.main / name for name in RESTLESS]
    result = await lab.crawl(Reader, settings, seeds=seeds, patience_s=30)
    result.assert_finished()
    assert len(result.items) == len(RESTLESS)
    for item in result.items:
        assert item["flags"] == ["rendered", "render.time"]
        assert "<title>made" in item["text"]
        assert item["seen"]["wall_s"] < 14
    assert leaks(result) == NOTHING


async def test_what_grows_without_end_is_cut(lab: Lab) -> None:
    """A page that swells beyond DOWNLOAD_MAXSIZE fails by name; one that opens window after window is closed."""
    lab.main.on("/swells", script("document.body.append('x'.repeat(500000))"))
    lab.main.on(
        "/hides",
        script(
            "document.body.append('x'.repeat(500000));"
            "Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'small'})"
        ),
    )
    lab.main.on("/windows", script("for (let n = 0; n < 12; n++) open('about:blank', '_blank')"))
    settings = {**RENDER, "DOWNLOAD_MAXSIZE": 100_000, "FRONTIER_RENDER_REQUESTS": 5}
    seeds = [lab.main / path for path in ("swells", "hides", "windows")]
    result = await lab.crawl(Reader, settings, seeds=seeds)
    result.assert_exhausted()
    for path in ("swells", "hides"):
        assert result.fate(lab.main / path).reason == "render.size"
        assert result.fate(lab.main / path).attempts == 1
    (item,) = result.items
    assert item["flags"] == ["rendered", "render.requests"]
    assert leaks(result) == NOTHING


async def test_a_page_cut_short_fails_where_parts_are_not_wanted(lab: Lab) -> None:
    """With FRONTIER_RENDER_PARTIAL off the limit is the cause, by name, and it is not tried again."""
    lab.main.on("/", script("setInterval(() => fetch('/again'), 20)"))
    lab.main.on("/again", text(""))
    settings = {**RENDER, "FRONTIER_RENDER_TIME": 1, "FRONTIER_RENDER_PARTIAL": False}
    result = await lab.crawl(Listener, settings, seeds=[lab.main / ""])
    result.assert_finished()
    assert result.fate(lab.main / "").reason == "render.limit"
    assert result.fate(lab.main / "").attempts == 1
    (item,) = result.items
    assert isinstance(item["failure"], RenderError)


async def test_requests_and_bytes_are_cut(lab: Lab) -> None:
    """Sub-requests beyond the ceiling are not sent; a body beyond it does not reach the page."""
    lab.main.on("/many", script("for (let n = 0; n < 20; n++) fetch('/data?' + n)"))
    lab.main.on("/data", text("x"))
    lab.main.on("/large", script("fetch('/body').then(() => { document.title = 'got' })"))
    lab.main.on("/body", text("x" * 300_000))
    settings = {**RENDER, "FRONTIER_RENDER_REQUESTS": 5, "FRONTIER_RENDER_BYTES": 100_000}
    seeds = [lab.main / "many", lab.main / "large"]
    result = await lab.crawl(Reader, settings, seeds=seeds)
    result.assert_finished()
    flags = {item["url"]: item["flags"][1:] for item in result.items}
    assert result.coverage.rendering.cut == {"render.requests": 1, "render.bytes": 1}
    assert flags == {lab.main / "many": ["render.requests"], lab.main / "large": ["render.bytes"]}
    asked = [hit for hit in result.log if hit.path.startswith("/data")]
    assert len(asked) == 5
    assert "<title>got" not in "".join(item["text"] for item in result.items)


async def test_pages_are_cut(lab: Lab) -> None:
    """As many pages of a run are rendered as the budget says, however often it is resumed; the others fail by name."""
    for path in "abcd":
        lab.main.on(f"/{path}", page(path))
    settings = {**RENDER, "FRONTIER_RENDER_PAGES": 2, "CONCURRENT_REQUESTS": 1}
    seeds = [lab.main / path for path in "abcd"]
    first = await lab.crawl(Reader, {**settings, "CLOSESPIDER_ITEMCOUNT": 1}, seeds=seeds)
    assert first.coverage.rendering.pages >= 1
    result = await lab.crawl(Reader, settings, seeds=seeds)
    result.assert_finished()
    assert result.coverage.rendering.pages == 2
    reasons = sorted(fate.reason for fate in result.fates.values())
    assert reasons == ["http.200", "http.200", "render.pages", "render.pages"]


@pytest.mark.parametrize(
    ("kind", "not_kind"),
    [
        ("--remote-debugging", "--type="),
        ("--type=renderer", "nothing at all"),
        ("run-driver", "--remote-debugging"),
    ],
    ids=["browser", "renderer", "driver"],
)
async def test_a_killed_process_costs_an_attempt_and_nothing_else(
    lab: Lab, kind: str, not_kind: str
) -> None:
    """Chromium, its renderer, or what drives it, is killed with SIGKILL mid-page: the page is tried again, no other
    suffers.
    """
    lab.main.on("/", page("", ["/kills", "/after1", "/after2"]))
    lab.main.on("/kills", script("fetch('/kill').then(() => fetch('/hangs'))"))
    lab.main.on("/kill", killer(kind, not_kind))
    lab.main.on("/hangs", Answer("", delay_s=0.5))
    for number in (1, 2):
        lab.main.on(f"/after{number}", script("document.title = 'made'"))
    settings = {**RENDER, "FRONTIER_RENDER_CONCURRENCY": 1}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert set(result.ends()) == {"succeeded"}
    assert result.fate(lab.main / "kills").attempts == 2
    assert result.history(lab.main / "kills").count("fail") == 1
    codes = {row[0] for row in result.rows("SELECT code FROM reason")}
    assert codes & {"retry.render.closed", "retry.render.crashed"}
    rendering = result.coverage.rendering
    assert rendering.pages == len(result.items) + 1
    assert set(rendering.failed) <= {"render.closed", "render.crashed"}
    assert sum(rendering.failed.values()) == 1
    assert {item["url"].rpartition("/")[2] for item in result.items} == {
        "",
        "kills",
        "after1",
        "after2",
    }
    assert leaks(result) == NOTHING


async def test_a_browser_that_is_not_there(lab: Lab) -> None:
    """The first page says so, with the remedy; nothing hangs."""
    lab.main.on("/", page("x"))
    settings = {**RENDER, "RETRY_TIMES": 1, "FRONTIER_RENDER_EXECUTABLE": "/bin/false"}
    result = await lab.crawl(Listener, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.fate(lab.main / "").reason == "render.launch"
    assert "FRONTIER_RENDER_EXECUTABLE" in str(result.items[0]["failure"])


async def test_many_pages_leave_nothing_behind(lab: Lab) -> None:
    """A soak: pages that end well, leave, hang, open others and are kept; not a page, context or process is left."""
    kinds = [
        "document.title = 'made'",
        "location = '/end'",
        "window.open('/popup')",
        "fetch('/hangs')",
        "setTimeout(() => { while (1); }, 10)",
        "alert('x'); confirm('y'); document.title = 'made'",
    ]
    for number in range(12):
        lab.main.on(f"/{number}", script(kinds[number % len(kinds)]))
    lab.main.on("/hangs", STALLED)
    lab.main.on("/end", page("end"))
    settings = {**RENDER, "FRONTIER_RENDER_TIME": 0.7, "DOWNLOAD_TIMEOUT": 2}
    seeds = [lab.main / str(number) for number in range(12)]
    most: list[int] = []

    def watch(crawler: Any) -> None:
        from scrapy import signals

        def look(**_: Any) -> None:
            middleware = crawler.get_downloader_middleware(RenderMiddleware)
            most.append(middleware.renderer.handler.open_contexts)

        crawler.signals.connect(look, signals.response_received, weak=False)

    result = await lab.crawl(Reader, settings, before=watch, seeds=seeds, patience_s=60)
    result.assert_finished()
    assert len(result.items) == 11
    assert max(most) <= 2
    assert leaks(result) == NOTHING


async def test_a_kept_page_is_the_spiders(lab: Lab) -> None:
    """`playwright_include_page`: the callback has the page, still guarded, and closes it."""
    other = lab.server.origin("other")
    lab.main.on("/", script("document.title = 'made'"))
    lab.main.on("/data", text("data"))
    settings = {"FRONTIER_SCOPE": {"include": [lab.main.url]}}
    result = await lab.crawl(Keeper, settings, seeds=[lab.main / ""], other=other / "x")
    result.assert_finished()
    assert result.items == [{"data": "data", "other": "refused"}]
    assert result.log.of(other.url) == []
    assert leaks(result) == NOTHING


async def test_kept_pages_are_closed_for_a_forgetful_spider(lab: Lab) -> None:
    """A page that its callback does not close is closed at its end, and holds its place in the browser until then."""
    for path in "abc":
        lab.main.on(f"/{path}", page(path))
    settings = {"FRONTIER_RENDER_CONCURRENCY": 1}
    seeds = [lab.main / path for path in "abc"]
    result = await lab.crawl(Forgetful, settings, seeds=seeds)
    result.assert_exhausted()
    assert [item["open"] for item in result.items] == [1, 1, 1]
    assert leaks(result) == NOTHING


class Keeper(Reader):
    """Works with the page itself."""

    name = "keeper"
    other = ""

    async def start(self) -> Any:
        from scrapy import Request

        for url in self.start_urls:
            yield Request(url, meta={"playwright": True, "playwright_include_page": True})

    async def parse(self, response: Any) -> Any:
        shown = response.meta["playwright_page"]
        look = "u => fetch(u).then(r => r.text()).catch(() => 'refused')"
        data = await shown.evaluate(look, "/data")
        other = await shown.evaluate(look, self.other)
        await shown.close()
        yield {"data": data, "other": other}


class Forgetful(Keeper):
    """Keeps every page, and closes none."""

    name = "forgetful"

    async def parse(self, response: Any) -> Any:
        middleware = self.crawler.get_downloader_middleware(RenderMiddleware)
        assert await response.meta["playwright_page"].title() == response.url[-1]
        yield {"open": middleware.renderer.handler.open_contexts}
