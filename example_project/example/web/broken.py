"""The broken bridge: what goes wrong between a crawler and a server, one path for each way."""

from __future__ import annotations

from collections.abc import Mapping

from example.web.pages import html, listing
from scrapy_frontier.testing import Answer, Origin, Route, text

FINE = html("Fine after all", listing([("/", "Back")]))
LONG = "<p>Plank after plank after plank.</p>\n" * 200

TROUBLES: Mapping[str, Route] = {
    "/always-500": html("Out of order", "", status=500),
    "/503-then-fine": [html("In a moment", "", status=503), FINE],
    "/429-then-fine": [
        Answer("Not so fast.", status=429, headers=[("Retry-After", "1")]),
        FINE,
    ],
    "/reset-then-fine": [Answer(fault="reset"), FINE],
    "/always-reset": Answer(fault="reset"),
    "/always-closed": Answer(fault="close"),
    "/truncated": Answer(LONG, fault="close", sent="half"),
    "/wrong-length": Answer(LONG, content_length=len(LONG) + 1000),
    "/garbage": Answer(raw=b"\x15\x03\x01 this is not HTTP\r\n\r\n"),
    "/slow": Answer(FINE.body, delay_s=1.5),
    "/trickle": Answer(FINE.body, trickle_s=1.5),
    "/not-found": html("Not found", "", status=404),
    "/gone": html("Gone", "", status=410),
    "/forbidden": html("Members only", "", status=403),
    "/empty": Answer(""),
    "/plain.txt": text("No links here: http://127.0.0.1/not-a-link\n"),
}
"""What each path answers, in turn where there are several answers."""


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the bridge on `site`."""
    site.on("/", html("The broken bridge", listing((path, path) for path in TROUBLES)))
    for path, route in TROUBLES.items():
        site.on(path, route)
