"""The moved lane: every kind of redirect, the honest ones and the others.

Whatever `ENDS_WELL` names ends on `/here.html`; `LEADS_AWAY` leads to other sites of this web.
"""

from __future__ import annotations

from collections.abc import Mapping

from example.web.pages import html, listing
from scrapy_frontier.testing import Answer, Origin, redirect

CHAIN_LENGTH = 5
ENDLESS_LENGTH = 30
"""More hops than any crawler should follow; Scrapy gives up after 20."""

ENDS_WELL = ("/301", "/302", "/303", "/307", "/308", "/refresh", "/chain/1", "/endless/1")
LEADS_AWAY = ("/to-docs", "/to-forbidden", "/to-silent")


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the lane on `site`."""
    entrances = {
        "/301": redirect("/here.html", 301),
        "/302": redirect("here.html", 302),
        "/303": redirect(site / "here.html", 303),
        "/307": redirect("/./x/../here.html", 307),
        "/308": redirect("/here.html#part", 308),
        "/refresh": _meta_refresh("/here.html"),
        "/chain/1": redirect("/chain/2"),
        "/endless/1": redirect("/endless/2"),
        "/loop/a": redirect("/loop/b"),
        "/loop/self": redirect("/loop/self"),
        "/to-docs": redirect(web["docs"] + "/", 301),
        "/to-forbidden": redirect(web["private"] + "/house/kitchen.html"),
        "/to-silent": redirect(web["silent"] + "/room-1.html"),
        "/to-elsewhere": redirect("https://www.example.org/"),
        "/to-mail": redirect("mailto:miller@example.org"),
        "/to-nothing": redirect("/nothing.html"),
        "/without-location": Answer("Moved, but where to?", status=302),
    }
    further_on = {"/loop/b": redirect("/loop/a")}
    further_on |= _chain("/chain", CHAIN_LENGTH, "/here.html")
    further_on |= _chain("/endless", ENDLESS_LENGTH, "/here.html")
    site.on("/", html("The moved lane", listing((path, path) for path in entrances)))
    site.on("/here.html", html("Here we are", listing([("/", "Back")])))
    for path, answer in {**further_on, **entrances}.items():
        site.on(path, answer)


def _chain(path: str, length: int, end: str) -> dict[str, Answer]:
    hops = {f"{path}/{n}": redirect(f"{path}/{n + 1}") for n in range(1, length)}
    return {**hops, f"{path}/{length}": redirect(end)}


def _meta_refresh(target: str) -> Answer:
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
    return html("One moment", "<p>You will be taken along.</p>", head=refresh)
