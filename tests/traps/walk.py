"""A crawl without a network: the policies alone, on a site that is a function, breadth first.

Pages are judged some fetches after they were asked for, as in a real crawl with several requests in flight.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import urljoin

from scrapy_frontier.policy.likeness import LikenessIndex, SeenPhrases
from scrapy_frontier.policy.traps import Brake, Content, Traps
from scrapy_frontier.policy.traps.reading import Reader

Site = Callable[[str], str | None]
"""The page of a path with its query; None where there is none."""

_LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)

IN_FLIGHT = 8


@dataclass
class Walk:
    """What came of it: targets fetched in their order, and those deferred with the brake that holds each."""

    fetched: list[str] = field(default_factory=list)
    deferred: dict[str, Brake] = field(default_factory=dict)
    references: int = 0

    @property
    def rules(self) -> Counter[str]:
        """How many URLs each rule holds."""
        return Counter(brake.rule for brake in self.deferred.values())


def links_of(html: str, url: str) -> Iterable[str]:
    """The absolute URLs that a page links to, without fragments."""
    return [
        urljoin(url, found.replace("&amp;", "&")).partition("#")[0] for found in _LINK.findall(html)
    ]


def walk(
    site: Site,
    *,
    origin: str = "http://site.example",
    limit: int = 100_000,
    year: int = 2026,
    has_likeness: bool = True,
    seeds: Iterable[str] = ("/",),
) -> Walk:
    """Crawl a site with the rules about traps in force, at most `limit` pages."""
    traps, result = Traps(year), Walk()
    reader = Reader(LikenessIndex(50_000), SeenPhrases())
    queue: deque[str] = deque(f"{origin}{seed}" for seed in seeds)
    known = set(queue)
    judged: deque[tuple[str, Content, list[str]]] = deque()

    def judge() -> None:
        url, content, found = judged.popleft()
        outside = 0
        for link in found:
            result.references += 1
            if link in known or not link.startswith(f"{origin}/"):
                continue
            known.add(link)
            referral = traps.refer(link, origin, content)
            outside += referral.is_outside
            if referral.brake is not None:
                result.deferred[link[len(origin) :]] = referral.brake
            else:
                queue.append(link)
        traps.fetched(url, origin, content, outside)

    for url in queue:
        traps.refer(url, origin)
    number = 0
    while (queue or judged) and number < limit:
        if not queue:
            judge()
            continue
        url = queue.popleft()
        brake = traps.hold(url, origin)
        target = url[len(origin) :]
        if brake is not None:
            result.deferred[target] = brake
            continue
        number += 1
        html = site(target)
        result.fetched.append(target)
        content, _ = reader.read(
            html if has_likeness else None, url, origin, number, traps.family_of(url, origin)
        )
        judged.append((url, content, list(links_of(html or "", url))))
        if len(judged) >= IN_FLIGHT:
            judge()
    return result
