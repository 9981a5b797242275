"""Rules and redirects over the length of a run, and beyond it: expiry, restarts, many origins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider

from scrapy_frontier.clock import SystemClock
from scrapy_frontier.frontier import Frontier
from scrapy_frontier.testing import Answer, page, redirect, text
from scrapy_frontier.testing import Request as Asked

from .lab import HostileLab
from .plans import AT_ONCE, OBEY, Plan
from .web import robots

DAY_S = 86_400.0


class LeapingClock(SystemClock):
    """The system's clock, which leaps when it is told to."""

    def leap(self, seconds: float) -> None:
        self._offset += seconds


def on_clock(clock: LeapingClock) -> Callable[[Crawler], None]:
    """Have a crawl live by this clock."""

    def before(crawler: Crawler) -> None:
        Frontier.of(crawler).clock = clock

    return before


def leaper(clock: LeapingClock) -> Callable[[Asked], Answer]:
    """A page during whose download a day passes and an hour."""

    def answer(request: Asked) -> Answer:
        clock.leap(DAY_S + 3600)
        return page("a day later")

    return answer


# Expiry


async def test_rules_change_during_a_run(lab: HostileLab) -> None:
    """An expired record is fetched again; what is newly forbidden is not fetched, what is newly allowed is."""
    web, clock = lab.web, LeapingClock()
    web.a.on("/robots.txt", [robots(["/x"]), robots(["/y"])])
    web.a.on("/leap", leaper(clock))
    web.a.otherwise = page("any")
    web.forbid(web.a / "y")
    plan = Plan(
        requests=[
            web.a / "x",
            web.a / "leap",
            web.a / "y",
            web.a / "z",
        ],
        settings=OBEY,
        asked={"A/robots.txt": 2, "A/leap": 1, "A/x": 1, "A/z": 1},
        delivered=["A/leap", "A/x", "A/z"],
        failed={"A/x": "Forbidden by robots.txt", "A/y": "Forbidden by robots.txt"},
        fates={"A/x": "succeeded", "A/y": "suppressed robots.disallow"},
    )
    result, _ = await lab.run(plan, before=on_clock(clock))
    assert result.history(web.a / "x")[-6:] == [
        "exclude",
        "readmit",
        "enqueue",
        "dispatch",
        "respond",
        "process",
    ]


async def test_a_confirmed_copy_is_good_for_another_day(lab: HostileLab) -> None:
    """An expired record is asked for with its validators; 304 confirms it."""
    web, clock = lab.web, LeapingClock()
    fresh = Answer("User-agent: *\nDisallow: /x\n", headers=(("ETag", '"v1"'),))
    web.a.on("/robots.txt", [fresh, Answer(status=304)])
    web.a.on("/leap", leaper(clock))
    web.forbid(web.a / "x")
    plan = Plan(
        requests=[web.a / "leap", web.a / "x", web.a / "x/2"],
        settings=OBEY,
        asked={"A/robots.txt": 2, "A/leap": 1},
        delivered=["A/leap"],
        failed={"A/x": "Forbidden by robots.txt", "A/x/2": "Forbidden by robots.txt"},
    )
    await lab.run(plan, before=on_clock(clock))
    first, second = web.hits("A/robots.txt")
    assert "if-none-match" not in first.headers
    assert second.headers["if-none-match"] == '"v1"'


async def test_an_old_copy_stands_in(lab: HostileLab) -> None:
    """Where an expired record cannot be fetched anew its rules hold on (RFC 9309, section 2.4)."""
    web, clock = lab.web, LeapingClock()
    web.a.on("/robots.txt", [robots(["/x"]), Answer(status=503)])
    web.a.on("/leap", leaper(clock))
    web.a.on("/z", page("z"))
    web.forbid(web.a / "x")
    plan = Plan(
        requests=[web.a / "leap", web.a / "x", web.a / "z"],
        settings=OBEY,
        asked={"A/robots.txt": 2, "A/leap": 1, "A/z": 1},
        delivered=["A/leap", "A/z"],
        failed={"A/x": "Forbidden by robots.txt"},
    )
    await lab.run(plan, before=on_clock(clock))


async def test_rules_are_not_kept_for_longer_than_the_server_says(lab: HostileLab) -> None:
    """Cache-Control shortens the life of a record, down to an hour."""
    web, clock = lab.web, LeapingClock()

    def leap(request: Asked) -> Answer:
        clock.leap(2 * 3600)
        return page("two hours later")

    short = Answer("User-agent: *\n", headers=(("Cache-Control", "max-age=60"),))
    web.a.on("/robots.txt", [short, robots(["/y"])])
    web.a.on("/leap", leap)
    web.forbid(web.a / "y")
    plan = Plan(
        requests=[web.a / "leap", web.a / "y"],
        settings=OBEY,
        asked={"A/robots.txt": 2, "A/leap": 1},
        delivered=["A/leap"],
        failed={"A/y": "Forbidden by robots.txt"},
    )
    await lab.run(plan, before=on_clock(clock))


async def test_retry_after_of_robots_txt_is_kept(lab: HostileLab) -> None:
    """A server that answers 429 is asked again when it has said, and not earlier."""
    web = lab.web
    slow = Answer(status=429, headers=(("Retry-After", "1"),))
    web.a.on("/robots.txt", [slow, robots(["/x"])])
    web.a.on("/z", page("z"))
    plan = Plan(
        requests=[web.a / "z"],
        settings=OBEY,
        asked={"A/robots.txt": 2, "A/z": 1},
        delivered=["A/z"],
    )
    await lab.run(plan)
    first, second = web.hits("A/robots.txt")
    assert second.arrived_at - first.arrived_at >= 1.0


async def test_a_long_retry_after_does_not_hold_the_run(lab: HostileLab) -> None:
    """A server that asks for hours is left alone for this run, and its URLs stay unresolved."""
    web = lab.web
    web.a.on("/robots.txt", Answer(status=503, headers=(("Retry-After", "7200"),)))
    web.forbid(web.a / "z")
    plan = Plan(
        requests=[web.a / "z"],
        settings=OBEY,
        asked={"A/robots.txt": 1},
        fates={"A/z": "scheduled"},
        is_over=False,
    )
    result, _ = await lab.run(plan)
    assert "robots.closed" in str(result.coverage.to_json())


# Restarts


class Wanderer(Spider):
    """Fetches `urls`; `told` has the URL and the chain of each request whose errback was called."""

    name = "wanderer"

    def __init__(self, urls: list[str], *, stops: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls
        self.stops = stops
        self.told: list[tuple[str, list[str]]] = []

    async def start(self) -> Any:
        for url in self.urls:
            yield Request(url, errback=self.lose)

    def parse(self, response: Any) -> Any:
        if self.stops:
            raise CloseSpider("enough")
        yield {"url": response.url}

    def lose(self, failure: Any) -> None:
        request = failure.request
        self.told.append((request.url, request.meta.get("redirect_urls", [])))


async def test_a_restart_fetches_no_robots_txt(lab: HostileLab) -> None:
    """A run that is stopped and resumed, and a new run after it, go by the records at hand."""
    web = lab.web
    for origin in (web.a, web.b):
        web.disallow(origin, "/private")
        origin.otherwise = page("any")
    urls = [origin / path for origin in (web.a, web.b) for path in ("1", "private/1", "2", "3")]
    first = await lab.crawl(Wanderer, OBEY, urls=urls, stops=True)
    assert first.coverage.identities.unresolved
    second = await lab.crawl(Wanderer, OBEY, urls=urls)
    assert second.run == first.run
    assert second.ends()["succeeded"] >= 6
    third = await lab.crawl(Wanderer, {**OBEY, "FRONTIER_RUN": "another"}, urls=urls)
    assert third.run != second.run
    assert third.coverage.identities.suppressed == {"robots.disallow": 2}
    asked = web.asked()
    assert (asked["A/robots.txt"], asked["B/robots.txt"]) == (1, 1)
    assert (asked["A/3"], asked["B/3"]) == (2, 2)


async def test_an_origin_that_was_given_up_is_tried_by_the_next_run(lab: HostileLab) -> None:
    """What stays unresolved for want of a robots.txt is done when the run is resumed and it can be had."""
    web = lab.web
    web.a.on("/robots.txt", [Answer(status=503), Answer(status=503), robots(["/private"])])
    web.a.on("/open", page("open"))
    web.forbid(web.a / "private")
    urls = [web.a / "private/x", web.a / "open"]
    first = await lab.crawl(Wanderer, OBEY, urls=urls)
    assert first.coverage.identities.unresolved == {"scheduled": 2}
    assert first.coverage.run.state != "finished"
    second = await lab.crawl(Wanderer, OBEY, urls=urls)
    assert second.run == first.run
    assert second.coverage.identities.unresolved == {}
    assert dict(web.asked()) == {"A/robots.txt": 3, "A/open": 1}


async def test_a_chain_goes_on_after_a_restart(lab: HostileLab) -> None:
    """A hop that waits when the run stops is followed when it is resumed, as a hop of its chain."""
    web = lab.web
    web.a.on("/1", redirect(web.b / "2"))
    web.b.on("/robots.txt", [Answer(status=503), Answer(status=503), robots(["/private"])])
    web.b.on("/2", redirect(web.b / "private/3"))
    web.forbid(web.b / "private")
    first = await lab.crawl(Wanderer, OBEY, urls=[web.a / "1"])
    assert first.fate(web.b / "2").end == "scheduled"
    second = await lab.crawl(Wanderer, OBEY, urls=[web.a / "1"])
    assert second.run == first.run
    assert second.fate(web.b / "private/3").reason == "robots.disallow"
    assert second.spider.told == [(web.b / "private/3", [web.a / "1", web.b / "2"])]
    assert dict(web.asked()) == {"A/robots.txt": 1, "A/1": 1, "B/robots.txt": 3, "B/2": 1}


async def test_a_chain_that_is_cut_by_a_stop_keeps_its_budget(lab: HostileLab) -> None:
    """A resumed chain does not begin to count anew."""
    web = lab.web

    def further(request: Asked) -> Answer:
        return redirect(f"/r?n={int(request.query[2:]) + 1}")

    web.a.on("/r", further)
    web.a.on("/page", page("stop here"))
    settings = {"REDIRECT_MAX_TIMES": 4}
    urls = [web.a / "r?n=0", web.a / "page"]
    await lab.crawl(Wanderer, settings, urls=urls, stops=True)
    assert web.asked()["A/r?n=0"] == 1
    result = await lab.crawl(Wanderer, settings, urls=urls)
    assert [web.asked()[f"A/r?n={number}"] for number in range(6)] == [1, 1, 1, 1, 1, 0]
    assert [url for url, _ in result.spider.told] == [web.a / "r?n=4"]


# Many origins


async def test_forty_origins_at_once(lab: HostileLab) -> None:
    """Each is asked for its robots.txt first and once, and for nothing that it forbids; none waits for another one."""
    web = lab.web
    origins = [web.origin(f"O{number}", f"127.0.1.{number}") for number in range(1, 41)]
    for origin in origins:
        origin.on("/robots.txt", Answer("User-agent: *\nDisallow: /no\n", delay_s=0.05))
        origin.otherwise = page("any")
        web.forbid(origin / "no")
    slow = origins[0]
    slow.on("/robots.txt", Answer(fault="stall"))
    web.forbid(slow / "yes", slow / "also")
    urls = [origin / path for path in ("no/1", "yes", "no/2", "also") for origin in origins]
    settings = {**OBEY, "CONCURRENT_REQUESTS": 16, "DOWNLOAD_TIMEOUT": 0.5}
    result = await lab.crawl(Wanderer, settings, urls=urls)
    for origin in origins[1:]:
        paths = [hit.path for hit in web.log.of(origin.url)]
        assert paths[0] == "/robots.txt"
        assert sorted(paths) == ["/also", "/robots.txt", "/yes"]
    assert {hit.path for hit in web.log.of(slow.url)} == {"/robots.txt"}
    assert result.coverage.identities.suppressed == {"robots.disallow": 2 * 39}
    assert result.coverage.identities.unresolved == {"scheduled": 4}
    last_of_others = max(hit.arrived_at for hit in web.log if hit.origin != slow.url)
    assert last_of_others < web.log.of(slow.url)[-1].arrived_at + 1


async def test_redirects_among_many_origins_keep_the_manners(lab: HostileLab) -> None:
    """Thirty chains that all lead through one host do not overrun it (the audit looks at limits and intervals)."""
    web = lab.web
    web.disallow(web.b, "/private")
    web.b.otherwise = page("any")
    for number in range(30):
        origin = (web.a, web.c, web.d)[number % 3]
        origin.on(f"/{number}", redirect(web.b / f"{'private/' * (number % 5 == 0)}{number}"))
    urls = [(web.a, web.c, web.d)[number % 3] / str(number) for number in range(30)]
    result = await lab.crawl(Wanderer, OBEY, urls=urls)
    assert result.coverage.identities.suppressed == {"robots.disallow": 6}
    assert result.coverage.redirects.hops == 30
    assert len(web.log.of(web.b.url)) == 1 + 24
    assert len(result.spider.told) == 6


async def test_hops_wait_for_the_crawl_delay_of_their_target(lab: HostileLab) -> None:
    """A hop into an origin with a Crawl-delay is bound by it, as links to it are."""
    web = lab.web
    web.b.on("/robots.txt", text("User-agent: *\nCrawl-delay: 0.25\n"))
    web.b.otherwise = page("any")
    for number in range(3):
        web.a.on(f"/{number}", redirect(web.b / str(number)))
    await lab.crawl(Wanderer, {**OBEY, **AT_ONCE}, urls=[web.a / str(n) for n in range(3)])
    pages = [hit for hit in web.log.of(web.b.url) if hit.path != "/robots.txt"]
    arrivals = [hit.arrived_at for hit in pages]
    assert len(arrivals) == 3
    assert min(arrivals[1] - arrivals[0], arrivals[2] - arrivals[1]) >= 0.249
