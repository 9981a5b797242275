"""Every rule of the table is reached by what a socket does, and decides what it says."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Lab
from scrapy import Request, Spider

from scrapy_frontier.testing import Answer
from scrapy_frontier.testing.certificates import Authority
from scrapy_frontier.testing.raw import RawPort, cut_after_hello, reset_after_hello, says

VERIFYING = {"DOWNLOAD_VERIFY_CERTIFICATES": True}


class Asker(Spider):
    """Asks for each of `requests`, and tells what its errback gets."""

    name = "asker"

    def __init__(self, requests: list[Request], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.requests = requests

    async def start(self) -> Any:
        for request in self.requests:
            yield request.replace(callback=self.parse, errback=self.told)

    def parse(self, response: Any) -> Any:
        yield {"status": response.status}

    def told(self, failure: Any) -> Any:
        yield {"error": type(failure.value).__name__}


async def ask(lab: Lab, *urls: str, settings: dict[str, Any] | None = None, **how: Any) -> Crawl:
    """Ask for URLs with one retry each."""
    requests = [Request(url, **how) for url in urls]
    return await lab.crawl(Asker, {"RETRY_TIMES": 1, **(settings or {})}, requests=requests)


def rule_of(result: Crawl, url: str) -> str:
    """The rule by which the last attempt of a URL was judged."""
    (row,) = result.rows(
        "SELECT t.detail FROM current AS c JOIN identity AS i USING (identity_id)"
        f" JOIN transition AS t ON t.seq = c.last_seq WHERE i.url = '{url}'"
    )
    return str(json.loads(row[0])["rule"])


STATUSES = [
    (404, "http.gone", "gone", 1),
    (403, "http.4xx", "http_error", 1),
    (408, "http.408", "http_error", 2),
    (425, "http.425", "http_error", 2),
    (429, "http.429", "http_error", 3),
    (500, "http.500", "http_error", 2),
    (501, "http.5xx", "http_error", 1),
    (502, "http.502", "http_error", 2),
    (503, "http.503", "http_error", 3),
    (504, "http.504", "http_error", 2),
    (507, "http.507", "http_error", 2),
    (522, "http.52x", "http_error", 2),
    (529, "http.529", "http_error", 3),
]


@pytest.mark.parametrize(("status", "rule", "end", "attempts"), STATUSES)
async def test_statuses(lab: Lab, status: int, rule: str, end: str, attempts: int) -> None:
    url = lab.main / "page"
    lab.main.on("/page", Answer("", status=status))
    result = await ask(lab, url)
    fate = result.assert_exhausted().fate(url)
    assert (fate.end, fate.reason, fate.attempts) == (end, f"http.{status}", attempts)
    assert rule_of(result, url) == rule
    assert result.stats.get("retry/count", 0) == attempts - 1
    assert result.stats.get("retry/max_reached", 0) == (attempts > 1)


Faulty = Callable[[Lab, Path], AbstractContextManager[str]]
"""Opens something faulty, and gives its URL."""


def scripted(answer: Answer) -> Faulty:
    def open_it(lab: Lab, folder: Path) -> AbstractContextManager[str]:
        lab.main.on("/page", answer)
        return nullcontext(lab.main / "page")

    return open_it


def raw(talk: Any, scheme: str = "http") -> Faulty:
    @contextmanager
    def open_it(lab: Lab, folder: Path) -> Iterator[str]:
        with RawPort(talk) as port:
            yield f"{scheme}://127.0.0.1:{port.number}/page"

    return open_it


def at(url: str) -> Faulty:
    return lambda lab, folder: nullcontext(url)


def secured(*hosts: str, **how: Any) -> Faulty:
    def open_it(lab: Lab, folder: Path) -> AbstractContextManager[str]:
        origin = lab.server.origin("tls", tls=Authority(folder).context(*hosts, **how))
        origin.on("/page", Answer("secret"))
        return nullcontext(origin / "page")

    return open_it


@contextmanager
def full(lab: Lab, folder: Path) -> Iterator[str]:
    """A port whose queue is full: nobody accepts, so a connection does not come about."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        number = listener.getsockname()[1]
        waiting = []
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(("127.0.0.1", number))
        yield f"http://127.0.0.1:{number}/page"
        for one in waiting:
            one.close()


@contextmanager
def closed(lab: Lab, folder: Path) -> Iterator[str]:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.getsockname()[1]
    yield f"http://127.0.0.1:{number}/page"


FAULTS: dict[str, tuple[Faulty, dict[str, Any], int]] = {
    "download.refused": (closed, {}, 2),
    "download.connect_timeout": (full, {"DOWNLOAD_TIMEOUT": 0.3}, 2),
    "download.timeout": (scripted(Answer(fault="stall")), {"DOWNLOAD_TIMEOUT": 0.3}, 2),
    "download.reset": (scripted(Answer(fault="reset")), {}, 2),
    "download.truncated": (scripted(Answer("hello", content_length=9)), {}, 2),
    "download.malformed": (raw(says(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")), {}, 2),
    "download.too_large": (scripted(Answer("x" * 5000)), {"DOWNLOAD_MAXSIZE": 1000}, 1),
    "download.unsupported": (
        at("https://127.0.0.1:1/page"),
        {"DOWNLOAD_HANDLERS": {"https": None}},
        1,
    ),
    "download.tls.expired": (secured(days=(-20, -10)), VERIFYING, 1),
    "download.tls.untrusted": (secured(is_self_signed=True), VERIFYING, 1),
    "download.tls.wrong_host": (secured("other.example"), VERIFYING, 1),
    "download.tls.cut": (raw(cut_after_hello, "https"), {}, 2),
    "download.tls.protocol": (raw(says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "https"), {}, 1),
    "download.dns": (at("http://no-such-host.invalid/page"), {}, 2),
}


@pytest.mark.parametrize("rule", FAULTS)
async def test_faults(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """The errback runs for what is given up; the ledger has every attempt, and by which rule it was judged."""
    open_it, settings, attempts = FAULTS[rule]
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with open_it(lab, tmp_path) as url:
        result = await ask(lab, url, settings=settings)
    fate = result.assert_finished().fate(url)
    assert (fate.end, fate.reason, fate.attempts) == ("failed", rule, attempts)
    assert rule_of(result, url) == rule
    assert "error" in result.items[0]


async def test_a_good_certificate_is_taken(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the bad ones above fail for what is bad about them."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with secured()(lab, tmp_path) as url:
        result = await ask(lab, url, settings=VERIFYING)
    assert result.assert_exhausted().fate(url).end == "succeeded"


async def test_a_reset_in_the_handshake(lab: Lab) -> None:
    with RawPort(reset_after_hello) as port:
        url = f"https://127.0.0.1:{port.number}/"
        result = await ask(lab, url)
        assert port.connections == 2
    assert result.fate(url).reason in {"download.tls.cut", "download.reset"}


async def test_a_proxy_that_opens_no_way(lab: Lab) -> None:
    with RawPort(says(b"HTTP/1.1 403 Forbidden\r\n\r\n")) as port:
        proxy = f"http://127.0.0.1:{port.number}"
        result = await ask(lab, "https://shop.invalid/", meta={"proxy": proxy})
    fate = result.assert_finished().fate("https://shop.invalid/")
    assert (fate.end, fate.reason, fate.attempts) == ("failed", "download.tunnel", 2)
    assert rule_of(result, "https://shop.invalid/") == "download.tunnel"


async def test_a_body_that_cannot_be_decoded(lab: Lab) -> None:
    """The same bytes would come again: it is given up at once, and the errback is told."""
    body = b"\x1f\x8b" + b"rubbish" * 20
    lab.main.on("/page", Answer(body, headers=[("Content-Encoding", "gzip")]))
    url = lab.main / "page"
    result = await ask(lab, url)
    fate = result.assert_exhausted().fate(url)
    assert (fate.end, fate.reason, fate.attempts) == ("failed", "download.decoding", 1)
    assert "error" in result.items[0]


@pytest.mark.parametrize(
    "settings",
    [{}, {"TWISTED_DNS_RESOLVER": "scrapy.resolver.CachingHostnameResolver"}],
)
async def test_FC42_an_address_needs_no_look_up(lab: Lab, settings: dict[str, Any]) -> None:
    """`http://[::1]:P/` is fetched, stored and resumed as it stands (RFC 3986, section 3.2.2)."""
    six = lab.server.origin("six", host="::1")
    six.on("/x", [Answer("", status=500), Answer("fine")])
    result = await ask(lab, six / "x", settings=settings)
    fate = result.assert_exhausted().fate(six / "x")
    assert (fate.end, fate.attempts) == ("succeeded", 2)
