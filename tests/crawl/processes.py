"""Crawls in processes of their own, to be killed, interrupted and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from scrapy_frontier.testing import Answer, Origin, page, redirect

if TYPE_CHECKING:
    from crawls import Lab

PATIENCE_S = 60.0
"""How long a process may take to end by itself."""

SPIDER = '''
import asyncio
import scrapy


class Follower(scrapy.Spider):
    """Follows every link of every page, with pauses in between."""

    name = "follower"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [seed]

    async def parse(self, response):
        for request in response.follow_all(css="a"):
            yield request
            await asyncio.sleep(0.001)
        yield {"url": response.url}
'''


class CrawlProcess:
    """`scrapy runspider` on one store, from `seed` on. Its output is in `log`."""

    def __init__(
        self,
        place: Lab | Path,
        seed: str,
        settings: dict[str, Any] | None = None,
        spider: str = SPIDER,
    ) -> None:
        """`place` is a lab, or a folder in which the store is made."""
        is_folder = isinstance(place, Path)
        folder = self.folder = place if is_folder else place.folder
        store = f"sqlite:///{folder / 'store.db'}" if is_folder else place.store_url
        self.log_path = folder / f"crawl-{len(list(folder.glob('crawl-*.log')))}.log"
        script = folder / "spider.py"
        script.write_text(spider)
        options = {
            "ADDONS": '{"scrapy_frontier.Addon": 500}',
            "FRONTIER_STORE": store,
            "FRONTIER_RUN": "test",
            "TELNETCONSOLE_ENABLED": False,
            "CONCURRENT_ITEMS": 8,
            "FRONTIER_MAX_INTERVAL": 0.05,
            "FRONTIER_RETRY_DELAY": 0.2,
            **(settings or {}),
        }
        command = [sys.executable, "-m", "scrapy", "runspider", str(script)]
        command += ["-a", f"seed={seed}"]
        for name, value in options.items():
            if value is not None:
                command += ["-s", f"{name}={value}"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    @property
    def log(self) -> str:
        """What the process has written so far."""
        return self.log_path.read_text("utf-8", "replace")

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def wait(self, patience_s: float = PATIENCE_S) -> str:
        """Wait for its own end; what it wrote."""
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the crawl did not end:\n{self.log[-4000:]}") from None
        return self.log

    def wait_for_text(self, text: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until it has written this."""
        deadline = time.monotonic() + patience_s
        while text not in self.log:
            assert self.process.poll() is None, self.log[-4000:]
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.log[-4000:]}"
            time.sleep(0.01)

    def __enter__(self) -> CrawlProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()


def wait_for_hits(lab: Lab, process: CrawlProcess, count: int) -> None:
    """Wait until the server has seen so many requests, or the process has ended."""
    while len(lab.server.log) < count and process.process.poll() is None:
        time.sleep(0.002)


def make_web(origin: Origin, count: int, delay_s: float = 0.0) -> set[str]:
    """Script a web in which every page is reachable from `/p0`; its paths.

    Some pages redirect to another one, and some fail once before they answer.
    """
    paths = set()
    for number in range(count):
        targets = {2 * number + 1, 2 * number + 2, number * 7 % count, 0}
        links = [f"/p{target}" for target in sorted(targets) if target < count]
        if number % 10 == 3:
            links.append(f"/r{number}")
            origin.on(f"/r{number}", redirect(f"/p{(number + 1) % count}"))
            paths.add(f"/r{number}")
        body = page(f"Page {number}", links)
        answer = Answer(body.body, delay_s=delay_s)
        origin.on(f"/p{number}", [Answer(status=503), answer] if number % 20 == 7 else answer)
        paths.add(f"/p{number}")
    return paths
