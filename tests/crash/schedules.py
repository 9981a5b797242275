"""What happens in a schedule: the settings of its crawls, and how each of them is ended; all from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from scrapy_frontier.failpoints import POINTS

from .sites import Site, make_site

ELSEWHERE = ("migrate.", "export.", "file.", "restore.")
"""Points that no crawl reaches: tests of their own do (`test_crash_commands`)."""

CRAWL_POINTS = tuple(name for name in POINTS if not name.startswith(ELSEWHERE))
"""Points that a crawl reaches, in a first session or a resumed one."""

OFTEN = ("artifact.", "dispatch.", "commit.", "ack.", "wire.", "artifact.", "respond.", "page.")
"""Points that a crawl passes again and again."""

OWN = 3
"""How many points the seed itself chooses, whatever the dice say."""

RANKS = {
    "create": 0,
    "open": 1,
    "robots": 2,
    "hop": 2,
    "retry": 2,
    "recover": 4,
    "checkpoint": 5,
    "close": 6,
}
"""The order in which points are reached; those that end a run come last."""

ENDS = frozenset({"close.run_committed", "close.half_reported", "close.reported", "close.closed"})
"""Points behind the end of a run: after one of them there is nothing to resume."""


@dataclass(frozen=True)
class Kill:
    """How a session is ended: at a point's n-th hit, or by a signal when the server has seen `after_hits` more requests
    and `delay_s` have passed. `signal` is KILL, TERM, or TERMTERM for two of them.
    """

    point: str = ""
    hit: int = 1
    signal: str = ""
    after_hits: int = 0
    delay_s: float = 0.0

    def __str__(self) -> str:
        if self.point:
            return f"{self.point}:{self.hit}"
        return f"{self.signal} after {self.after_hits} hits + {self.delay_s:.3f} s"


@dataclass
class Schedule:
    """One seeded schedule."""

    seed: int
    site: Site
    settings: dict[str, Any]
    kills: list[Kill]
    group_limit: int = 2000
    checkpoint_frames: int = 16_000
    obeys: bool = True
    limit: int = 1
    total_limit: int = 16
    delay_s: float = 0.0

    @property
    def is_durable(self) -> bool:
        """Whether what was acknowledged must survive a power cut."""
        return self.settings["FRONTIER_SYNCHRONOUS"] == "FULL"

    @property
    def keeps_bodies(self) -> bool:
        """Whether a response that was captured is processed without a second request."""
        return bool(self.settings["FRONTIER_EVIDENCE"] == "body")

    def __str__(self) -> str:
        pages = sum(map(len, self.site.spots.values()))
        kills = "; ".join(map(str, self.kills))
        return f"seed {self.seed}: {pages} pages at {len(self.site.spots)} origins, {kills}"


def make_schedule(seed: int, point: str = "") -> Schedule:
    """The schedule of a seed. `point`: kill there first, whatever the dice would say."""
    dice = random.Random(seed * 7919 + 17)
    site = make_site(dice)
    schedule = Schedule(
        seed,
        site,
        settings={},
        kills=[],
        group_limit=dice.choice([1, 3, 2000, 2000]),
        checkpoint_frames=dice.choice([0, 5, 16_000]),
        obeys=dice.random() < 0.7,
        limit=dice.choice([1, 1, 2, 8]),
        total_limit=dice.choice([1, 4, 16]),
        delay_s=dice.choice([0, 0, 0, 0, 0.05, 0.12]),
    )
    schedule.settings = {
        "CONCURRENT_REQUESTS": schedule.total_limit,
        "CONCURRENT_REQUESTS_PER_DOMAIN": schedule.limit,
        "DOWNLOAD_DELAY": schedule.delay_s,
        "ROBOTSTXT_OBEY": schedule.obeys,
        "FRONTIER_SYNCHRONOUS": dice.choice(["FULL", "NORMAL"]),
        "FRONTIER_WINDOW": dice.choice([5, 10_000]),
        "FRONTIER_HOT_ORIGINS": dice.choice([1, 2_000]),
        "FRONTIER_KNOWN_URLS": dice.choice([2, 65_536]),
        "FRONTIER_LINK_INVENTORY": dice.random() < 0.5,
        "FRONTIER_EVIDENCE": dice.choice(["none", "headers", "body", "body"]),
    }
    schedule.kills = _kills(dice, [point] if point else _own_points(seed))
    evidence = dice.choice(["none", "headers", "body"])
    if any(kill.point.startswith("artifact.") for kill in schedule.kills):
        evidence = "body"
    schedule.settings["FRONTIER_EVIDENCE"] = evidence
    return schedule


def _own_points(seed: int) -> list[str]:
    """Points in rotation, so that a dozen seeds come to most of them; what is reached once in a run stands first."""
    count = len(CRAWL_POINTS)
    own = {CRAWL_POINTS[(seed * OWN + number) % count] for number in range(OWN)}
    last = sorted(own & ENDS)[seed % len(own & ENDS)] if own & ENDS else None
    return sorted(
        (name for name in own if name not in ENDS or name == last),
        key=lambda name: (RANKS.get(name.partition(".")[0], 3), CRAWL_POINTS.index(name)),
    )


def _kills(dice: random.Random, own: list[str]) -> list[Kill]:
    """The seed's own points, then what the dice say."""
    kills: list[Kill] = []
    for point in own:
        if point.startswith("recover.") and not kills:
            kills.append(Kill(signal="KILL", after_hits=dice.randrange(2, 7)))
        # A point that few crawls reach twice is reached once.
        kills.append(Kill(point, dice.randrange(1, 7) if point.startswith(OFTEN) else 1))
    return kills + [_any_kill(dice) for _ in range(dice.randrange(3))]


def _any_kill(dice: random.Random) -> Kill:
    if dice.random() < 0.5:
        point = dice.choice(CRAWL_POINTS)
        return Kill(
            point, dice.randrange(1, 30) if point.startswith(OFTEN) else dice.randrange(1, 3)
        )
    return Kill(
        signal=dice.choice(["KILL", "KILL", "TERM", "TERMTERM"]),
        after_hits=dice.randrange(12),
        delay_s=dice.choice([0, dice.uniform(0, 0.05), dice.uniform(0, 0.6)]),
    )
