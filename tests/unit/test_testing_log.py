"""The log of the scripted server tells the truth; trees, scripts and processes serve what they should."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from plain_client import ask, connect, fetch, fetch_raw

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.testing import (
    Answer,
    MovedClock,
    Origin,
    RequestLog,
    ScriptedServer,
    ServerProcess,
    page,
    redirect,
    serve_tree,
)
from scrapy_frontier.testing.script import load_script


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def site(server: ScriptedServer) -> Origin:
    return server.origin("site")


class TestLog:
    def test_a_hit_tells_what_was_asked_and_answered(
        self, site: Origin, server: ScriptedServer
    ) -> None:
        """Origin, method, raw target, headers, status and outcome are those of the exchange."""
        site.on("/a", Answer(status=503))
        fetch_raw(site, "/a?x=%C3%A9", headers="User-Agent: me\r\n")
        (hit,) = server.log
        assert (hit.url, hit.method, hit.status, hit.outcome) == (
            f"{site.url}/a?x=%C3%A9",
            "GET",
            503,
            "sent",
        )
        assert hit.headers["user-agent"] == "me"

    def test_the_file_says_what_the_memory_says(self, tmp_path: Path) -> None:
        """Each request is one line of JSON that can be read back."""
        with ScriptedServer(tmp_path / "log") as server:
            site = server.origin()
            site.on("/", [Answer(fault="close"), Answer("x")])
            fetch_raw(site, "/")
            fetch_raw(site, "/")
            on_disk = RequestLog.load(tmp_path / "log")
        assert list(on_disk) == list(server.log)
        assert [hit.outcome for hit in on_disk] == ["closed", "sent"]

    def test_an_unfinished_last_line_is_left_out(self, tmp_path: Path) -> None:
        """A server that was killed while it wrote leaves a readable log."""
        path = tmp_path / "log"
        with ScriptedServer(path) as server:
            fetch(server.origin(), "/")
        with path.open("ab") as file:
            file.write(b'{"origin": "http://127')
        assert len(RequestLog.load(path)) == 1

    def test_simultaneous_requests_are_counted_per_origin(self, server: ScriptedServer) -> None:
        """`max_simultaneous` is what was in flight at one origin, whatever the others did."""
        busy, idle = server.origin("busy"), server.origin("idle")
        for origin in (busy, idle):
            origin.otherwise = Answer("x", delay_s=0.1)
        clients = [connect(busy) for _ in range(3)] + [connect(idle)]
        for client in clients:
            client.sendall(ask("/"))
        for client in clients:
            assert client.recv(4096).endswith(b"x")
            client.close()
        fetch(busy, "/")
        assert server.log.max_simultaneous(busy.url) == 3
        assert server.log.max_simultaneous(idle.url) == 1
        assert [hit.concurrency for hit in server.log.of(busy.url)] == [1, 2, 3, 1]

    def test_intervals_and_gaps_are_those_of_the_hits(
        self, site: Origin, server: ScriptedServer
    ) -> None:
        """The interval is between arrivals, the gap from an end to the next arrival."""
        site.on("/", Answer("x", delay_s=0.03))
        assert server.log.smallest_interval_s(site.url) is None
        for _ in range(3):
            fetch(site, "/")
        interval, gap = (
            server.log.smallest_interval_s(site.url),
            server.log.smallest_gap_s(site.url),
        )
        hits = server.log.hits
        assert interval == min(b.arrived_at - a.arrived_at for a, b in pairwise(hits)) >= 0.03
        assert gap == min(b.arrived_at - (a.departed_at or 0) for a, b in pairwise(hits))
        assert 0 <= gap <= interval - 0.03

    def test_overlapping_requests_have_a_negative_gap(
        self, site: Origin, server: ScriptedServer
    ) -> None:
        """An overlap cannot pass for a pause."""
        site.on("/", Answer("x", delay_s=0.05))
        with connect(site) as first:
            first.sendall(ask("/"))
            server.log.wait_for(1)
            fetch(site, "/")
        gap = server.log.smallest_gap_s(site.url)
        assert gap is not None
        assert gap < 0

    def test_hits_are_counted_by_path_and_by_url(self, server: ScriptedServer) -> None:
        """The same path at two origins is one path and two URLs."""
        one, two = server.origin("one"), server.origin("two")
        for origin in (one, two, two):
            fetch(origin, "/x")
        assert server.log.hits_by_path() == {"/x": 3}
        assert server.log.hits_by_path(two.url) == {"/x": 2}
        assert server.log.hits_by_url() == {one / "x": 1, two / "/x": 2}
        assert server.log.origins() == [one.url, two.url]

    def test_waiting_for_hits_that_do_not_come_ends(self, server: ScriptedServer) -> None:
        """`wait_for` says how many came."""
        with pytest.raises(TimeoutError, match="0 of 1"):
            server.log.wait_for(1, timeout_s=0.01)


class TestTree:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        (tmp_path / "sub dir").mkdir()
        (tmp_path / "empty").mkdir()
        (tmp_path / "index.html").write_text("<p>top")
        (tmp_path / "sub dir" / "index.html").write_text("<p>sub")
        (tmp_path / "notes.txt").write_text("notes")
        (tmp_path / "pic.png").write_bytes(b"\x89PNG")
        (tmp_path / "doc.ps.gz").write_bytes(b"\x1f\x8b")
        return tmp_path

    @pytest.mark.parametrize(
        ("target", "status", "content_type"),
        [
            ("/", 200, "text/html"),
            ("/index.html", 200, "text/html"),
            ("/index.html?v=1", 200, "text/html"),
            ("/sub%20dir/", 200, "text/html"),
            ("/notes.txt", 200, "text/plain; charset=utf-8"),
            ("/pic.png", 200, "image/png"),
            ("/doc.ps.gz", 200, "application/gzip"),
            ("/empty/", 404, None),
            ("/notes.txt/", 404, None),
            ("/missing.html", 404, None),
            ("/../secret", 404, None),
            ("/%2e%2e/secret", 404, None),
            ("/a%00b", 404, None),
        ],
    )
    @pytest.mark.parametrize("prefix", ["", "/docs"])
    def test_files_have_their_place_and_type(
        self, tree: Path, prefix: str, target: str, status: int, content_type: str | None
    ) -> None:
        """A tree is served like a static site, at the root or below a prefix."""
        site = ScriptedServer().origin()
        serve_tree(site, prefix, tree)
        answer = site.get(prefix + target)
        site.listener.close()
        assert answer.status == status
        if content_type:
            assert answer.content_type == content_type

    @pytest.mark.parametrize(
        ("target", "location"),
        [("/d/sub%20dir?q=1", "/d/sub%20dir/?q=1"), ("/d/empty", "/d/empty/"), ("/d", "/d/")],
    )
    def test_a_directory_without_slash_moves(self, tree: Path, target: str, location: str) -> None:
        """A directory without its slash is a 301 to the one with it, query kept."""
        site = ScriptedServer().origin()
        serve_tree(site, "/d", tree)
        answer = site.get(target)
        site.listener.close()
        assert (answer.status, answer.headers) == (301, (("Location", location),))

    def test_a_missing_directory_is_an_error(self, site: Origin, tmp_path: Path) -> None:
        """A typing error in the directory does not become a site of 404s."""
        with pytest.raises(NotADirectoryError, match="nowhere"):
            serve_tree(site, "/", tmp_path / "nowhere")


class TestScripts:
    def load(self, tmp_path: Path, script: object) -> ScriptedServer:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(script))
        server = ScriptedServer()
        try:
            load_script(path, server, host="127.0.0.1", port=0)
        finally:
            server.stop()
        return server

    def test_a_script_names_origins_answers_and_each_other(self, tmp_path: Path) -> None:
        """Pages, redirects, sequences and `${name}` in JSON are those of the Python form."""
        paths = {
            "/": {"links": ["${b}/x"], "title": "A"},
            "/go": {"redirect": "${b}/y", "status": 308},
            "/turns": [{"status": 503, "headers": {"Retry-After": "1"}}, {"body": "${c}"}],
        }
        script = {"origins": {"a": {"paths": paths}, "b": {"otherwise": {"body": "B"}}}}
        a, b = self.load(tmp_path, script).origins.values()
        assert a.get("/") == page("A", [b / "x"])
        assert a.get("/go") == redirect(b / "y", 308)
        assert [a.get("/turns").status, a.get("/turns").body] == [503, "${c}"]
        assert b.get("/anything").body == "B"

    @pytest.mark.parametrize("script", [[], {}, {"origins": {"a": {"paths": {"/": {"bdy": 1}}}}}])
    def test_what_is_no_script_is_refused(self, tmp_path: Path, script: object) -> None:
        """A misspelt key or another shape is an error that says what is expected."""
        with pytest.raises(ConfigError, match=r"origins|its keys are"):
            self.load(tmp_path, script)


class TestProcess:
    def test_a_process_serves_scripts_and_trees_and_ends(self, tmp_path: Path) -> None:
        """The command prints its URLs, serves, logs, and ends with its starter."""
        (tmp_path / "index.html").write_text("<p>tree")
        script = tmp_path / "script.json"
        script.write_text('{"origins": {"one": {"paths": {"/": {"body": "scripted"}}}}}')
        log = tmp_path / "log"
        with ServerProcess(log, script, "--tree", f"two/t={tmp_path}") as server:
            for url in (server.urls["one"] + "/", server.urls["two"] + "/t/"):
                host, port = url.split("/")[2].split(":")
                connection = http.client.HTTPConnection(host, int(port), timeout=5)
                connection.request("GET", url)
                assert connection.getresponse().status in {200, 404}
                connection.close()
            assert len(server.wait_for(2)) == 2
        assert len(server.read_log()) == 2
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), timeout=5)

    def test_nothing_to_serve_is_bad_usage(self) -> None:
        """Without a script or a tree the command says so and ends with 2."""
        command = [sys.executable, "-m", "scrapy_frontier.testing.server"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "give a SCRIPT or a --tree" in ended.stderr


class TestMovedClock:
    def test_it_moves_only_by_hand(self) -> None:
        """`now` stands still, `advance` adds seconds, `set` may also go back."""
        clock = MovedClock(100.0)
        assert clock.now() == clock.now() == 100.0
        assert clock.advance(1.5) == clock.now() == 101.5
        clock.set(7.0)
        assert clock.now() == 7.0

    def test_it_does_not_advance_backwards(self) -> None:
        """A negative step is a mistake in the test that makes it."""
        with pytest.raises(ValueError, match="cannot advance by -1"):
            MovedClock().advance(-1)
