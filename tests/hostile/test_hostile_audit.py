"""The audit that every crawl here has to pass finds what it is for."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from .cases import CASES
from .lab import HostileLab, audit
from .plans import SETTINGS, Seen


def ask(url: str) -> None:
    """Ask for something that is in no ledger."""
    with pytest.raises(HTTPError):
        urlopen(url)


async def test_an_unbooked_request_is_found(lab: HostileLab) -> None:
    """A request that the ledger does not hold fails the audit, and so does one too many of those it holds."""
    result, _ = await lab.hold(CASES["chain"])
    audit(result, lab.web, SETTINGS)
    ask(lab.web.b / "elsewhere")
    with pytest.raises(AssertionError, match=r"only asked: .*elsewhere"):
        audit(result, lab.web, SETTINGS)


async def test_a_trespass_is_found(lab: HostileLab) -> None:
    """A request for what is forbidden fails the audit, though it is booked."""
    result, _ = await lab.hold(CASES["chain"])
    lab.web.forbid(lab.web.c.url)
    with pytest.raises(AssertionError, match="/3"):
        audit(result, lab.web, SETTINGS)


async def test_bad_manners_are_found(lab: HostileLab) -> None:
    """An interval that is not kept fails the audit."""
    result, _ = await lab.hold(CASES["FC24"])
    with pytest.raises(AssertionError, match="s between two"):
        audit(result, lab.web, {**SETTINGS, "DOWNLOAD_DELAY": 5})


def test_a_miss_is_named(lab: HostileLab) -> None:
    """A plan that nothing came of says what is missing."""
    plan = CASES["FC17.b"].stage(lab.web)
    asked, delivered, failed = plan.misses(Seen(lab.web))
    assert asked.startswith("asked {}")
    assert delivered.startswith("delivered []")
    assert failed.startswith("failed {}")
