"""A hostile page tries every way out of the browser; the origin it wants to reach counts its connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from crawls import Lab
from rendering import RENDER, Reader, javascript, needs_browser, script
from scrapy import Request
from test_render_hops import LEAVING, refreshing

from scrapy_frontier.handlers import launch
from scrapy_frontier.policy.rendering import TYPES
from scrapy_frontier.testing import Answer, redirect

pytestmark = [pytest.mark.browser, needs_browser]


class Spy:
    """Counts TCP connections, whatever they are for, and datagrams."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", self.port))
        self.reached: list[str] = []

    def run(self) -> None:
        """Accept until it is closed."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(0.2)
            try:
                self.reached.append(connection.recv(200).decode("latin-1").split("\r")[0])
            except OSError:
                self.reached.append("a connection")
            connection.close()

    def has_datagrams(self) -> bool:
        """Whether any have come."""
        self.datagrams.setblocking(False)
        try:
            return bool(self.datagrams.recv(10))
        except BlockingIOError:
            return False


@contextmanager
def spying() -> Iterator[Spy]:
    spy = Spy()
    thread = threading.Thread(target=spy.run, daemon=True)
    thread.start()
    try:
        yield spy
    finally:
        spy.listener.shutdown(socket.SHUT_RDWR)
        spy.listener.close()
        spy.datagrams.close()
        thread.join()


def hostile(spy: str, port: int) -> Answer:
    """A page with all the ways out."""
    head = f"""
        <link rel=preconnect href={spy}/preconnect><link rel=dns-prefetch href=http://out.invalid/>
        <link rel=prefetch href={spy}/prefetch><link rel=preload as=script href={spy}/preload>
        <link rel=modulepreload href={spy}/module><link rel=stylesheet href={spy}/style>
        <link rel=icon href={spy}/icon><link rel=manifest href={spy}/manifest>
        <style>@import url({spy}/import); @font-face {{ font-family: f; src: url({spy}/font) }}
          body {{ background: url({spy}/background); font-family: f }}</style>
        <script type=speculationrules>{{"prefetch": [{{"urls": ["{spy}/speculated"]}}],
          "prerender": [{{"urls": ["{spy}/prerendered"]}}]}}</script>"""
    body = f"""
        <img src={spy}/img><img srcset="{spy}/srcset 1x"><iframe src={spy}/frame></iframe>
        <iframe srcdoc="<script src={spy}/srcdoc></script>"></iframe>
        <object data={spy}/object></object><embed src={spy}/embed>
        <video src={spy}/video poster={spy}/poster></video><audio src={spy}/audio></audio>
        <video><track default src={spy}/track></video><svg><image href={spy}/svg /></svg>
        <a id=ping href=#here ping={spy}/ping>x</a><script src={spy}/script></script>
        <img src=/redirect-img><script src=/redirect-script></script>"""
    code = f"""
        const tries = [
          () => fetch('{spy}/fetch', {{mode: 'no-cors'}}), () => fetch('/redirect-fetch'),
          () => fetch('{spy}/keep', {{keepalive: true, mode: 'no-cors'}}),
          () => {{ const x = new XMLHttpRequest(); x.open('GET', '{spy}/xhr'); x.send() }},
          () => navigator.sendBeacon('{spy}/beacon', 'x'), () => new EventSource('{spy}/events'),
          () => new WebSocket('{spy}/socket'.replace('http', 'ws')), () => import('{spy}/module.js'),
          () => new Worker('/worker.js'), () => new SharedWorker('/worker.js'),
          () => navigator.serviceWorker.register('/worker.js'), () => window.open('{spy}/popup'),
          () => document.getElementById('ping').click(),
          () => {{ const p = new RTCPeerConnection({{iceServers: [
              {{urls: 'stun:127.0.0.1:{port}'}},
              {{urls: 'turn:127.0.0.1:{port}?transport=tcp', username: 'u', credential: 'c'}}]}});
              p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)) }},
          () => new WebTransport('https://127.0.0.1:{port}/transport'),
          () => {{ const f = document.createElement('iframe'); document.body.append(f);
              f.contentWindow.fetch('{spy}/from-frame', {{mode: 'no-cors'}});
              f.contentWindow.location = '{spy}/frame-moves' }},
          () => {{ const f = document.createElement('form'); f.action = '{spy}/form'; f.method = 'post';
              f.target = 'named'; document.body.append(f); f.submit() }},
        ];
        for (const attempt of tries) try {{ const p = attempt(); if (p && p.catch) p.catch(() => 0) }}
          catch (e) {{}}
        document.title = 'tried ' + tries.length"""
    return Answer(f"<html><head>{head}</head><body>{body}<script>{code}</script></body></html>")


async def test_no_way_leads_out_of_scope(lab: Lab) -> None:
    """Not one connection or datagram reaches the origin out of scope, and what was asked for is in the account."""
    allow = {"types": [*TYPES]}
    with spying() as spy:
        url = f"http://127.0.0.1:{spy.port}"
        lab.main.on("/", hostile(url, spy.port))
        for kind in ("img", "script", "fetch"):
            lab.main.on(f"/redirect-{kind}", redirect(f"{url}/redirected-{kind}"))
        worker = f"fetch('{url}/worker', {{mode: 'no-cors'}}); importScripts('{url}/imported')"
        lab.main.on("/worker.js", javascript(worker))
        settings = {**RENDER, "FRONTIER_SCOPE": {"include": [lab.main.url]}}
        settings |= {"FRONTIER_RENDER_ALLOW": allow, "FRONTIER_RENDER_QUIET": 1.5}
        result = await lab.crawl(Reader, settings, seeds=[lab.main / ""], patience_s=40)
        result.assert_exhausted()
        assert spy.reached == []
        assert not spy.has_datagrams()
    (item,) = result.items
    assert "<title>tried 17" in item["text"]
    assert item["seen"]["by_outcome"]["scope.origin"] > 15
    (refused,) = [one for one in result.coverage.rendering.origins if one.origin == url]
    assert (refused.sent, refused.bytes) == (0, 0)
    assert refused.by_outcome["scope.origin"] > 15
    asked = {urlsplit(out).path for out in result.fates if out.startswith(url)}
    for path in ("/img", "/frame", "/fetch", "/xhr", "/script", "/redirected-fetch"):
        assert path in asked
        assert result.fates[f"{url}{path}"].end == "suppressed"


HEADERS = (
    ("Link", "<{spy}/link>; rel=preload; as=script, <{spy}/connect>; rel=preconnect"),
    ("Speculation-Rules", '"{spy}/rules.json"'),
    ("Content-Security-Policy-Report-Only", "default-src 'none'; report-uri {spy}/csp"),
    ("Reporting-Endpoints", 'main="{spy}/reports"'),
    ("NEL", '{"report_to": "main", "max_age": 3600, "success_fraction": 1}'),
    ("Report-To", '{"group": "main", "max_age": 3600, "endpoints": [{"url": "{spy}/report"}]}'),
)
"""Answers that ask a browser to turn elsewhere."""

ELSEWHERE = {
    "file": "const a = document.createElement('a'); a.href = '{to}'; a.download = '';"
    "document.body.append(a); a.click()",
    "top": "const f = document.createElement('iframe'); f.srcdoc = "
    "`<script>top.location = '{to}'</scr` + `ipt>`; document.body.append(f)",
    "post": "const f = document.createElement('form'); f.action = '{to}'; f.method = 'post';"
    "document.body.append(f); f.submit()",
    "window": "const w = open('about:blank'); w.location = '{to}'; w.eval(`fetch('{to}')`)",
    "blank": "const a = document.createElement('a'); a.href = '{to}'; a.target = '_blank';"
    "document.body.append(a); a.click()",
    "frame": "const f = document.createElement('iframe'); document.body.append(f);"
    "f.contentDocument.write(`<meta http-equiv=refresh content='0; url={to}'>`);"
    "f.contentDocument.close()",
    "base": "document.head.innerHTML = `<base href='{to}/'>`; fetch('relative');"
    "location = 'relative'",
    "scheme": "location = 'view-source:{to}'; location = 'blob:{to}'; open('data:text/html,"
    "<img src={to}>')",
}
"""Further ways to lead a visitor, or a part of the page, elsewhere."""


async def test_whoever_leads_elsewhere_leads_nowhere(lab: Lab) -> None:
    """Pages that send the whole visit out of scope, each in its way: no connection, and each has its end by name."""
    ways = {**{way: LEAVING[way] for way in ("location", "form", "tag")}, **ELSEWHERE}
    with spying() as spy:
        url = f"http://127.0.0.1:{spy.port}"
        for way, code in ways.items():
            lab.main.on(f"/{way}", script(code.replace("{to}", f"{url}/{way}")))
        lab.main.on("/header", refreshing(f"{url}/header"))
        asked = [(name, value.replace("{spy}", url)) for name, value in HEADERS]
        lab.main.on("/headers", Answer("<img src=/x><p>asked", headers=asked))
        settings = {**RENDER, "FRONTIER_SCOPE": {"include": [lab.main.url]}}
        settings |= {"FRONTIER_RENDER_ALLOW": {"types": [*TYPES]}}
        seeds = [lab.main / way for way in (*ways, "header", "headers")]
        result = await lab.crawl(Reader, settings, seeds=seeds, patience_s=60)
        result.assert_exhausted()
        assert spy.reached == []
        assert not spy.has_datagrams()
    for way in ("location", "form", "tag", "file", "post", "base", "header"):
        assert result.fate(lab.main / way).reason == "redirect.refused", way
    seen = {item["url"].rpartition("/")[2]: item["seen"] for item in result.items}
    assert seen["window"]["popups"] == [f"{url}/window"]
    assert seen["blank"]["popups"] == [f"{url}/blank"]


async def test_a_browser_that_has_a_network_is_not_used(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags may be overruled on the machine: that is tried out, and such a browser is shown no page."""
    monkeypatch.setattr(launch, "options", lambda given, path, proxy: {"executable_path": path})
    lab.main.on("/", Answer("<p>shown"))
    result = await lab.crawl(Reader, {**RENDER, "RETRY_TIMES": 0}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.fate(lab.main / "").reason == "render.guard"


async def test_without_its_guard_a_page_is_not_shown(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where requests cannot be watched nothing is rendered; and a route of the project's finds no network."""
    from playwright.async_api import Error

    from scrapy_frontier.handlers.guard import Guard

    async def fails(*_: object) -> None:
        raise Error("no interception here")

    monkeypatch.setattr(Guard, "install", fails)
    lab.main.on("/", Answer("<script src=/s.js></script>"))
    result = await lab.crawl(Reader, {**RENDER, "RETRY_TIMES": 1}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 2}
    assert result.fate(lab.main / "").reason == "render.guard"
    assert result.items == []


async def test_a_callback_of_the_project_cannot_open_a_way_out(lab: Lab) -> None:
    """A route that lets everything continue leads nowhere, for the browser has no network."""
    other = lab.server.origin("other")
    lab.main.on("/", Answer(f"<script src={other / 's.js'}></script>"))
    result = await lab.crawl(Opener, {"FRONTIER_SCOPE": {}}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.of(other.url) == []
    assert result.log.hits_by_path() == {"/": 1}


class Opener(Reader):
    """Puts a route of its own before the guard's."""

    name = "opener"

    async def start(self) -> Any:
        meta = {"playwright": True, "playwright_page_init_callback": open_up}
        for url in self.start_urls:
            yield Request(url, meta=meta)


async def open_up(page: Any, request: Any) -> None:
    """Let every script go on to the network."""
    await page.route("**/*.js", lambda route: route.continue_())
