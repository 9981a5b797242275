"""Three small hosts that have something to say to robots."""

from __future__ import annotations

from collections.abc import Mapping

from example.web.pages import html, listing
from scrapy_frontier.testing import Origin, text

PRIVATE_ROBOTS = """User-agent: *
Disallow: /house/
Allow: /house/open-day.html
Disallow: /*.pdf$
"""

SLOW_ROBOTS = """User-agent: *
Crawl-delay: 1
"""

FORBIDDEN = frozenset({"/house/kitchen.html", "/house/library.html", "/plan.pdf"})
"""The paths of the private garden that its robots.txt closes to everyone."""


def build_private(site: Origin, web: Mapping[str, str]) -> None:
    """A garden whose house is closed to robots, but for one page, and so are its PDF files."""
    site.on("/robots.txt", text(PRIVATE_ROBOTS))
    paths = ["/lawn.html", "/pond.html", "/house/open-day.html", *sorted(FORBIDDEN)]
    _add_pages(site, "A private garden", paths)


def build_silent(site: Origin, web: Mapping[str, str]) -> None:
    """A gatehouse whose robots.txt always fails: who knows what is allowed (RFC 9309, 2.3.1.4)?"""
    site.on("/robots.txt", text("The gatekeeper is asleep.\n", status=503))
    _add_pages(site, "A silent gatehouse", [f"/room-{n}.html" for n in range(1, 6)])


def build_slow(site: Origin, web: Mapping[str, str]) -> None:
    """A mill that asks for a second between two visits."""
    site.on("/robots.txt", text(SLOW_ROBOTS))
    _add_pages(site, "A slow mill", [f"/wheel-{n}.html" for n in range(1, 6)])


def _add_pages(site: Origin, title: str, paths: list[str]) -> None:
    site.on("/", html(title, listing((path, path) for path in paths)))
    for path in paths:
        site.on(path, html(f"{title}: {path}", listing([("/", "Entrance")])))
