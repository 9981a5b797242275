"""Connections that are kept for the next request: when they may be, and what it means that one is gone by then."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from crawls import Lab
from test_crawl_faults import ask

from scrapy_frontier.testing.raw import RawPort

ONE = {"CONCURRENT_REQUESTS": 1, "RETRY_TIMES": 1}


def head(connection: socket.socket) -> bytes:
    """One request, or nothing where the client has gone."""
    read = b""
    while b"\r\n\r\n" not in read:
        data = connection.recv(65536)
        if not data:
            return b""
        read += data
    return read


class Server:
    """Answers by one version of HTTP, and may go away instead of answering a second time on one connection."""

    def __init__(self, version: str, *, goes_away: bool = False, headers: str = "") -> None:
        self.version = version
        self.goes_away = goes_away
        self.headers = headers
        self.requests_of: list[int] = []

    def __call__(self, connection: socket.socket) -> None:
        self.requests_of.append(0)
        number = len(self.requests_of) - 1
        while head(connection):
            self.requests_of[number] += 1
            if self.goes_away and self.requests_of[number] == 2:
                return
            answer = f"HTTP/{self.version} 200 OK\r\nContent-Length: 2\r\n{self.headers}\r\nok"
            connection.sendall(answer.encode())


async def crawl(lab: Lab, server: Server, **how: Any) -> tuple[Any, list[str]]:
    with RawPort(server) as port:
        urls = [f"http://127.0.0.1:{port.number}/{number}" for number in range(4)]
        result = await ask(lab, *urls, settings=ONE, **how)
    return result.assert_finished(), urls


async def test_a_connection_that_was_kept_too_long_is_no_fault_of_the_url(lab: Lab) -> None:
    """It may have been closed before the request came: no `RETRY_TIMES` is taken, and the origin is not in trouble."""
    server = Server("1.1", goes_away=True)
    result, _ = await crawl(lab, server)
    assert result.ends() == {"succeeded": 4}
    assert sum(server.requests_of) > 4
    assert result.stats["frontier/health/backed_off"] == 0
    reasons = result.rows(
        "SELECT DISTINCT r.code FROM transition AS t JOIN reason AS r USING (reason_id)"
        " WHERE r.code LIKE 'retry.%'"
    )
    assert reasons == [("retry.download.stale",)]


async def test_a_post_is_not_sent_again_for_it(lab: Lab) -> None:
    """Nobody knows whether the server has acted on it (RFC 9110, section 9.2.2)."""
    server = Server("1.1", goes_away=True)
    result, urls = await crawl(lab, server, method="POST")
    assert sum(server.requests_of) == 4
    ends = {result.fate(f"POST {url}").reason for url in urls}
    assert ends == {"http.200", "download.stale"}


@pytest.mark.parametrize(
    ("server", "is_kept"),
    [
        (Server("1.1"), True),
        (Server("1.0"), False),
        (Server("1.0", headers="Connection: keep-alive\r\n"), True),
        (Server("1.1", headers="Connection: close\r\n"), False),
    ],
    ids=["1.1", "1.0", "1.0 keep-alive", "1.1 close"],
)
async def test_a_connection_is_kept_where_the_server_keeps_it(
    lab: Lab, server: Server, is_kept: bool
) -> None:
    """HTTP/1.1 keeps it unless it says otherwise, HTTP/1.0 closes it unless it does (RFC 9112, section 9.3)."""
    result, _ = await crawl(lab, server)
    assert result.ends() == {"succeeded": 4}
    assert max(server.requests_of) == (4 if is_kept else 1)
