"""Rendered pages: what comes to the callback, and where requests may go."""

from __future__ import annotations

from typing import Any

import pytest
from crawls import Lab
from rendering import RENDER, Asking, Reader, Scroller, javascript, needs_browser, script

from scrapy_frontier.testing import Answer, page, text

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


async def test_only_pages_that_ask_for_it_are_rendered(lab: Lab) -> None:
    """By default a request says so in its meta, as for scrapy-playwright; what is no HTML is never rendered.

    Rendered and plain are one identity: the document is fetched once, as the first request asked for it.
    """
    links = "<a href=/plain>a</a><a href=/file>b</a><a href=/>self</a>"
    lab.main.on("/", script("document.title = 'made'", after=links))
    lab.main.on("/plain", script("document.title = 'made'"))
    lab.main.on("/file", Answer(b"%PDF-", content_type="application/pdf"))
    result = await lab.crawl(Asking, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert {item["url"]: item["is_made"] for item in result.items} == {
        lab.main / "": True,
        lab.main / "plain": False,
        lab.main / "file": False,
    }
    assert len(result.items) == 3
    assert result.fate(lab.main / "").attempts == 1


async def test_page_methods_are_stored_and_called(lab: Lab) -> None:
    """A request with page methods outlives its process; a page that grows as it is scrolled grows."""
    lab.main.on("/", page("", ["/grows"]))
    lab.main.on(
        "/grows",
        script(
            "let n = 0; async function more() { const r = await fetch('/more?' + n);"
            " const a = document.createElement('a'); a.href = '/item' + n; n += 1;"
            " a.textContent = await r.text(); document.body.append(a) }"
            " addEventListener('scroll', more); window.more = more",
            after="<div style='height:9000px'></div>",
        ),
    )
    lab.main.on("/more", text("item"))
    for number in range(2):
        lab.main.on(f"/item{number}", page("item"))
    result = await lab.crawl(Scroller, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.stats["frontier/unserialisable"] == 0
    assert result.log.hits_by_path()["/item1"] == 1
    assert result.spider.results == [2]


async def test_cookies_go_there_and_back(lab: Lab) -> None:
    """Scripts see the cookies of Scrapy's jar, sub-requests send them, and what a script sets is sent from then on."""
    lab.main.on(
        "/",
        Answer(
            "<body><script>document.title = document.cookie; document.cookie = 'js=2; path=/';"
            "fetch('/data')</script><a href=/next>next</a></body>",
            headers=[("Set-Cookie", "http=1; Path=/"), ("Set-Cookie", "secret=s; HttpOnly")],
        ),
    )
    lab.main.on("/data", text(""))
    lab.main.on("/next", page(""))
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert "<title>http=1</title>" in result.items[0]["text"]
    sent = {hit.path: set(hit.headers.get("cookie", "").split("; ")) for hit in result.log}
    assert sent["/data"] == sent["/next"] == {"http=1", "secret=s", "js=2"}


async def test_robots_hold_for_sub_requests(lab: Lab) -> None:
    """What robots.txt forbids the page goes without; a setting lets it have it."""
    lab.main.on("/robots.txt", text("User-agent: *\nDisallow: /private"))
    lab.main.on("/", script("fetch('/private/data'); fetch('/open')"))
    lab.main.on("/open", text(""))
    lab.main.on("/private/data", text(""))
    result = await lab.crawl(Reader, {**RENDER, "ROBOTSTXT_OBEY": True}, seeds=[lab.main / ""])
    result.assert_finished()
    assert result.items[0]["seen"]["by_outcome"] == {"robots.disallow": 1, "http.200": 1}
    assert "/private/data" not in result.log.hits_by_path()
    assert result.fates[lab.main / "private/data"].reason == "robots.disallow"
    settings = {**RENDER, "ROBOTSTXT_OBEY": True, "FRONTIER_RENDER_ROBOTS": False}
    again = await lab.crawl(Reader, {**settings, "FRONTIER_RUN": "again"}, seeds=[lab.main / ""])
    again.assert_finished()
    assert again.log.hits_by_path()["/private/data"] == 1


async def test_types_and_places(lab: Lab) -> None:
    """Pictures are left out unless they are asked for; a place out of scope may serve what pages need."""
    other = lab.server.origin("other")
    other.on("/lib.js", javascript("document.title = 'lib'"))
    lab.main.on("/", script("", after=f"<img src=/a.png><script src={other / 'lib.js'}></script>"))
    scope = {"include": [lab.main.url]}
    settings = {**RENDER, "FRONTIER_SCOPE": scope}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items[0]["seen"]["by_outcome"] == {"render.type": 1, "scope.origin": 1}
    allow = {"types": ["script", "image"], "places": [other.url]}
    settings |= {"FRONTIER_RUN": "again", "FRONTIER_RENDER_ALLOW": allow}
    again = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    again.assert_finished()
    assert again.items[0]["seen"]["by_outcome"] == {"http.404": 1, "http.200": 1}
    assert "<title>lib</title>" in again.items[0]["text"]


async def test_sub_requests_keep_the_manners_of_their_origin(lab: Lab) -> None:
    """A page's sub-requests wait at the gate like any others: the interval holds between them."""
    lab.main.on("/", script("for (let n = 0; n < 4; n++) fetch('/data?' + n)"))
    lab.main.on("/data", text(""))
    settings = {**RENDER, "DOWNLOAD_DELAY": 0.4}
    settings |= {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    gap = result.log.smallest_gap_s(lab.main.url)
    assert gap is not None
    assert gap > 0.19  # Scrapy's jitter takes up to half of it


def refuses(request: Any) -> bool:
    """A `PLAYWRIGHT_ABORT_REQUEST` of a project's."""
    return str(request.url).endswith("/unwanted")


async def test_the_project_refuses_and_sockets_are_on_record(lab: Lab) -> None:
    """`PLAYWRIGHT_ABORT_REQUEST` is asked; a web socket that the page wanted is counted, and not connected."""
    lab.main.on(
        "/", script("fetch('/unwanted'); fetch('/wanted'); new WebSocket('ws://x.invalid/')")
    )
    lab.main.on("/wanted", text(""))
    settings = {**RENDER, "PLAYWRIGHT_ABORT_REQUEST": refuses, "PLAYWRIGHT_MAX_CONTEXTS": 1}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items[0]["seen"]["by_outcome"] == {
        "render.abort": 1,
        "http.200": 1,
        "render.type": 1,
    }
    assert "/unwanted" not in result.log.hits_by_path()


async def test_a_cookie_that_a_script_removes_is_gone(lab: Lab) -> None:
    """What pages change comes into Scrapy's jar, removals included, and nothing that they have left alone."""
    gone = "document.cookie = 'a=; path=/; max-age=0'"
    lab.main.on(
        "/",
        Answer(
            f"<script>{gone}</script><a href=/next>x</a>",
            headers=[("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Path=/")],
        ),
    )
    lab.main.on("/next", page(""))
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert [hit.headers.get("cookie") for hit in result.log] == [None, "b=2"]


async def test_a_cache_of_scrapys_serves_sub_requests(lab: Lab) -> None:
    """With HTTPCACHE_ENABLED a script that many pages share is fetched once."""
    for path in "abc":
        lab.main.on(f"/{path}", script("", after="<script src=/lib.js></script>"))
    lab.main.on("/lib.js", javascript("document.title = 'lib'"))
    settings = {**RENDER, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(lab.folder / "cache")}
    settings["FRONTIER_RENDER_CONCURRENCY"] = 1
    seeds = [lab.main / path for path in "abc"]
    result = await lab.crawl(Reader, settings, seeds=seeds, patience_s=40)
    result.assert_finished()
    assert ["<title>lib" in item["text"] for item in result.items] == [True] * 3
    assert result.log.hits_by_path()["/lib.js"] == 1


async def test_other_origins_in_scope_one_request_at_a_time(lab: Lab) -> None:
    """XHR to another origin works as its CORS headers say; a preflight is no request; no place is waited for twice."""
    other = lab.server.origin("other")
    cors = [("Access-Control-Allow-Origin", "*")]
    other.on("/data", Answer("other", content_type="text/plain", headers=cors))
    other.on("/closed", text("closed"))
    look = "fetch('{}', {}).then(r => r.text()).catch(() => 'refused')"
    simple = look.format(other / "data", "{}")
    special = look.format(other / "data?2", "{headers: {'X-Special': '1'}}")
    closed = look.format(other / "closed", "{}")
    lab.main.on(
        "/",
        script(
            f"Promise.all([{simple}, {special}, {closed}]).then(t => {{ document.title = t.join() }})",
        ),
    )
    settings = {**RENDER, "CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert "<title>other,other,refused</title>" in result.items[0]["text"]
    assert {hit.method for hit in result.log} == {"GET"}


async def test_a_status_that_is_no_success_is_not_rendered(lab: Lab) -> None:
    """An error page goes its ordinary way."""
    lab.main.on("/", Answer("<script>location='/next'</script>", status=500))
    settings = {**RENDER, "RETRY_TIMES": 1}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 2}
    assert result.stats["frontier/render/pages"] == 0
