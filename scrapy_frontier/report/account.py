"""The parts of a coverage report, as values: what `report --format json` holds (design, section 9).

Counts of `identities` are identities, each counted once; `attempts` and `references` are counted
apart. Times are ISO 8601 in UTC, sizes bytes. A rule or outcome is the code of a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_frontier.report.duplicates import DuplicateGroup
    from scrapy_frontier.report.families import FamilyAccount
    from scrapy_frontier.report.rendering import RenderingAccount


@dataclass(frozen=True, slots=True)
class RunAccount:
    """Which run, in which state, under which policy version.

    `is_live`: whether a process works on it now; None where that cannot be told.
    """

    id: int
    name: str
    spider: str
    state: str
    started_at: str | None
    finished_at: str | None
    policy_version: str
    is_live: bool | None


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the run ended; both None while it has not said so, `interrupted` where it never will."""

    reason: str | None
    detail: Any


@dataclass(frozen=True, slots=True)
class Identities:
    """discovered = admitted + suppressed + deferred, and admitted = terminal + unresolved."""

    discovered: int
    admitted: int
    suppressed: Mapping[str, int]
    deferred: Mapping[str, int]
    terminal: Mapping[str, int]
    unresolved: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MoveCount:
    """How often the ledger has one move of the transition table: `event` led from `source` to `target`."""

    event: str
    source: str
    target: str
    count: int


@dataclass(frozen=True, slots=True)
class Attempts:
    """`retries`: returns to the queue after a failure. `open`: those without an outcome (yet)."""

    total: int
    by_outcome: Mapping[str, int]
    open: int
    retries: int
    late: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class KindAccount:
    """References of one kind; the last four add up to the total."""

    total: int
    fresh: int
    duplicates: int
    excluded: int
    rejected: int


@dataclass(frozen=True, slots=True)
class References:
    """total = fresh + duplicates + excluded + the sum of rejected.

    Fresh: the first reference to an identity. Duplicates: to one that is known. Excluded: to one
    that is known and suppressed. Rejected: without a fetch key.
    """

    total: int
    fresh: int
    duplicates: int
    excluded: int
    rejected: Mapping[str, int]
    by_kind: Mapping[str, KindAccount]


@dataclass(frozen=True, slots=True)
class Cause:
    """Identities in one state for one reason, with the URL of the first; no rule, no exception.

    `robots_txt`: how many of them are a robots.txt; the example is one only where all of them are.
    """

    state: str
    disposition: str | None
    rule: str | None
    count: int
    example: str
    robots_txt: int


@dataclass(frozen=True, slots=True)
class RejectedCause:
    """References of one kind rejected by one rule; the first spelling, and the page it stood on."""

    rule: str
    kind: str
    count: int
    example: str
    page: str | None


@dataclass(frozen=True, slots=True)
class OriginHealth:
    """What an origin may be asked for, by how it fares.

    `concurrency` in flight, `interval_s` apart; `is_held_back`: less than its limits allow. `cause`: its last trouble.
    `backed_off`, `eased`: how often it was asked for less, after trouble and because answers took longer.
    """

    concurrency: int
    interval_s: float
    is_held_back: bool
    is_closed: bool
    cause: str | None
    failing_since: str | None
    backed_off: int
    eased: int
    updated_at: str | None


@dataclass(frozen=True, slots=True)
class OriginAccount:
    """One origin: its identities by state, its attempts by status class ("2xx", "none").

    `robots_txt`: how many of the identities are a robots.txt. `health`: None where all went well from the start.
    """

    origin: str
    identities: Mapping[str, int]
    robots_txt: int
    attempts: int
    by_status: Mapping[str, int]
    bytes: int
    first_attempt_at: str | None
    last_attempt_at: str | None
    next_eligible_at: str | None
    health: OriginHealth | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one budget cut: `rule` of which part of the web (`pattern`), at which `limit`.

    `used`: what was spent when it held the first one back. `suppressed`, `deferred`: identities that it keeps out now,
    the first of them with the time. `held`: how many it has held back at any time, those let in since included.
    `rejected`: references without an identity. `failed`: attempts. `unresolved`: identities that stay in the queue,
    because it ended the run.
    """

    rule: str
    pattern: str | None
    limit: int | float | None
    used: int | float | None
    first_example: str | None
    first_at: str | None
    suppressed: int
    deferred: int
    held: int
    rejected: int
    failed: int
    unresolved: int


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the web in which the run has left something: its identities by state, and by the rule that holds them.

    `place` is written as `FRONTIER_SCOPE` takes it.
    """

    place: str
    unresolved: int
    deferred: int
    by_rule: Mapping[str, int]
    example: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What the run has left. `looked_at`: how many of its unfinished identities the regions are made from.

    `scope`: a `FRONTIER_SCOPE` for a run that fetches them and nothing else; None where nothing is left to fetch.
    """

    identities: int
    looked_at: int
    regions: tuple[Region, ...]
    scope: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Redirects:
    """Hops that were followed, those of them that lead to another origin, and those refused."""

    hops: int
    cross_origin: int
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RobotsAccount:
    """What robots.txt does to the URLs of one origin in this run, and the record that is in the
    store now, for all runs.

    `suppressed` are identities by the rules about robots, whatever the rule; `excluded` those of them
    that robots.txt itself forbids. `waiting` are those that stay in the queue, or are held back, for
    want of a robots.txt. `waived`: requests that a waiver let through, None where only their number
    in the whole run is known (`waivers`). `rule` keeps most of these URLs, `example` is the first.

    `state`, `reason`, `status` and `fetched_at` are those of what is in force, None without a record
    or in a run that does not obey. `failures` counts the last fetches that failed in a row, `trouble`
    is the reason of the last one. `is_closed`: the run that tried last has stopped trying.
    """

    origin: str
    rule: str | None
    suppressed: int
    example: str | None
    by_rule: Mapping[str, int]
    excluded: int
    waiting: int
    waived: int | None
    state: str | None
    reason: str | None
    status: int | None
    fetched_at: str | None
    expires_at: str | None
    digest: str | None
    is_standing_in: bool
    failures: int
    trouble: str | None
    unreachable_since: str | None
    next_try_at: str | None
    is_closed: bool


@dataclass(frozen=True, slots=True)
class RobotsTxtAccount:
    """The robots.txt that were asked for, to be read as rules, and the hops to them. Each number is
    part of the one of that name elsewhere in the account: `identities` and how they stand, their
    `attempts`, the `references` of that kind, the `hops` of redirects.
    """

    identities: int
    attempts: int
    references: int
    hops: int
    terminal: Mapping[str, int]
    unresolved: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An identity that came to a bad end for good, and how long its history is.

    `rule`: the retry rule that decided last, `why_not`: why it is not tried again (`exhausted`, say).
    """

    url: str
    reason: str
    attempts: int
    transitions: int
    last_at: str | None
    is_robots_txt: bool
    disposition: str = "failed"
    rule: str | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """A count with its first example."""

    name: str
    count: int
    example: str | None


@dataclass(frozen=True, slots=True)
class SessionAccount:
    """One opening of the run by a process; `ended_at` is None where it did not say goodbye."""

    id: int
    worker: str
    policy_version: str
    started_at: str | None
    ended_at: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The account of one run. `equations` are all that were checked, each with its numbers."""

    schema_version: int
    run: RunAccount
    stop: Stop
    identities: Identities
    moves: tuple[MoveCount, ...]
    attempts: Attempts
    references: References
    reconciled: bool
    failed_equations: tuple[str, ...]
    equations: tuple[str, ...]
    causes: tuple[Cause, ...]
    rejected: tuple[RejectedCause, ...]
    origins: tuple[OriginAccount, ...]
    budgets: tuple[Budget, ...]
    families: tuple[FamilyAccount, ...]
    duplicates: tuple[DuplicateGroup, ...]
    rendering: RenderingAccount
    unfinished: Unfinished
    redirects: Redirects
    robots: tuple[RobotsAccount, ...]
    robots_txt: RobotsTxtAccount
    deadletters: tuple[DeadLetter, ...]
    parameter_rules: tuple[Counted, ...]
    waivers: tuple[Counted, ...]
    unserialisable: tuple[Counted, ...]
    sessions: tuple[SessionAccount, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, in the order in which it is written."""
        return asdict(self)
