"""Rendered pages: what comes to the callback, and where requests may go."""

from __future__ import annotations

import pytest
from crawls import Lab
from rendering import RENDER, Reader, javascript, needs_browser, script

from scrapy_frontier.testing import Answer, page, redirect, text

pytestmark = [pytest.mark.browser, needs_browser]


async def test_what_scripts_make_is_what_the_callback_sees(lab: Lab) -> None:
    """Content by XHR and its links are there, and each request is an attempt in the ledger."""
    lab.main.on(
        "/",
        script(
            "fetch('/data').then(r => r.json()).then(d => {"
            "  document.getElementById('x').innerHTML = '<a href=/next>' + d.name + '</a>' })",
            after="<p id=x></p><script src=/late.js></script>",
        ),
    )
    lab.main.on("/late.js", javascript("document.title = 'é'"))
    lab.main.on("/data", Answer('{"name": "found"}', content_type="application/json"))
    lab.main.on("/next", page("plain"))
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / ""])
    result.assert_exhausted()
    first = next(item for item in result.items if item["url"] == lab.main / "")
    assert '<a href="/next">found</a>' in first["text"]
    assert "<title>é</title>" in first["text"]
    assert first["flags"] == ["rendered"]
    assert first["seen"]["by_outcome"] == {"http.200": 2}
    assert result.log.hits_by_path() == {"/": 1, "/late.js": 1, "/data": 1, "/next": 1}
    assert result.stats["frontier/render/pages"] == 2
