"""Several hosts on loopback, one of them with http and https on the same port."""

from __future__ import annotations

import asyncio
import functools
import ssl
import tempfile
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path
from socket import MSG_PEEK, socket
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from scrapy_frontier.testing import Answer, Hit, Origin, ScriptedServer, text
from scrapy_frontier.testing.connection import Connection

TWIN_HOST: Final = "127.0.0.9"
TLS_HANDSHAKE: Final = b"\x16"


class Twin(Origin):
    """The https side of an origin, on the same port."""

    def __init__(self, name: str, plain: Origin) -> None:
        self.name = name
        self.host, self.port, self.listener = plain.host, plain.port, plain.listener
        self.url = f"https://{self.host}:{self.port}"
        self.routes = {}
        self.otherwise = plain.otherwise
        self.in_flight = 0
        self._turns = {}


class Web(ScriptedServer):
    """Origins by one letter each.

    A, B and C are hosts of their own, D is A's host at another port, P and S are http and https at one port of a
    further host. Nobody listens at X.
    """

    def __init__(self) -> None:
        super().__init__()
        self.a = self.origin("A", "127.0.0.1")
        self.b = self.origin("B", "127.0.0.2")
        self.c = self.origin("C", "127.0.0.3")
        self.d = self.origin("D", "127.0.0.1")
        self.p = self.origin("P", TWIN_HOST)
        self.s = self.origins["S"] = Twin("S", self.p)
        self.x = self.origins["X"] = Origin("X", "127.0.0.1")
        self.x.listener.close()
        self._never: list[str] = []
        self._greetings: set[asyncio.Task[None]] = set()

    # What may not be asked for

    def forbid(self, *prefixes: str) -> None:
        """Nothing that begins with one of these URLs may be asked for."""
        self._never += prefixes

    def disallow(self, origin: Origin, *paths: str, more: str = "") -> None:
        """Give an origin a robots.txt that keeps everybody out of these paths."""
        origin.on("/robots.txt", robots(paths, more))
        self.forbid(*(origin.url + path for path in paths))

    @property
    def trespasses(self) -> list[str]:
        """What was asked for and may not be."""
        return [hit.url for hit in self.log if hit.url.startswith(tuple(self._never))]

    # What came, in short

    def label(self, url: str) -> str:
        """A URL with the letter of its origin in the place of scheme, host and port."""
        for name, origin in self.origins.items():
            if url == origin.url or url.startswith((f"{origin.url}/", f"{origin.url}?")):
                return name + url.removeprefix(origin.url)
        return url

    def asked(self) -> Counter[str]:
        """How often each URL was asked for, by its label; the method before it unless it was GET."""
        return Counter(self.label_of(hit) for hit in self.log)

    def label_of(self, hit: Hit) -> str:
        """The label of what was asked for. A proxy is asked for whole URLs."""
        label = self.label(hit.path if hit.path.startswith("http") else hit.url)
        return label if hit.method == "GET" else f"{hit.method} {label}"

    def anonymous(self, words: str) -> str:
        """The words with letters in the place of what differs from run to run: ports."""
        for name, origin in self.origins.items():
            words = words.replace(origin.url, name).replace(place(origin), f"host{name}")
        return words

    def hits(self, label: str) -> list[Hit]:
        """The requests for this."""
        return [hit for hit in self.log if self.label_of(hit) == label]

    # http and https at one port: the first byte tells

    async def _listen(self, origin: Origin) -> None:
        if isinstance(origin, Twin) or origin is getattr(self, "x", None):
            return
        if origin is not getattr(self, "p", None):
            await super()._listen(origin)
            return
        origin.listener.setblocking(False)
        self._greetings.add(asyncio.get_running_loop().create_task(self._accept(origin.listener)))

    async def _accept(self, listener: socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.setblocking(False)
            greeting = loop.create_task(self._greet(connection))
            self._greetings.add(greeting)
            greeting.add_done_callback(self._greetings.discard)

    async def _greet(self, connection: socket) -> None:
        loop = asyncio.get_running_loop()
        is_readable = asyncio.Event()
        loop.add_reader(connection, is_readable.set)
        try:
            await is_readable.wait()
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            loop.remove_reader(connection)
        is_secure = connection.recv(1, MSG_PEEK) == TLS_HANDSHAKE
        origin = self.s if is_secure else self.p
        await loop.connect_accepted_socket(
            lambda: Connection(origin, self.log, self._connections),
            connection,
            ssl=tls_context() if is_secure else None,
        )


def place(origin: Origin) -> str:
    """Host and port of an origin."""
    return f"{origin.host}:{origin.port}"


def robots(disallowed: Iterable[str], more: str = "") -> Answer:
    """A robots.txt that keeps everybody out of these paths; `more` is put behind."""
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in disallowed), more]
    return text("\n".join(lines) + "\n")


def secrets_of(hit: Hit) -> dict[str, Any]:
    """The headers of a request that say who somebody is, or where he comes from."""
    names = ("cookie", "authorization", "proxy-authorization", "referer")
    return {name: hit.headers[name] for name in names if name in hit.headers}


@functools.cache
def tls_context() -> ssl.SSLContext:
    """A server's TLS context, with a certificate made on the spot."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, TWIN_HOST)])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(TWIN_HOST))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context.load_cert_chain(path)
    return context
