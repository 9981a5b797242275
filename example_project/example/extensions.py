"""Starts the little web when a crawl starts, so that one command is all it takes."""

from __future__ import annotations

from pathlib import Path

from scrapy import signals
from scrapy.crawler import Crawler

from example.web import addresses, open_web
from scrapy_frontier.testing import ScriptedServer


class LocalWeb:
    """Serves the example web for as long as a crawl runs; `urls` has the address of each site.

    Spiders reach it as `self.crawler.get_extension(LocalWeb)`.
    """

    def __init__(self, first_port: int, log_path: Path | None, *, is_served_here: bool) -> None:
        self.server: ScriptedServer | None = None
        if is_served_here:
            self.server = self._open(first_port, log_path)
            self.urls = {name: origin.url for name, origin in self.server.origins.items()}
        else:
            self.urls = addresses(first_port)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LocalWeb:
        settings = crawler.settings
        log_path = settings.get("EXAMPLE_WEB_LOG")
        web = cls(
            settings.getint("EXAMPLE_WEB_PORT"),
            Path(log_path) if log_path else None,
            is_served_here=settings.getbool("EXAMPLE_WEB_ENABLED"),
        )
        crawler.signals.connect(web.start, signals.spider_opened)
        crawler.signals.connect(web.stop, signals.engine_stopped)
        return web

    def start(self) -> None:
        if self.server:
            self.server.start()

    def stop(self) -> None:
        if self.server:
            self.server.stop()

    def _open(self, first_port: int, log_path: Path | None) -> ScriptedServer:
        try:
            return open_web(first_port, log_path)
        except OSError as exc:
            raise OSError(
                f"cannot serve the example web from port {first_port} on ({exc}): choose another "
                f"one with -s EXAMPLE_WEB_PORT=N, or, where `python -m example.web` serves it, use "
                f"-s EXAMPLE_WEB_ENABLED=False"
            ) from exc
