"""The cases of our own, each crawl of them audited (`lab.audit`)."""

from __future__ import annotations

import pytest

from .cases import GROUPS, own
from .lab import HostileLab
from .plans import Case


@pytest.mark.parametrize("case", own(GROUPS["robots.txt"]), ids=str)
async def test_robots(lab: HostileLab, case: Case) -> None:
    """Whatever a server answers for robots.txt, nothing is fetched that it forbids."""
    await lab.hold(case)


@pytest.mark.parametrize("case", own(GROUPS["Redirects"]), ids=str)
async def test_redirects(lab: HostileLab, case: Case) -> None:
    """Each hop is admitted for itself, and every chain has an end that somebody is told of."""
    await lab.hold(case)


@pytest.mark.parametrize("case", own(GROUPS["`Location`"]), ids=str)
async def test_locations(lab: HostileLab, case: Case) -> None:
    """`Location` leads where a browser would go, or is refused by name."""
    await lab.hold(case)


@pytest.mark.parametrize("case", own(GROUPS["Meta refresh"]), ids=str)
async def test_meta_refresh(lab: HostileLab, case: Case) -> None:
    """A refresh is a redirect where it leads to another page that may be fetched."""
    await lab.hold(case)


@pytest.mark.parametrize("case", own(GROUPS["Credentials"]), ids=str)
async def test_credentials(lab: HostileLab, case: Case) -> None:
    """What is meant for one origin is not shown to another."""
    await lab.hold(case)
