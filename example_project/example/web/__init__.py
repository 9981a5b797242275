"""A little web of eleven origins on loopback, for crawls that need no internet.

Each module builds one site (`robots.py` three small ones) out of plain strings. Nothing is random
and nothing depends on the date, so every crawl of it can be compared with the one before.
`python -m example.web` serves it until Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from example.web import broken, calendar, docs, giant, market, moved, news, robots, shop
from scrapy_frontier.testing import Origin, ScriptedServer

SITES: Mapping[str, Callable[[Origin, Mapping[str, str]], None]] = {
    "docs": docs.build,
    "shop": shop.build,
    "news": news.build,
    "giant": giant.build,
    "private": robots.build_private,
    "silent": robots.build_silent,
    "slow": robots.build_slow,
    "moved": moved.build,
    "broken": broken.build,
    "calendar": calendar.build,
    "market": market.build,
}
"""The sites in the order of their ports. Each builder gets its origin and all addresses."""


def addresses(first_port: int) -> dict[str, str]:
    """The URL of each site of a web that serves from `first_port` on."""
    return {name: f"http://127.0.0.1:{first_port + n}" for n, name in enumerate(SITES)}


def open_web(first_port: int = 0, log_path: Path | None = None) -> ScriptedServer:
    """Bind every site to a port of 127.0.0.1: `first_port` and those that follow, or for 0 any.

    The server is ready to be started. Raises OSError where a port is taken.
    """
    server = ScriptedServer(log_path)
    try:
        for number, name in enumerate(SITES):
            server.origin(name, port=first_port + number if first_port else 0)
    except OSError:
        server.stop()
        raise
    urls = {name: origin.url for name, origin in server.origins.items()}
    for name, build in SITES.items():
        build(server.origins[name], urls)
    return server
