"""The report of a run as a live web page: who may read it, what it costs the crawl, and that it ends."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from crawls import Follower, Lab, on_both_stores
from processes import CrawlProcess, make_web

from scrapy_frontier.cli import main
from scrapy_frontier.commands.serving.access import Access, Refused, host_name
from scrapy_frontier.commands.serving.pages import Kept, Pages
from scrapy_frontier.errors import FrontierError
from scrapy_frontier.store.deadline import ReadTooLong
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import page

SERVE = [sys.executable, "-c", "import sys; from scrapy_frontier.cli import main; sys.exit(main())"]


class Served:
    """A server in a process of its own."""

    def __init__(self, lab: Lab, *options: str) -> None:
        command = [*SERVE, "serve", "--store", lab.store_url, "--port", "0", *options]
        self.process = subprocess.Popen(
            command, cwd=lab.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline()
        found = re.search(r"http://(\S+):(\d+)/(?:\?token=(\S+))?", self.greeting)
        assert found is not None, self.greeting + self.process.stdout.read()
        self.port, self.token = int(found[2]), found[3]

    def ask(
        self, path: str = "/", method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Interrupt it: its exit status, and what it wrote last."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, out


@contextmanager
def serving(lab: Lab, *options: str) -> Iterator[Served]:
    """A server that is gone at the end."""
    served = Served(lab, *options)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
            served.process.communicate()


@pytest.mark.slow
@on_both_stores
def test_a_running_crawl_is_served_live(lab: Lab) -> None:
    """The page of `report --format html`, read anew; nobody else is let in, and nothing can be changed."""
    make_web(lab.main, 30)
    slow = {"DOWNLOAD_DELAY": 0.3, "RANDOMIZE_DOWNLOAD_DELAY": False}
    with CrawlProcess(lab, lab.main / "p0", slow) as process:
        process.wait_for_text("Run test in")
        with serving(lab) as served:
            deadline = time.monotonic() + 20
            while "responses/s, " not in served.ask()[2]:
                assert time.monotonic() < deadline
                time.sleep(0.3)
            status, headers, shown = served.ask()
            assert status == 200
            assert "crawl report</title>" in shown
            assert "Live: read in" in shown
            assert headers["Content-Type"] == "text/html; charset=utf-8"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            assert served.ask()[2] == shown, "for some seconds it is not read again"

            account = json.loads(served.ask("/report.json")[2])
            assert account["run"]["state"] == "running"
            assert json.loads(served.ask("/live.json")[2])["is_live"] is True
            assert "in flight" in served.ask("/live")[2]

            assert served.ask("/", "HEAD")[::2] == (200, "")
            assert served.ask("/", "POST")[0] == 405
            assert served.ask("/../etc/passwd")[0] == 404
            rebound = served.ask("/", Host="evil.example")
            assert rebound[0] == 421
            assert "crawl report" not in rebound[2]
            assert served.ask("/live", Host=f"localhost:{served.port}")[0] == 200
            assert process.process.poll() is None
            assert served.end()[0] == 0
        process.kill()


@pytest.mark.slow
async def test_elsewhere_than_on_loopback_a_token_is_needed(lab: Lab) -> None:
    """It is printed, taken out of the address, and accepted as a cookie and as a bearer's."""
    make_web(lab.main, 2)
    await lab.crawl(Follower, seeds=[lab.main / "p0"])
    with serving(lab, "--host", "0.0.0.0", "--allow-host", "crawls.example") as served:
        assert served.token is not None
        assert len(served.token) >= 43
        status, headers, text = served.ask("/live")
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert served.token not in text
        assert served.ask("/live?token=wrong")[0] == 401
        assert served.ask("/live", Cookie="frontier_token=wrong")[0] == 401
        status, headers, _ = served.ask(f"/live?token={served.token}")
        assert (status, headers["Location"]) == (303, "/live")
        cookie, *attributes = headers["Set-Cookie"].split("; ")
        assert set(attributes) == {"HttpOnly", "SameSite=Strict", "Path=/"}
        assert served.ask("/live", Cookie=cookie)[0] == 200
        bearer = {"Authorization": f"Bearer {served.token}"}
        assert served.ask("/live", **bearer)[0] == 200
        assert served.ask("/live", **bearer, Host="crawls.example:80")[0] == 200
        assert served.ask("/live", **bearer, Host="evil.example")[0] == 421
        assert served.end(signal.SIGTERM)[0] == 0


async def test_what_is_served_is_what_the_command_reports(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word, with what it hides in URLs; the page has its notice besides."""
    lab.main.on("/", page(links=["/a?session=s3cr3t", "/b?password=s3cr3t"]))
    await lab.crawl(Follower, seeds=[lab.main / "?user=s3cr3t"])
    with open_store(lab.store_url, read_only=True) as store:
        pages = Pages(store, None)
        for form, served in (("json", pages.data()), ("html", pages.page())):
            capsys.readouterr()
            assert main(["report", "--format", form, "--store", lab.store_url]) == 0
            notice = r' *<p class="notice" role="status">.*?</p>\n'
            assert re.sub(notice, "", served) == capsys.readouterr().out


def test_the_host_of_a_request() -> None:
    """On loopback the names of this machine; elsewhere addresses too, for only a name can be rebound."""
    local = Access.of("127.0.0.1")
    assert local.token is None
    for host in ("localhost", "LOCALHOST:8090", "127.0.0.1:1", "[::1]:8090", "127.9.9.9"):
        local.check_host(host)
    for host in (None, "", "192.0.2.1", "localhost.evil.example", "evil.example:8090", "[::1"):
        if host != "[::1":
            with pytest.raises(Refused):
                local.check_host(host)
    remote = Access.of("0.0.0.0", ["Crawls.Example"])
    for host in ("192.0.2.1:8090", "[2001:db8::1]:80", "crawls.example", socket.gethostname()):
        remote.check_host(host)
    with pytest.raises(Refused):
        remote.check_host("evil.example")
    assert Access.of("::1").token is None
    assert remote.token != Access.of("0.0.0.0").token
    assert host_name("[2001:db8::1]:80") == "2001:db8::1"


def test_a_port_that_is_taken_is_said(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage, with what to do."""
    open_store(lab.store_url, create=True).close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--store", lab.store_url, "--port", str(port)]) == 2
    assert re.search(
        rf"port {port} cannot be listened on: .*choose another", capsys.readouterr().err
    )


def test_readings_follow_each_other_with_a_rest_between_them() -> None:
    """Ten readers at once cost one reading; an error is kept as a page is."""
    made: list[int] = []
    now = 100.0

    def make() -> int:
        nonlocal now
        made.append(1)
        now += 2.0
        return len(made)

    kept = Kept(make, 5, 10, lambda: now)
    with ThreadPoolExecutor(10) as threads:
        found = {future.result() for future in [threads.submit(kept.get) for _ in range(10)]}
    assert found == {1}
    now += 19.9
    assert kept.get() == 1, "what took 2 s is not made again for 20 s"
    now += 0.2
    assert kept.get() == 2

    def fail() -> int:
        made.append(1)
        raise FrontierError("no")

    before, broken = len(made), Kept(fail, 60, 10)
    for _ in range(2):
        with pytest.raises(FrontierError, match="no"):
            broken.get()
    assert len(made) == before + 1


async def test_a_reading_that_takes_too_long_says_where_else_to_look(lab: Lab) -> None:
    """It is ended; what can be told at once is told; closing the server ends it too."""
    make_web(lab.main, 2)
    await lab.crawl(Follower, seeds=[lab.main / "p0"])
    with open_store(lab.store_url, read_only=True) as store:
        pages = Pages(store, None, limit_s=0)
        with pytest.raises(ReadTooLong, match="frontier report"):
            pages.page()
        assert "Finished" in pages.frame_text()
        closed = Pages(store, None)
        closed.close()
        with pytest.raises(ReadTooLong):
            closed.page()


def test_a_store_without_runs_is_no_error_of_the_server(lab: Lab) -> None:
    """It says so, and serves the run as soon as there is one."""
    open_store(lab.store_url, create=True).close()
    with serving(lab) as served:
        status, _, text = served.ask()
        assert (status, "no run yet" in text) == (404, True)
        assert served.end()[0] == 0


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path")
async def test_in_a_browser_it_asks_for_nothing_else(lab: Lab) -> None:
    """No complaint on the console under its headers, no request but its own, and the tables work."""
    api = pytest.importorskip("playwright.sync_api")
    make_web(lab.main, 8)
    await lab.crawl(Follower, seeds=[lab.main / "p0"])

    def look(address: str) -> dict[str, Any]:
        complaints: list[str] = []
        requests: list[str] = []
        with api.sync_playwright() as play:
            browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            tab = browser.new_page()
            tab.on("console", lambda message: complaints.append(message.text))
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.on("request", lambda request: requests.append(request.url))
            tab.goto(address)
            tab.locator('[data-table="origins"] th button').first.press("Enter")
            seen = {
                "sort": tab.locator('[data-table="origins"] th').first.get_attribute("aria-sort"),
                "notice": tab.locator(".notice").inner_text(),
                "complaints": complaints,
                "requests": requests,
                "address": tab.url,
            }
            browser.close()
            return seen

    with serving(lab, "--host", "0.0.0.0") as served, ThreadPoolExecutor(1) as threads:
        base = f"http://127.0.0.1:{served.port}/"
        seen = threads.submit(look, f"{base}?token={served.token}").result()
        assert served.end()[0] == 0
    assert seen["complaints"] == []
    assert seen["requests"] == [f"{base}?token={served.token}", base]
    assert seen["address"] == base
    assert seen["sort"] == "ascending"
    assert seen["notice"].startswith("Live: read in")
