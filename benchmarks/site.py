"""The loopback site of the benchmarks: a process of its own that answers from bytes made
beforehand.

A whole page is one `transport.write` of ready bytes, found by its path in a dictionary, so that the
site costs a small part of what the crawler costs even where both share two cores. Everything
follows from the arguments and a seed: two processes started alike serve the same bytes. Needs
Linux: other systems do not route 127.0.x.y without set-up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

PORTS = 2
CLOCK = b"/clock"
"""Path prefix whose answer is the arrival time of its request, in nanoseconds since the epoch."""


@dataclass(frozen=True)
class Plan:
    """What a site serves.

    `web`: `pages` pages spread evenly over `origins`; each links to two pages of a binary tree
    rooted in page 0, so that all are reachable, and to others drawn from the seed. `hosts`: one
    origin for each entry of `sizes`, with that many pages that link to pages of their own origin
    only.
    """

    kind: str = "web"
    pages: int = 2000
    origins: int = 500
    links: int = 20
    sizes: tuple[int, ...] = ()
    latency_s: float = 0.0
    seed: int = 1

    @property
    def listeners(self) -> int:
        """How many origins the plan has."""
        return len(self.sizes) if self.kind == "hosts" else self.origins


def _render(page: int, urls: Sequence[str]) -> bytes:
    items = "\n".join(
        f'<li><a href="{url}">entry {n} of {page}</a></li>' for n, url in enumerate(urls)
    )
    body = (
        f"<!doctype html><html><head><title>Page {page}</title></head>"
        f"<body><h1>Page {page}</h1><ul>\n{items}\n</ul></body></html>\n"
    ).encode()
    return answer(body)


def answer(body: bytes) -> bytes:
    """A whole HTTP/1.1 response around an HTML body."""
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def web_pages(plan: Plan, bases: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """(path, response) of each page of a `web`; page n lives on origin n modulo their number."""
    draw = random.Random(plan.seed)
    count = len(bases)
    last = plan.pages - 1
    width = min(2, plan.links)
    for page in range(plan.pages):
        first = width * page + 1
        tree = list(range(first, min(first + width, plan.pages)))
        # The root is what a crawl starts from: a link to it would ask for it twice.
        others = [draw.randint(1, last) for _ in range(plan.links - len(tree))] if last else []
        targets = tree + others
        draw.shuffle(targets)
        yield f"/page/{page}", _render(page, [f"{bases[t % count]}/page/{t}" for t in targets])


def host_pages(plan: Plan) -> Iterator[tuple[str, bytes]]:
    """(path, response) of the pages of `hosts`: page n of each links to the next `links` pages of a
    tree of that width.
    """
    for size in sorted(set(plan.sizes)):
        for page in range(size):
            first = page * plan.links + 1
            children = range(first, min(first + plan.links, size))
            urls = [f"/of/{size}/page/{child}" for child in children]
            yield f"/of/{size}/page/{page}", _render(page, urls)


class Answers(asyncio.Protocol):
    """One connection: each request gets the bytes of its path, after the plan's latency."""

    def __init__(
        self, pages: dict[bytes, bytes], latency_s: float, counts: dict[bytes, int]
    ) -> None:
        self._pages = pages
        self._latency_s = latency_s
        self._counts = counts
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
            self._answer(head[4 : head.index(b" ", 4)])

    def _answer(self, path: bytes) -> None:
        self._counts[path] = self._counts.get(path, 0) + 1
        ready = (
            answer(str(time.time_ns()).encode())
            if path.startswith(CLOCK)
            else self._pages.get(path)
        )
        if ready is None:
            ready = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        if self._latency_s:
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, ready)
        else:
            self._transport.write(ready)


def _listening_sockets(count: int) -> list[socket.socket]:
    """One listening socket for each origin: loopback addresses in turn, `PORTS` ports on each."""
    ports: list[int] = []
    sockets = []
    for number in range(count):
        host = number // PORTS
        address = f"127.0.{1 + host // 250}.{1 + host % 250}"
        port = ports[number % PORTS] if len(ports) == PORTS else 0
        listener = socket.create_server((address, port), backlog=256)
        if len(ports) < PORTS:
            ports.append(listener.getsockname()[1])
        sockets.append(listener)
    return sockets


async def serve(plan: Plan) -> None:
    """Serve until standard input ends; print the origins at the start and the counts at the end, as
    JSON lines.
    """
    sockets = _listening_sockets(plan.listeners)
    bases = ["http://{}:{}".format(*listener.getsockname()) for listener in sockets]
    made = host_pages(plan) if plan.kind == "hosts" else web_pages(plan, bases)
    pages = {path.encode(): response for path, response in made}
    counts: dict[bytes, int] = {}
    loop = asyncio.get_running_loop()
    for listener in sockets:
        await loop.create_server(lambda: Answers(pages, plan.latency_s, counts), sock=listener)
    usage_at_start = time.process_time()
    print(json.dumps(bases), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    served = {path: n for path, n in counts.items() if path in pages}
    print(
        json.dumps(
            {
                "requests": sum(counts.values()),
                "distinct": len(served),
                "cpu_s": time.process_time() - usage_at_start,
                "max_rss_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            }
        ),
        flush=True,
    )


class RunningSite:
    """A site in another process. `bases` are its origins; `counts` come when it has stopped."""

    def __init__(self, plan: Plan, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.plan = plan
        self._process = process
        self.bases: list[str] = json.loads(process.stdout.readline())
        self.counts: dict[str, Any] = {}

    def stop(self) -> None:
        """Ask for the counts and end the process."""
        out, _ = self._process.communicate("")
        self.counts = json.loads(out)


@contextmanager
def running(plan: Plan) -> Iterator[RunningSite]:
    """Serve `plan` from a fresh process while the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.site", json.dumps(asdict(plan))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        text=True,
    )
    try:
        site = RunningSite(plan, process)
        yield site
        site.stop()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def main() -> None:
    """Entry of the site's process: one argument, the plan as JSON."""
    parser = argparse.ArgumentParser(description="Serve a benchmark site on loopback.")
    parser.add_argument("plan", type=json.loads, nargs="?", default={})
    fields = parser.parse_args().plan
    fields["sizes"] = tuple(fields.get("sizes", ()))
    asyncio.run(serve(Plan(**fields)))


if __name__ == "__main__":
    main()
