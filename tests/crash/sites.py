"""A site made by dice, and what an independent walk over it must find.

Nothing of the package is used here: URLs are joined by `urllib.parse`, and the walk goes over the plan.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

OUTSIDE = "http://outside.invalid/page"

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")

RAISE = "this page makes the callback fail"

ANSWERS = (
    *["page"] * 10,
    "slow",
    "slow",
    "chunked",
    "gzipped",
    "closing",
    "callback error",
    "flaky",
    "flaky",
    "reset once",
    "gone",
    "missing",
    "broken",
    "dead",
    *["redirect"] * 3,
)

EMPTY = frozenset({"gone", "missing", "broken", "dead"})
"""Answers without a page."""


@dataclass
class Spot:
    """One URL of a site: what it answers, and what it leads to. Links are as they stand on the page."""

    kind: str
    links: list[str] = field(default_factory=list)
    target: str = ""
    status: int = 302


@dataclass
class Site:
    """Origins by name, their spots by path, and which of them have rules for robots."""

    spots: dict[str, dict[str, Spot]]
    robots: dict[str, str]
    """Origin to how its robots.txt answers: none, rules, flaky, moved."""

    def script(self) -> dict[str, Any]:
        """The script of the server that serves it."""
        origins = {}
        for number, (name, spots) in enumerate(self.spots.items()):
            paths: dict[str, Any] = {path: answer_of(spot) for path, spot in spots.items()}
            paths.update(_robots_paths(self.robots[name]))
            origins[name] = {"host": HOSTS[number], "paths": paths}
        return {"origins": origins}

    def walk(self, urls: dict[str, str], *, obeys: bool) -> dict[str, str]:
        """Every URL that a crawl from the first page must know, and how it must end."""
        names = {url: name for name, url in urls.items()}
        first = next(iter(urls.values())) + "/p0"
        ends: dict[str, str] = {}
        queue = deque([first])
        while queue:
            url = queue.popleft()
            if url in ends:
                continue
            parts = urlsplit(url)
            name = names.get(f"{parts.scheme}://{parts.netloc}")
            ends[url], leads = self._end(name, parts.path, obeys=obeys)
            for lead in leads:
                for key, value in urls.items():
                    lead = lead.replace(f"${{{key}}}", value)
                target = urljoin(url, lead)
                if urlsplit(target).scheme == "http":
                    queue.append(target)
        return ends

    def _end(self, name: str | None, path: str, *, obeys: bool) -> tuple[str, list[str]]:
        if name is None:
            return "suppressed", []
        if path.startswith("/private/") and obeys and self.robots[name] != "none":
            return "suppressed", []
        spot = self.spots[name].get(path)
        if spot is None:
            return "gone", []
        if spot.kind == "redirect":
            return "redirected", [spot.target]
        ends = {
            "gone": "gone",
            "missing": "gone",
            "broken": "http_error",
            "dead": "failed",
            "callback error": "callback_error",
        }
        return ends.get(spot.kind, "succeeded"), [] if spot.kind in EMPTY else spot.links


def answer_of(spot: Spot) -> Any:
    """What the server answers, as its script has it."""
    page: dict[str, Any] = {"links": spot.links, "title": spot.kind}
    if spot.kind == "callback error":
        page["text"] = RAISE
    answers: dict[str, Any] = {
        "slow": {**page, "delay_s": 0.15},
        "chunked": {**page, "is_chunked": True, "trickle_s": 0.03},
        "gzipped": {**page, "is_gzipped": True},
        "closing": {**page, "is_closing": True},
        "flaky": [{"status": 503}, page],
        "reset once": [{"fault": "reset"}, page],
        "gone": {"status": 410},
        "missing": {"status": 404},
        "broken": {"status": 500, "body": "broken"},
        "dead": {"fault": "close"},
        "redirect": {"redirect": spot.target, "status": spot.status},
    }
    return answers.get(spot.kind, page)


def _robots_paths(kind: str) -> dict[str, Any]:
    rules = {"body": "User-agent: *\nDisallow: /private/\n", "content_type": "text/plain"}
    return {
        "none": {},
        "rules": {"/robots.txt": rules},
        "flaky": {"/robots.txt": [{"status": 503}, rules]},
        "moved": {"/robots.txt": {"redirect": "/other-robots.txt"}, "/other-robots.txt": rules},
    }[kind]


def make_site(dice: random.Random) -> Site:
    """A site of one to three origins and some dozen pages."""
    names = ["main", "second", "third"][: dice.choice([1, 2, 2, 3])]
    count = dice.randrange(10, 28)
    spots: dict[str, dict[str, Spot]] = {name: {} for name in names}
    for number in range(count):
        name = names[number % len(names)]
        spots[name][f"/p{number}"] = _spot(dice, number, count, names)
    kinds = ["none", "rules", "rules", "flaky", "moved"]
    return Site(spots, {name: dice.choice(kinds) for name in names})


def _spot(dice: random.Random, number: int, count: int, names: list[str]) -> Spot:
    kind = dice.choice(ANSWERS) if number else "page"
    near = [n for n in (2 * number + 1, 2 * number + 2) if n < count]
    far = [dice.randrange(count) for _ in range(dice.randrange(4))]
    if kind == "redirect":
        # Only ahead: a circle has an end of its own kind, which is no matter here.
        target = dice.randrange(number + 1, count + 1)
        return Spot(
            kind, target=_link(dice, target, names, number), status=dice.choice([301, 302, 307])
        )
    links = [_link(dice, target, names, number) for target in near + far]
    if dice.random() < 0.4:
        links += [f"/private/{number}", "mailto:somebody@example.com"]
    if dice.random() < 0.15:
        links.append(OUTSIDE)
    if dice.random() < 0.2:
        links.append(f"/nowhere{number}#part")
    dice.shuffle(links)
    return Spot(kind, [link.partition("#")[0] for link in links])


def _link(dice: random.Random, target: int, names: list[str], number: int) -> str:
    """Relative where the target lies on the same origin, sometimes."""
    here, there = names[number % len(names)], names[target % len(names)]
    if here == there and dice.random() < 0.7:
        return dice.choice([f"/p{target}", f"p{target}", f"./x/../p{target}"])
    return f"${{{there}}}/p{target}"
