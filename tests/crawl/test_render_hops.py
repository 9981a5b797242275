"""Where a rendered page would lead its visitor: hops in the ledger, and references that nobody follows."""

from __future__ import annotations

import pytest
from crawls import Lab
from rendering import RENDER, Listener, Reader, needs_browser, script

from scrapy_frontier.frontier.hops import HopRefused
from scrapy_frontier.store.edges import unpack_observations
from scrapy_frontier.testing import Answer, Request, page, redirect, text

pytestmark = [pytest.mark.browser, needs_browser]

LEAVING = {
    "location": "location = '{to}'",
    "replace": "location.replace('{to}')",
    "later": "setTimeout(() => { location = '{to}' }, 50)",
    "form": "const f = document.createElement('form'); f.action = '{to}';"
    "document.documentElement.append(f); f.submit()",
    "click": "const a = document.createElement('a'); a.href = '{to}';"
    "document.documentElement.append(a); a.click()",
    "tag": "document.head.innerHTML = '<meta http-equiv=refresh content=\"0; url={to}\">'",
}
"""Ways to lead a visitor elsewhere."""


def leaving(way: str, to: str) -> Answer:
    return script(LEAVING[way].replace("{to}", to))


def refreshing(to: str) -> Answer:
    return Answer("<p>Wait.</p>", headers=[("Refresh", f"0; url={to}")])


async def test_a_script_that_leads_elsewhere_is_a_redirect(lab: Lab) -> None:
    """The browser goes nowhere: the target is an identity of its own, fetched when its turn comes."""
    ways = [*LEAVING, "header"]
    for way in LEAVING:
        lab.main.on(f"/{way}", leaving(way, f"/from-{way}"))
    lab.main.on("/header", refreshing("/from-header"))
    lab.main.on("/from-*", script("document.title = 'made'"))
    seeds = [lab.main / way for way in ways]
    result = await lab.crawl(Reader, RENDER, seeds=seeds, patience_s=30)
    result.assert_exhausted()
    assert {way: result.fate(lab.main / way).end for way in ways} == dict.fromkeys(
        ways, "redirected"
    )
    assert result.coverage.references.by_kind["redirect"].total == len(ways)
    assert {item["url"] for item in result.items} == {lab.main / f"from-{way}" for way in ways}
    referrers = {hit.path: hit.headers.get("referer") for hit in result.log}
    assert referrers["/from-location"] == lab.main / "location"
    assert all(count == 1 for count in result.log.hits_by_path().values())


async def test_hops_of_all_kinds_make_one_chain(lab: Lab) -> None:
    """Script, HTTP, script again: each is counted, and knows where it came from."""
    lab.main.on("/a", script("location = '/b'"))
    lab.main.on("/b", redirect("/c"))
    lab.main.on("/c", script("location = '/d'"))
    lab.main.on("/d", page("end"))
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / "a"])
    result.assert_exhausted()
    assert [result.fate(lab.main / path).end for path in "abcd"] == ["redirected"] * 3 + [
        "succeeded"
    ]
    assert result.log.hits_by_path() == {"/a": 1, "/b": 1, "/c": 1, "/d": 1}


async def test_a_form_is_sent_with_its_method_and_body(lab: Lab) -> None:
    """A script that posts a form makes a POST of the frontier's."""
    bodies = []

    def take(request: Request) -> Answer:
        bodies.append((request.method, request.body, request.headers.get("content-type")))
        return page("thanks")

    lab.main.on(
        "/",
        Answer(
            "<form method=post action=/next><input name=q value=1></form>"
            "<script>document.forms[0].submit()</script>"
        ),
    )
    lab.main.on("/next", take)
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / ""])
    result.assert_finished()
    assert bodies == [("POST", b"q=1", "application/x-www-form-urlencoded")]
    assert result.fate(f"POST {lab.main / 'next'}").end == "succeeded"


async def test_hops_are_judged_by_scope_and_robots(lab: Lab) -> None:
    """A script leads out of scope, or to what robots.txt forbids: refused by name, and nothing is asked for."""
    other = lab.server.origin("other")
    other.on("/", page("other"))
    lab.main.on("/robots.txt", text("User-agent: *\nDisallow: /private"))
    lab.main.on("/out", script(f"location = '{other / ''}'"))
    lab.main.on("/forbidden", script("location = '/private'"))
    lab.main.on("/private", page("private"))
    settings = {**RENDER, "ROBOTSTXT_OBEY": True, "FRONTIER_SCOPE": {"include": [lab.main.url]}}
    seeds = [lab.main / "out", lab.main / "forbidden"]
    result = await lab.crawl(Listener, settings, seeds=seeds)
    result.assert_finished()
    assert result.log.of(other.url) == []
    assert "/private" not in result.log.hits_by_path()
    assert result.fate(lab.main / "out").reason == "redirect.refused"
    assert result.fate(lab.main / "private").reason == "robots.disallow"
    refused = [item["failure"] for item in result.items if "failure" in item]
    assert any(isinstance(error, HopRefused) and error.rule == "scope.origin" for error in refused)


async def test_a_page_that_reloads_itself(lab: Lab) -> None:
    """Without a new cookie it is the page; with one it is asked for again, which ends."""
    lab.main.on("/plain", script("if (!window.name) location.reload()"))
    lab.main.on(
        "/cookie",
        script("if (!document.cookie) { document.cookie = 'in=1'; location.reload() }"),
    )
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / "plain", lab.main / "cookie"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/plain": 1, "/cookie": 2}
    assert result.ends() == {"succeeded": 2}


async def test_a_circle_of_scripts_ends(lab: Lab) -> None:
    """Pages that send their visitor round and on for ever come to the end of the chain."""
    lab.main.on("/a", script("location = '/b'"))
    lab.main.on("/b", script("location = '/a'"))
    lab.main.on("/count*", script("location = '/count' + (1 + Number(location.pathname.slice(6)))"))
    settings = {**RENDER, "REDIRECT_MAX_TIMES": 3}
    seeds = [lab.main / "a", lab.main / "count0"]
    result = await lab.crawl(Reader, settings, seeds=seeds)
    result.assert_exhausted()
    hits = result.log.hits_by_path()
    assert (hits["/a"], hits["/b"]) == (1, 1)
    assert sum(count for path, count in hits.items() if path.startswith("/count")) == 4


async def test_what_is_not_followed_is_on_record(lab: Lab) -> None:
    """Pop-ups, downloads and what is put into the address bar: seen by name, fetched by nobody."""
    lab.main.on(
        "/",
        script(
            "window.open('/popup'); history.pushState({}, '', '/pushed');"
            "const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['x']));"
            "a.download = 'x.txt'; document.documentElement.append(a); setTimeout(() => a.click(), 50)"
        ),
    )
    result = await lab.crawl(Reader, RENDER, seeds=[lab.main / ""])
    result.assert_exhausted()
    (item,) = result.items
    assert item["url"] == lab.main / ""
    assert item["seen"]["popups"] == [lab.main / "popup"]
    assert item["seen"]["history"] == [lab.main / "pushed"]
    assert len(item["seen"]["downloads"]) == 1
    assert result.log.hits_by_path() == {"/": 1}
    query = "SELECT observations FROM emission WHERE observations IS NOT NULL"
    found = [seen for (packed,) in result.rows(query) for seen in unpack_observations(packed)]
    noted = {(seen.tag, seen.observed, seen.is_followed) for seen in found}
    assert ("render.popup", lab.main / "popup", False) in noted
    assert ("render.history", lab.main / "pushed", False) in noted


async def test_a_redirect_that_is_not_wanted_is_not_followed(lab: Lab) -> None:
    """`dont_redirect` holds for scripts, too: the page comes as it was when it would have left."""
    lab.main.on("/", script("document.title = 'made'; location = '/next'"))
    lab.main.on("/next", page("next"))
    settings = {**RENDER, "REDIRECT_ENABLED": False}
    result = await lab.crawl(Reader, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1}
    assert "<title>made" in result.items[0]["text"]
    assert result.items[0]["seen"]["navigation"] == lab.main / "next"
