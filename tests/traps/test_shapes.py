"""On sites that only look like traps, nothing is deferred."""

from __future__ import annotations

import pytest

from tests.traps.shapes import SHAPES, site_of
from tests.traps.walk import walk


@pytest.mark.parametrize("name", SHAPES)
def test_every_page_of_a_finite_site_is_fetched(name: str) -> None:
    pages = SHAPES[name]
    found = walk(site_of(pages))
    assert found.deferred == {}
    linked = {target for target in found.fetched if target in pages}
    assert len(linked) >= 0.95 * len(pages)
