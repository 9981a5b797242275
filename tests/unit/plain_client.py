"""A client that shows what comes over the wire, byte for byte."""

from __future__ import annotations

import http.client
import socket
import threading

from scrapy_frontier.testing import Origin, ScriptedServer


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


def wait_for_departures(server: ScriptedServer, count: int) -> None:
    """Wait until the server has noticed the end of `count` requests."""
    ended = threading.Event()
    for _ in range(1000):
        if sum(hit.departed_at is not None for hit in server.log) >= count:
            return
        ended.wait(0.005)
    raise AssertionError("the requests did not end")
