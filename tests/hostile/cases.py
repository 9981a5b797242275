"""All cases, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from .cases_locations import CASES as LOCATIONS
from .cases_methods import CASES as METHODS
from .cases_redirects import CASES as REDIRECTS
from .cases_refresh import CASES as REFRESHES
from .cases_robots import CASES as ROBOTS
from .cases_robots_places import CASES as ROBOTS_PLACES
from .cases_secrets import CASES as SECRETS
from .plans import Case, Cases

GROUPS: Final[dict[str, Cases]] = {
    "robots.txt": Cases({**ROBOTS, **ROBOTS_PLACES}),
    "Redirects": Cases({**REDIRECTS, **METHODS}),
    "`Location`": LOCATIONS,
    "Meta refresh": REFRESHES,
    "Credentials": SECRETS,
}

CASES: Final = Cases({number: case for group in GROUPS.values() for number, case in group.items()})
assert len(CASES) == sum(map(len, GROUPS.values()))


def public(number: str) -> list[Case]:
    """The variants of a case of tests/data/cases.json."""
    return CASES.of(number)


def own(group: Cases) -> list[Case]:
    """The cases of a group that are not of tests/data/cases.json."""
    return [case for number, case in group.items() if not number.startswith("FC")]
