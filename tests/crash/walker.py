"""The spider of the crash tests: follows every link, and writes down what was delivered to it."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any
from zlib import crc32

import scrapy

from .sites import RAISE


class Walker(scrapy.Spider):
    """`notes`: a file with a line for each delivery, written before the callback does anything else."""

    name = "walker"

    def __init__(self, seed: str, hosts: str, notes: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.allowed_domains = hosts.split(",")
        self.seed = seed
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    async def start(self) -> Any:
        """One page."""
        yield scrapy.Request(self.seed, errback=self.failed)

    async def parse(self, response: Any) -> Any:
        """Follow, with pauses for other pages in between."""
        self.note("got", response.url)
        dice = crc32(response.url.partition("://")[2].partition("/")[2].encode())
        if dice % 7 == 0:
            await self.fetch(response)
        for number, link in enumerate(response.css("a::attr(href)").getall()):
            delay_s = (dice + number) % 11 / 30
            meta = {"frontier_delay": delay_s} if delay_s < 0.1 and delay_s else {}
            yield response.follow(link, self.parse, errback=self.failed, meta=meta)
            if number % 3 == 0:
                await asyncio.sleep(0.002)
        if RAISE in response.text:
            raise RuntimeError(RAISE)
        yield {"url": response.url}

    async def fetch(self, response: Any) -> None:
        """Ask for something past the scheduler."""
        request = scrapy.Request(response.urljoin("/direct"))
        try:
            await self.crawler.engine.download_async(request)
        except Exception as error:
            self.logger.info("%s", error)

    def failed(self, failure: Any) -> None:
        """Note what brought no page."""
        self.note("failed", failure.request.url)

    def note(self, word: str, url: str) -> None:
        """One line, in one write: it stands even if the process is killed at once."""
        os.write(self._notes, f"{time.monotonic()} {os.getpid()} {word} {url}\n".encode())
