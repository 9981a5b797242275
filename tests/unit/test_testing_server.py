"""The scripted server answers as its script says, fails as it says, and its log tells the truth."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.testing import (
    Answer,
    MovedClock,
    Origin,
    Request,
    RequestLog,
    ScriptedServer,
    ServerProcess,
    page,
    redirect,
    serve_tree,
)
from scrapy_frontier.testing.script import load_script, read_answer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def site(server: ScriptedServer) -> Origin:
    return server.origin("site")


def connect(site: Origin) -> socket.socket:
    return socket.create_connection((site.host, site.port), timeout=5)


def ask(target: str, method: str = "GET", headers: str = "") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: test\r\n{headers}\r\n".encode()


def read_to_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def fetch_raw(site: Origin, target: str, method: str = "GET", headers: str = "") -> bytes:
    """All bytes of one exchange whose connection the client asks to close."""
    with connect(site) as connection:
        connection.sendall(ask(target, method, f"Connection: close\r\n{headers}"))
        return read_to_end(connection)


def fetch(site: Origin, target: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(site.host, site.port, timeout=5)
    try:
        connection.request(method, target)
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


class TestAnswers:
    def test_status_headers_and_body_are_those_of_the_script(self, site: Origin) -> None:
        """An answer goes out as it was written."""
        site.on("/tea", Answer("short and stout", 418, headers=[("X-Pot", "1")]))
        status, headers, body = fetch(site, "/tea")
        assert (status, headers["x-pot"], body) == (418, "1", b"short and stout")

    def test_repeated_and_raw_headers_go_out_as_given(self, site: Origin) -> None:
        """A header may come twice, and bytes are sent without any encoding."""
        twice = [("Location", b"/caf\xe9"), ("Location", "/café")]
        site.on("/", Answer(status=302, headers=twice))
        raw = fetch_raw(site, "/")
        assert b"Location: /caf\xe9\r\nLocation: /caf\xc3\xa9\r\n" in raw

    def test_answers_come_in_turn_and_the_last_repeats(self, site: Origin) -> None:
        """First 503, then 200 for ever."""
        site.on("/flaky", [Answer(status=503), Answer(status=200)])
        assert [fetch(site, "/flaky")[0] for _ in range(3)] == [503, 200, 200]

    def test_the_most_specific_route_answers(self, site: Origin) -> None:
        """Target with query, then path, then the longest prefix, then `otherwise`."""
        for path in ("/a?b=1", "/a", "/*", "/dir/*"):
            site.on(path, Answer(path))
        targets = ["/a?b=1", "/a?b=2", "/dir/x", "/other"]
        assert [fetch(site, t)[2].decode() for t in targets] == ["/a?b=1", "/a", "/dir/*", "/*"]

    def test_what_has_no_route_is_not_found(self, site: Origin) -> None:
        """An origin without a script answers 404."""
        assert fetch(site, "/robots.txt")[0] == 404

    def test_a_function_answers_from_the_request(self, site: Origin) -> None:
        """A callable sees method, target, headers and body."""

        def echo(request: Request) -> Answer:
            parts = (request.method, request.path, request.query, request.headers["x-a"])
            return Answer(" ".join(parts) + " " + request.body.decode())

        site.otherwise = echo
        with connect(site) as connection:
            headers = "X-A: 1\r\nX-A: 2\r\nContent-Length: 4\r\nConnection: close\r\n"
            connection.sendall(ask("/p?q=1", "POST", headers) + b"bo")
            connection.sendall(b"dy")
            assert read_to_end(connection).endswith(b"POST /p q=1 1, 2 body")

    def test_an_async_function_can_wait(self, site: Origin) -> None:
        """An async callable holds its own request back and no other."""

        async def wait(request: Request) -> Answer:
            await asyncio.sleep(0.05)
            return Answer("late")

        site.on("/late", wait)
        site.on("/soon", Answer("soon"))
        with connect(site) as patient:
            patient.sendall(ask("/late", headers="Connection: close\r\n"))
            assert fetch(site, "/soon")[2] == b"soon"
            assert read_to_end(patient).endswith(b"late")

    def test_a_broken_script_is_a_500_and_a_logged_error(
        self, site: Origin, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A bug in a callable neither hangs the client nor stays silent."""
        site.otherwise = lambda request: Answer(str(1 / 0))
        assert fetch(site, "/")[0] == 500
        assert "the script failed" in caplog.text

    def test_head_has_the_length_and_no_body(self, site: Origin) -> None:
        """HEAD is GET without the body."""
        site.on("/", Answer("12345"))
        raw = fetch_raw(site, "/", "HEAD")
        assert b"Content-Length: 5\r\n" in raw
        assert raw.endswith(b"\r\n\r\n")

    @pytest.mark.parametrize("status", [204, 304])
    def test_statuses_without_body_have_none(self, site: Origin, status: int) -> None:
        """204 and 304 end with the head."""
        site.on("/", Answer("ignored", status))
        raw = fetch_raw(site, "/")
        assert raw.endswith(b"\r\n\r\n")
        assert b"Content-Length" not in raw

    @pytest.mark.parametrize("body", [b"", b"x", b"y" * 70_000])
    @pytest.mark.parametrize("is_gzipped", [False, True])
    def test_chunked_and_gzip_decode_to_the_body(
        self, site: Origin, body: bytes, is_gzipped: bool
    ) -> None:
        """Transfer and content coding change the wire, not the content."""
        site.on("/", Answer(body, is_chunked=True, is_gzipped=is_gzipped))
        _, headers, received = fetch(site, "/")
        assert "content-length" not in headers
        assert (gzip.decompress(received) if is_gzipped else received) == body

    def test_helpers_make_pages_and_redirects(self, site: Origin) -> None:
        """`page` escapes its links, `redirect` sets the raw Location."""
        site.on("/", page("Home", ["/a?x=1&y=2"]))
        site.on("/old", redirect("/a b", 301))
        assert b'href="/a?x=1&amp;y=2"' in fetch(site, "/")[2]
        assert b"301 Moved Permanently\r\nLocation: /a b\r\n" in fetch_raw(site, "/old")

    def test_a_script_can_be_asked_without_a_network(self, site: Origin) -> None:
        """`get` gives the answer itself and leaves no hit."""
        site.on("/", page("Home"))
        assert "Home" in str(site.get("/").body)
        assert site.get("/missing").status == 404


class TestConnections:
    def test_connections_are_kept_alive_and_pipelined(self, site: Origin) -> None:
        """Two requests in one segment get two answers in order on one connection."""
        site.on("/1", Answer("one", delay_s=0.02))
        site.on("/2", Answer("two"))
        with connect(site) as connection:
            connection.sendall(ask("/1") + ask("/2", headers="Connection: close\r\n"))
            raw = read_to_end(connection)
        assert 0 < raw.index(b"one") < raw.index(b"two")
        assert raw.count(b"HTTP/1.1 200") == 2

    @pytest.mark.parametrize(
        ("version", "wish", "is_closed"),
        [
            ("1.1", "", False),
            ("1.1", "close", True),
            ("1.0", "", True),
            ("1.0", "keep-alive", False),
        ],
    )
    def test_the_client_decides_about_keep_alive(
        self, site: Origin, version: str, wish: str, is_closed: bool
    ) -> None:
        """HTTP/1.1 keeps, 1.0 closes, and the Connection header overrides both."""
        site.on("/", Answer("."))
        with connect(site) as connection:
            header = f"Connection: {wish}\r\n" if wish else ""
            connection.sendall(f"GET / HTTP/{version}\r\n{header}\r\n".encode())
            assert (b"Connection: close" in connection.recv(4096)) is is_closed

    def test_garbage_from_the_client_is_refused(self, site: Origin) -> None:
        """What is not HTTP gets a 400 and a closed connection, and is no hit."""
        with connect(site) as connection:
            connection.sendall(b"hello\r\n\r\n")
            assert read_to_end(connection).startswith(b"HTTP/1.1 400 ")

    def test_origins_on_other_loopback_addresses(self, server: ScriptedServer) -> None:
        """Each origin has an address, a port and a script of its own."""
        try:
            other = server.origin("other", "127.0.0.2")
        except OSError:
            pytest.skip("this system has no 127.0.0.2")
        other.on("/", Answer("other"))
        assert other.url == f"http://127.0.0.2:{other.port}"
        assert fetch(other, "/")[2] == b"other"

    def test_a_port_in_use_is_an_error(self, server: ScriptedServer, site: Origin) -> None:
        """A fixed port is never replaced by another in silence."""
        with pytest.raises(OSError, match="in use"):
            server.origin("again", port=site.port)

    def test_stopping_drops_connections_and_frees_the_port(self) -> None:
        """After the block nothing answers any more, also to clients that were waiting."""
        with ScriptedServer() as server:
            site = server.origin()
            site.on("/", Answer(fault="stall"))
            connection = connect(site)
            connection.sendall(ask("/"))
            server.log.wait_for(1)
        with connection, contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        assert [hit.outcome for hit in server.log] == ["abandoned"]
        with pytest.raises(ConnectionRefusedError):
            connect(site)


class TestFaults:
    @pytest.mark.parametrize("sent", ["nothing", "head", "half"])
    def test_reset(self, site: Origin, sent: str) -> None:
        """A reset is a TCP reset, before the answer or in the middle of it."""
        site.on("/", read_answer({"body": "0123456789", "fault": "reset", "sent": sent}))
        with connect(site) as connection:
            connection.sendall(ask("/"))
            with pytest.raises(ConnectionResetError):
                read_to_end(connection)

    @pytest.mark.parametrize(
        ("sent", "ending"), [("nothing", b""), ("head", b"\r\n\r\n"), ("half", b"01234")]
    )
    def test_close_half_way(self, site: Origin, sent: str, ending: bytes) -> None:
        """A clean close comes exactly where the script says."""
        site.on("/", read_answer({"body": "0123456789", "fault": "close", "sent": sent}))
        with connect(site) as connection:
            connection.sendall(ask("/"))
            raw = read_to_end(connection)
        assert raw.endswith(ending)
        assert bool(raw) is (sent != "nothing")

    def test_stall(self, site: Origin, server: ScriptedServer) -> None:
        """A stall sends its part and then nothing until the client goes away."""
        site.on("/", Answer("0123456789", fault="stall", sent="half"))
        with connect(site) as connection:
            connection.sendall(ask("/"))
            assert connection.recv(4096).endswith(b"01234")
            connection.settimeout(0.05)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        wait_for_departures(server, 1)
        assert server.log.hits[0].outcome == "abandoned"

    def test_a_lie_about_the_length_is_sent_as_it_stands(self, site: Origin) -> None:
        """Content-Length says what the script says, the body stays what it is."""
        site.on("/", Answer("short", content_length=500))
        with connect(site) as connection:
            connection.sendall(ask("/"))
            raw = read_to_end(connection)
        assert b"Content-Length: 500\r\n" in raw
        assert raw.endswith(b"\r\n\r\nshort")

    def test_garbage_is_sent_raw(self, site: Origin) -> None:
        """Raw bytes replace the whole answer."""
        site.on("/", Answer(raw=b"\x00\xffnot http"))
        assert fetch_raw(site, "/") == b"\x00\xffnot http"

    def test_a_delay_and_a_trickle_take_their_time(
        self, site: Origin, server: ScriptedServer
    ) -> None:
        """The answer departs no earlier than its delay and its trickle allow."""
        site.on("/", Answer("0123456789", delay_s=0.03, trickle_s=0.05))
        assert fetch(site, "/")[2] == b"0123456789"
        hit = server.log.hits[0]
        assert hit.departed_at is not None
        assert hit.departed_at - hit.arrived_at >= 0.08


def wait_for_departures(server: ScriptedServer, count: int) -> None:
    """Wait until the server has noticed the end of `count` requests."""
    ended = threading.Event()
    for _ in range(1000):
        if sum(hit.departed_at is not None for hit in server.log) >= count:
            return
        ended.wait(0.005)
    raise AssertionError("the requests did not end")


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
