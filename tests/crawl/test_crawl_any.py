"""Sites and spiders made by dice, stopped at any moment and resumed: the account adds up, and nothing is lost."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from zlib import crc32

import pytest
from crawls import Crawl, Follower, Lab
from scrapy import Request
from scrapy.exceptions import CloseSpider, IgnoreRequest

from scrapy_frontier.testing import Answer, Origin, Route, page, redirect, text

PAGES = 45
SESSIONS = 3


def path_of(url: str) -> bytes:
    """Path and query: ports differ from run to run."""
    return url.partition("://")[2].partition("/")[2].encode()


class Dicey(Follower):
    """Does with each page what the dice of its URL say, the same in every session."""

    custom_settings = {"DOWNLOAD_TIMEOUT": 2}

    def __init__(self, seed: int, stop_after: int = 10**6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        self.left = stop_after

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, self.parse, errback=self.failed, dont_filter=True)

    def dice(self, url: str) -> random.Random:
        return random.Random(crc32(path_of(url)) ^ self.seed)

    async def parse(self, response: Any) -> Any:
        dice = self.dice(response.url)
        for link in response.css("a::attr(href)").getall():
            yield self.follow(response, link, dice)
        if dice.random() < 0.15:
            await self.fetch(response.urljoin(f"/direct{dice.randrange(5)}"))
        if dice.random() < 0.1:
            raise RuntimeError("an error of the callback")
        yield {"url": response.url}
        self.left -= 1
        if not self.left:
            raise CloseSpider("for_now")

    def follow(self, response: Any, link: str, dice: random.Random) -> Any:
        roll = dice.random()
        request = response.follow(link, self.parse, errback=self.failed)
        if roll < 0.1:
            return request.replace(meta={"frontier_delay": dice.uniform(0.01, 0.1)})
        if roll < 0.15 and not response.meta.get("is_visit"):
            return request.replace(dont_filter=True, meta={"is_visit": True})
        if roll < 0.2:
            return request.replace(callback=lambda response: None)
        if roll < 0.25:
            return request.replace(priority=dice.randrange(-20, 20))
        return request

    async def fetch(self, url: str) -> None:
        try:
            await self.crawler.engine.download_async(Request(url))
        except Exception as error:
            self.logger.info("%s", error)

    def failed(self, failure: Any) -> Any:
        yield Request(failure.request.url + "?failed", self.parse, priority=-1)


class Drops:
    """A middleware that drops some requests and some responses, the same in every session."""

    def process_request(self, request: Request) -> None:
        if crc32(path_of(request.url)) % 23 == 1:
            raise IgnoreRequest("dropped")

    def process_response(self, request: Request, response: Any) -> Any:
        if crc32(path_of(request.url)) % 29 == 1:
            raise IgnoreRequest("not wanted")
        return response


def make_site(origins: list[Origin], dice: random.Random) -> None:
    """Pages that link to each other across the origins, and fail in all ways."""
    for number in range(PAGES):
        origin = origins[number % len(origins)]
        targets = [2 * number + 1, 2 * number + 2, *(dice.randrange(PAGES) for _ in range(3))]
        links = [
            f"{origins[target % len(origins)].url}/p{target}"
            for target in targets
            if target < PAGES
        ]
        links += ["mailto:a@b.c", f"{origin.url}/private/{number}"]
        good = Answer(page(str(number), links).body, delay_s=dice.choice([0, 0, 0.01]))
        origin.on(f"/p{number}", dice.choice(faults(good, links[0])) if number else good)
    for origin in origins:
        origin.on("/robots.txt", text("User-agent: *\nDisallow: /private/\n"))
        origin.on("/direct*", dice.choice([page("direct"), redirect("/p0"), Answer(status=500)]))


def faults(good: Answer, elsewhere: str) -> list[Route]:
    """A good page six times out of twelve."""
    return [
        *[good] * 6,
        [Answer(status=503), good],
        [Answer(fault="reset"), good],
        Answer(status=404),
        Answer(status=500),
        redirect(elsewhere),
        Answer(fault="close"),
    ]


async def crawl_in_sessions(lab: Lab, seed: int) -> list[Crawl]:
    """Crawl a site made by the dice, in some sessions that stop early and a last one that does not."""
    dice = random.Random(seed)
    origins = [lab.main, *(lab.server.origin(f"o{n}", f"127.0.0.{n + 2}") for n in range(3))]
    make_site(origins, dice)
    settings = {
        "CONCURRENT_REQUESTS": dice.choice([1, 4, 16]),
        "CONCURRENT_REQUESTS_PER_DOMAIN": dice.choice([1, 2, 8]),
        "DOWNLOAD_DELAY": dice.choice([0, 0, 0.01]),
        "ROBOTSTXT_OBEY": dice.random() < 0.7,
        "FRONTIER_ROBOTS_BACKOFF": 0.05,
        "RETRY_TIMES": dice.choice([0, 1, 2]),
        "DEPTH_LIMIT": dice.choice([0, 0, 3]),
        "FRONTIER_WINDOW": dice.choice([5, 10_000]),
        "FRONTIER_HOT_ORIGINS": dice.choice([1, 2_000]),
        "FRONTIER_KNOWN_URLS": dice.choice([2, 65_536]),
        "FRONTIER_LINK_INVENTORY": dice.random() < 0.5,
        "DOWNLOADER_MIDDLEWARES": {Drops: dice.choice([100, 800])},
    }
    sessions = []
    for number in range(SESSIONS + 1):
        stop_after = dice.randrange(1, 15) if number < SESSIONS else 10**6
        seeds = [f"{lab.main.url}/p0", f"{lab.main.url}/p0", f"{origins[1].url}/p1"]
        result = await lab.crawl(Dicey, settings, seed=seed, stop_after=stop_after, seeds=seeds)
        result.assert_sound()
        sessions.append(result)
        if result.coverage.run.state == "finished":
            break
    return sessions


@pytest.mark.parametrize(
    ("lab", "seed"),
    [
        *[("sqlite", seed) for seed in (1, 5, 20, 26, 29, 52)],
        *[pytest.param("postgresql", seed, marks=pytest.mark.postgresql) for seed in (5, 29)],
    ],
    indirect=["lab"],
)
async def test_any_crawl_adds_up(lab: Lab, seed: int) -> None:
    """After every session the account is sound; at the end nothing is left, and ledger and server agree."""
    sessions = await crawl_in_sessions(lab, seed)
    last = sessions[-1]
    last.assert_finished()
    booked, asked = last.wire_attempts(), last.log.hits_by_url()
    assert booked - asked == Counter()
    # The end of a session cuts short what was fetched past the scheduler, robots.txt above all.
    assert asked - booked <= last.lost_attempts()
    assert last.rows("SELECT count(*) FROM visit WHERE is_waiting = 1") == [(0,)]
    for origin in lab.server.origins.values():
        limit = last.crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        assert last.log.max_simultaneous(origin.url) <= limit
