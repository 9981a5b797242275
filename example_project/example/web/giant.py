"""The land register: five thousand parcels, each page made when it is asked for.

Parcel n links to 2n and 2n + 1, so that every parcel is a few steps from the front page, and to a
few others, so that most links lead where the crawler has been or will be.
"""

from __future__ import annotations

from collections.abc import Mapping

from example.web.pages import html, link, listing, pick
from scrapy_frontier.testing import Answer, Origin, Request

PARCELS = 5000
OTHER_LINKS = 18
FORMS = ("meadow", "orchard", "pasture", "pond", "wood")


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the register on `site`."""
    site.on("/", html("Land register", f"<p>It begins with {link('/parcels/1', 'parcel 1')}.</p>"))
    site.on("/parcels/*", parcel)


def parcel(request: Request) -> Answer:
    digits = request.path.removeprefix("/parcels/")
    number = int(digits) if digits.isdecimal() else 0
    if not (1 <= number <= PARCELS and digits == str(number)):
        return html("No such parcel", f"<p>{link('/', 'The register')}</p>", status=404)
    parts = [n for n in (2 * number, 2 * number + 1) if n <= PARCELS]
    others = [pick(range(1, PARCELS + 1), number, turn) for turn in range(OTHER_LINKS)]
    size = pick(range(1, 100), number)
    return html(
        f"Parcel {number}",
        f"<p>A {pick(FORMS, number)} of {size} acres.</p>"
        + listing((f"/parcels/{n}", f"parcel {n}") for n in parts + others),
    )
