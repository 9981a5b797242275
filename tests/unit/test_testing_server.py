"""The scripted server answers as its script says, fails as it says, and its log tells the truth."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Iterator

import pytest
from plain_client import ask, connect, fetch, fetch_raw, read_to_end, wait_for_departures

from scrapy_frontier.testing import (
    Answer,
    Origin,
    Request,
    ScriptedServer,
    page,
    redirect,
)
from scrapy_frontier.testing.script import read_answer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def site(server: ScriptedServer) -> Origin:
    return server.origin("site")


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
