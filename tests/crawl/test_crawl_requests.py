"""What a spider may ask of a request: a time, another visit, a place in the order, a name for its parameters."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab
from scrapy import Request, signals
from scrapy.exceptions import CloseSpider
from scrapy.spiders import SitemapSpider

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.store.edges import Observation, unpack_observations
from scrapy_frontier.testing import Answer, page, redirect, text


def arrival(result: Crawl, path: str) -> float:
    """When the server saw this path first."""
    return next(hit.arrived_at for hit in result.log if hit.path == path)


def observations(result: Crawl) -> list[Observation]:
    """How references were spelled, in the order of the ledger."""
    found = result.rows(
        f"SELECT observations FROM emission WHERE run_id = {result.run_id}"
        " AND observations IS NOT NULL ORDER BY emission_id"
    )
    return [seen for (packed,) in found for seen in unpack_observations(packed)]


# Times


@pytest.mark.parametrize(
    "meta",
    [
        lambda: {"frontier_delay": 0.5},
        lambda: {"frontier_delay": timedelta(seconds=0.5)},
        lambda: {"frontier_not_before": datetime.now(timezone.utc).timestamp() + 0.5},
        lambda: {"frontier_not_before": datetime.now(timezone.utc) + timedelta(seconds=0.5)},
        lambda: {
            "frontier_delay": 0.1,
            "frontier_not_before": datetime.now(timezone.utc).timestamp() + 0.5,
        },
    ],
    ids=["delay", "timedelta", "not_before", "datetime", "both"],
)
async def test_a_request_is_not_sent_before_its_time(lab: Lab, meta: Any) -> None:
    """It waits as deferred, holds up nobody, keeps the crawl open, and goes out when it is due."""

    class Waits(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "now")
            yield Request(lab.main / "later", meta=meta())

        def parse(self, response: Any) -> Any:
            yield Request(lab.main / "child")

    lab.main.otherwise = page("any")
    result = await lab.crawl(Waits)
    result.assert_exhausted()
    begun = arrival(result, "/now")
    assert arrival(result, "/child") - begun < 0.3
    assert 0.4 < arrival(result, "/later") - begun < 0.9
    assert result.history(lab.main / "later")[:4] == ["discover", "admit", "defer", "release"]


async def test_the_wish_for_a_time_is_not_inherited(lab: Lab) -> None:
    """Meta is copied to hops, retries and children; the time belonged to the one request."""

    class Waits(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "moved", meta={"frontier_delay": 0.4})
            yield Request(lab.main / "weak", meta={"frontier_delay": 0.4})

        def parse(self, response: Any) -> Any:
            if not response.url.endswith("/child"):
                yield Request(lab.main / "child", meta=response.meta)

    lab.main.on("/moved", redirect("/target"))
    lab.main.on("/weak", [Answer(status=503), page("well")])
    lab.main.otherwise = page("any")
    result = await lab.crawl(Waits)
    result.assert_exhausted()
    assert arrival(result, "/target") - arrival(result, "/moved") < 0.3
    weak = [hit.arrived_at for hit in result.log if hit.path == "/weak"]
    assert weak[1] - weak[0] < 0.3
    assert arrival(result, "/child") - arrival(result, "/moved") < 0.3


async def test_a_time_that_makes_no_sense_is_logged_and_ignored(lab: Lab, caplog: Any) -> None:
    """The request goes out, and the log names the key and its value."""

    class Waits(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "", meta={"frontier_delay": "soon"})

    lab.main.otherwise = page("any")
    result = await lab.crawl(Waits)
    result.assert_exhausted()
    assert len(result.log) == 1
    assert "meta['frontier_delay'] = 'soon'" in caplog.text


async def test_a_time_outlives_its_process(lab: Lab) -> None:
    """A resumed run waits for the rest of the time, and not for the whole of it again."""

    class Waits(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "now")
            yield Request(lab.main / "later", meta={"frontier_delay": 0.8})

        def parse(self, response: Any) -> Any:
            if is_first:
                raise CloseSpider("for_now")

    is_first = True
    lab.main.otherwise = page("any")
    stopped = await lab.crawl(Waits)
    stopped.assert_sound()
    assert stopped.coverage.identities.deferred == {"not_before": 1}
    is_first = False
    resumed = await lab.crawl(Waits)
    resumed.assert_exhausted()
    assert 0.75 < arrival(resumed, "/later") - arrival(resumed, "/now") < 1.3


# Visits


async def test_dont_filter_is_a_further_attempt_each_time(lab: Lab) -> None:
    """n visits of one URL are n attempts of one identity, one after the other."""

    class Visits(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "seed")

        def parse(self, response: Any) -> Any:
            for number in range(5):
                yield Request(
                    lab.main / "page",
                    self.parse_page,
                    dont_filter=True,
                    cb_kwargs={"number": number},
                )

        def parse_page(self, response: Any, number: int) -> Any:
            yield {"number": number}

    lab.main.on("/page", Answer("page", delay_s=0.02))
    lab.main.otherwise = page("any")
    result = await lab.crawl(Visits)
    result.assert_exhausted()
    assert [item["number"] for item in result.items] == [0, 1, 2, 3, 4]
    assert result.fate(lab.main / "page").attempts == 5
    assert result.coverage.identities.discovered == 2
    page_hits = [hit for hit in result.log if hit.path == "/page"]
    assert len(page_hits) == 5
    assert all(
        before.departed_at is not None and before.departed_at <= after.arrived_at
        for before, after in zip(page_hits, page_hits[1:], strict=False)
    )


async def test_the_same_request_object_twice(lab: Lab) -> None:
    """A request object that is yielded again is a further attempt, not a lost response."""

    class Twice(Follower):
        async def start(self) -> Any:
            request = Request(lab.main / "page", dont_filter=True)
            yield request
            yield request

        def parse(self, response: Any) -> Any:
            yield {"url": response.url}

    lab.main.otherwise = page("any")
    result = await lab.crawl(Twice)
    result.assert_exhausted()
    assert len(result.items) == 2
    assert result.fate(lab.main / "page").attempts == 2


async def test_a_visit_after_the_end(lab: Lab) -> None:
    """A page that has ended is visited again, with the request of the visit."""

    class Again(Follower):
        def parse(self, response: Any) -> Any:
            times = response.meta.get("times", 0)
            yield {"times": times}
            if times < 3:
                yield response.request.replace(meta={"times": times + 1}, dont_filter=True)

    lab.main.otherwise = page("any")
    result = await lab.crawl(Again, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert [item["times"] for item in result.items] == [0, 1, 2, 3]
    assert result.fate(lab.main / "").attempts == 4


async def test_a_visit_with_a_time(lab: Lab) -> None:
    """`dont_filter` and `frontier_delay` together look at one page every so often."""

    class Polls(Follower):
        def parse(self, response: Any) -> Any:
            if len(lab.server.log) < 3:
                yield Request(response.url, dont_filter=True, meta={"frontier_delay": 0.2})

    lab.main.otherwise = page("any")
    result = await lab.crawl(Polls, seeds=[lab.main / ""])
    result.assert_exhausted()
    interval = result.log.smallest_interval_s(lab.main.url)
    assert len(result.log) == 3
    assert interval is not None
    assert interval >= 0.19


async def test_visits_in_waiting_outlive_the_process(lab: Lab) -> None:
    """A visit that waited for its turn when the crawl stopped is made after the resumption."""

    class Visits(Follower):
        def parse(self, response: Any) -> Any:
            if response.url.endswith("/seed"):
                for number in range(3):
                    yield Request(
                        lab.main / "page",
                        dont_filter=True,
                        cb_kwargs={"number": number},
                        callback=self.parse_page,
                    )

        def parse_page(self, response: Any, number: int) -> Any:
            yield {"number": number}
            if number == 0 and is_first:
                raise CloseSpider("for_now")

    is_first = True
    lab.main.otherwise = Answer("page", delay_s=0.02)
    stopped = await lab.crawl(Visits, seeds=[lab.main / "seed"])
    stopped.assert_sound()
    is_first = False
    resumed = await lab.crawl(Visits, seeds=[lab.main / "seed"])
    resumed.assert_exhausted()
    assert [item["number"] for item in stopped.items + resumed.items] == [0, 1, 2]


# Seeds


async def test_seeds_are_not_repeated_by_a_resumption(lab: Lab) -> None:
    """A resumed run iterates `start()` again; what is in the ledger is not asked for again."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            if is_first and len(lab.server.log) >= 3:
                raise CloseSpider("for_now")

    is_first = True
    lab.main.otherwise = page("any")
    seeds = [f"{lab.main.url}/{number}" for number in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0)]
    settings = {"CONCURRENT_REQUESTS": 1}
    stopped = await lab.crawl(Stops, settings, seeds=seeds)
    stopped.assert_sound()
    assert len(stopped.log) < 10
    is_first = False
    resumed = await lab.crawl(Stops, settings, seeds=seeds)
    resumed.assert_exhausted()
    assert resumed.log.hits_by_path() == {f"/{number}": 1 + (number == 0) for number in range(10)}
    assert resumed.coverage.references.by_kind["seed"].total == 11


async def test_new_seeds_of_a_resumption_are_fetched(lab: Lab) -> None:
    """What `start()` yields for the first time is a seed like any other, also in a resumed run."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            if len(lab.server.log) == 1:
                raise CloseSpider("for_now")

    lab.main.otherwise = page("any")
    seeds = [lab.main / "1", lab.main / "2", lab.main / "3"]
    one = {"CONCURRENT_REQUESTS": 1}
    stopped = await lab.crawl(Stops, one, seeds=seeds[:2])
    assert stopped.coverage.run.state == "stopped"
    resumed = await lab.crawl(Stops, one, seeds=seeds)
    resumed.assert_exhausted()
    assert resumed.log.hits_by_path() == {"/1": 1, "/2": 1, "/3": 1}


async def test_many_seeds_at_once(lab: Lab) -> None:
    """20,000 seeds without a pause: none is lost, and the memory holds only the window."""
    largest_window = most_pending = 0
    is_done = False

    class Seeds(Follower):
        async def start(self) -> Any:
            nonlocal is_done
            for number in range(20_000):
                yield Request(f"{lab.main.url}/{number}")
                if number % 100 == 0:
                    note(Frontier.of(self.crawler).statistics())
            is_done = True

        def parse(self, response: Any) -> Any:
            if is_done:
                raise CloseSpider("enough")

    def note(figures: dict[str, Any]) -> None:
        nonlocal largest_window, most_pending
        largest_window = max(largest_window, figures["frontier/window"])
        most_pending = max(most_pending, figures["frontier/writer/pending"])

    lab.main.otherwise = Answer("slow", delay_s=0.05)
    settings = {"FRONTIER_WINDOW": 1000, "FRONTIER_MAX_QUEUE": 2000, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Seeds, settings, patience_s=40)
    result.assert_sound()
    assert result.coverage.references.by_kind["seed"].total == 20_000
    assert result.coverage.identities.discovered == 20_000
    assert 0 < largest_window <= 1000
    assert 0 < most_pending <= 2000 + 150


async def test_closing_while_start_still_yields(lab: Lab) -> None:
    """Seeds that come after the end are not counted, nor taken; the next start yields them again."""
    yielded = 0

    class Seeds(Follower):
        async def start(self) -> Any:
            nonlocal yielded
            for number in range(3000):
                yielded += 1
                yield Request(f"{lab.main.url}/{number}")
                if number > 20:
                    await asyncio.sleep(0)

        def parse(self, response: Any) -> Any:
            raise CloseSpider("enough")

    lab.main.otherwise = page("any")
    settings = {"FRONTIER_MAX_QUEUE": 20, "CONCURRENT_REQUESTS": 1}
    result = await lab.crawl(Seeds, settings)
    result.assert_sound()
    assert result.coverage.run.state == "stopped"
    assert result.coverage.references.total == result.stats["frontier/references"]
    before = yielded
    await asyncio.sleep(0.1)
    frontier = Frontier.of(result.crawler)
    assert not frontier.is_crowded
    assert yielded - before <= 1


async def test_lazy_start(lab: Lab) -> None:
    """A `start()` that waits until the scheduler is empty is fed through, one seed after the other."""

    class Lazy(Follower):
        async def start(self) -> Any:
            for number in range(5):
                if self.crawler.engine.needs_backout():
                    await self.crawler.signals.wait_for(signals.scheduler_empty)
                yield Request(f"{lab.main.url}/{number}")

    lab.main.otherwise = Answer("slow", delay_s=0.02)
    result = await lab.crawl(Lazy, {"CONCURRENT_REQUESTS": 1})
    result.assert_exhausted()
    assert len(result.log) == 5


async def test_start_that_raises(lab: Lab) -> None:
    """What was yielded before the error is crawled, and the run says that it was cut short."""

    class Breaks(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "1")
            raise RuntimeError("no more")

    lab.main.otherwise = page("any")
    result = await lab.crawl(Breaks)
    result.assert_sound()
    assert result.reason == "start_error"
    assert (result.coverage.run.state, result.coverage.stop.reason) == ("stopped", "error")


# Scope


async def test_scope_and_allowed_domains(lab: Lab) -> None:
    """What is out of scope is named by its rule and not asked for; a waiver is counted."""

    class Scoped(Follower):
        allowed_domains = ["127.0.0.1"]

        def parse(self, response: Any) -> Any:
            yield from super().parse(response)
            if response.url.endswith("/"):
                yield Request(f"{away.url}/waived", meta={"allow_offsite": True})

    away = lab.server.origin("away", "127.0.0.2")
    away.otherwise = page("away")
    lab.main.on("/", page("", ["/in/1", "/in/not/2", "/out/3", f"{away.url}/4"]))
    lab.main.otherwise = page("any")
    scope = {
        "include": [lab.main / "in/", {"home": lab.main.url + "/"}["home"], away.url],
        "exclude": {"out": lab.main / "out/", "not": lab.main / "in/not/"},
    }
    result = await lab.crawl(Scoped, {"FRONTIER_SCOPE": scope}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/in/1": 1, "/waived": 1}
    assert result.coverage.identities.suppressed == {
        "scope.path": 2,
        "scope.allowed_domains": 1,
    }
    assert [waiver.name for waiver in result.coverage.waivers] == ["allow_offsite"]


async def test_resumption_under_another_scope(lab: Lab) -> None:
    """What is newly forbidden is excluded before it is fetched; what is newly allowed is admitted."""

    class Stops(Follower):
        def parse(self, response: Any) -> Any:
            yield from super().parse(response)
            if response.url.endswith("/"):
                raise CloseSpider("for_now")

    lab.main.on("/", page("", ["/a/1", "/a/2", "/b/1", "/b/2", "/c"]))
    lab.main.otherwise = page("any")
    first = {"FRONTIER_SCOPE": {"exclude": {"no b": lab.main / "b/"}}}
    stopped = await lab.crawl(Stops, first, seeds=[lab.main / ""])
    assert stopped.coverage.identities.suppressed == {"scope.path": 2}
    second = {"FRONTIER_SCOPE": {"exclude": {"no a": lab.main / "a/"}}}
    resumed = await lab.crawl(Stops, second, seeds=[lab.main / ""])
    resumed.assert_exhausted()
    assert resumed.log.hits_by_path() == {"/": 1, "/b/1": 1, "/b/2": 1, "/c": 1}
    assert resumed.fate(lab.main / "a/1").reason == "scope.path"
    assert resumed.history(lab.main / "b/1")[:4] == ["discover", "exclude", "readmit", "enqueue"]
    assert len({row[0] for row in resumed.rows("SELECT policy_id FROM context")}) == 2


async def test_depth_limit_leaves_no_hole_in_the_account(lab: Lab) -> None:
    """DEPTH_LIMIT keeps its meaning, and the references it cuts off are in the account."""
    lab.main.on("/", page("", ["/1", "/2"]))
    lab.main.on("/1", page("", ["/deep1", "/deep2", "/2"]))
    lab.main.on("/2", page("2"))
    result = await lab.crawl(settings={"DEPTH_LIMIT": 1}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/1": 1, "/2": 1}
    assert result.coverage.references.by_kind["link"].total == 5


# Names of parameters, spellings, fragments


async def test_parameter_rules(lab: Lab) -> None:
    """A rule makes spellings of one page one identity; what it touched is counted, with an example."""
    links = ["/a?id=1&utm_source=x", "/a?id=1&utm_source=y", "/a?id=1", "/a?id=2"]
    lab.main.on("/", page("", links))
    lab.main.otherwise = page("any")
    rules = ["tracking"]
    result = await lab.crawl(settings={"FRONTIER_PARAMETER_RULES": rules}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert sorted(result.log.hits_by_path()) == ["/", links[0], "/a?id=2"]
    counted = result.coverage.parameter_rules
    assert [(rule.name, rule.count) for rule in counted] == [("tracking", 2)]
    assert counted[0].example == lab.main / links[0]


async def test_without_rules_no_parameter_is_touched(lab: Lab) -> None:
    """Two queries are two pages, also where only their order differs."""
    links = ["/a?x=1&y=2", "/a?y=2&x=1", "/a?x=1&y=2&utm_source=z", "/a?x=1&y=2&", "/a"]
    lab.main.on("/", page("", links))
    lab.main.otherwise = page("any")
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.log) == 6


async def test_fragments_live_on_edges(lab: Lab) -> None:
    """A fragment is kept where it was found, and belongs to no key and no request."""
    lab.main.on("/", page("", ["/a#one", "/a#two"]))
    lab.main.on("/a", page("a"))
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/a": 1}
    assert [seen.fragment for seen in observations(result)] == ["one", "two"]
    assert result.coverage.identities.discovered == 2


async def test_link_inventory(lab: Lab) -> None:
    """Every reference of a page is on record, also those nobody follows; they make no request."""

    class Quiet(Follower):
        def parse(self, response: Any) -> Any:
            yield response.follow("/followed")

    body = (
        '<a href="/followed" rel="next">go on</a><a href="/not#part">not followed</a>'
        '<img src="/image.png"><a href="mailto:a@b.c">write</a>'
    )
    lab.main.on("/", Answer(body))
    lab.main.on("/followed", page("f"))
    result = await lab.crawl(Quiet, {"FRONTIER_LINK_INVENTORY": True}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/followed": 1}
    listed = {seen.observed: seen for seen in observations(result) if not seen.is_followed}
    assert set(listed) >= {"/followed", "/not#part", "/image.png", "mailto:a@b.c"}
    assert (listed["/followed"].tag, listed["/followed"].rel) == ("a", "next")
    assert listed["/not#part"].text == "not followed"
    assert listed["/not#part"].fragment == "part"


async def test_sitemaps_are_sources_of_their_entries(lab: Lab) -> None:
    """From robots.txt over an index to the pages: each entry is a reference of its sitemap."""

    class Maps(SitemapSpider):
        name = "maps"

        def __init__(self, robots: str, **kwargs: Any) -> None:
            self.sitemap_urls = [robots]
            super().__init__(**kwargs)

        def parse(self, response: Any) -> Any:
            yield {"url": response.url}

    def xml(name: str, part: str, urls: list[str]) -> Answer:
        entries = "".join(f"<{part}><loc>{url}</loc></{part}>" for url in urls)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return Answer(f'<{name} xmlns="{space}">{entries}</{name}>', content_type="application/xml")

    lab.main.on("/robots.txt", text(f"Sitemap: {lab.main / 'index.xml'}\n"))
    lab.main.on("/index.xml", xml("sitemapindex", "sitemap", [lab.main / "map.xml"]))
    lab.main.on("/map.xml", xml("urlset", "url", [lab.main / "1", lab.main / "2"]))
    lab.main.otherwise = page("any")
    result = await lab.crawl(Maps, robots=lab.main / "robots.txt")
    result.assert_exhausted()
    assert len(result.items) == 2
    sources = dict(
        result.rows(
            "SELECT child.url, parent.url FROM identity AS child"
            " JOIN identity AS parent ON parent.identity_id = child.source_id"
        )
    )
    assert sources[lab.main / "1"] == lab.main / "map.xml"
    assert sources[lab.main / "map.xml"] == lab.main / "index.xml"
    assert result.coverage.references.by_kind["sitemap"].total == 3


# Methods and bodies


async def test_requests_with_bodies_are_identities_of_their_own(lab: Lab) -> None:
    """Method and body belong to the key; the same form twice is sent once."""

    class Forms(Follower):
        def parse(self, response: Any) -> Any:
            for body in (b"a=1", b"a=2", b"a=1"):
                yield Request(lab.main / "form", self.parse_form, method="POST", body=body)
            yield Request(lab.main / "form", self.parse_form)

        def parse_form(self, response: Any) -> Any:
            yield {"method": response.request.method, "body": response.request.body}

    lab.main.otherwise = page("any")
    result = await lab.crawl(Forms, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert len(result.items) == 3
    assert result.log.hits_by_path()["/form"] == 3


async def test_what_a_request_carries_survives_a_resumption(lab: Lab) -> None:
    """Headers, cookies, meta, arguments, method and body of a stored request are what they were."""

    class Carries(Follower):
        def parse(self, response: Any) -> Any:
            yield Request(
                lab.main / "target",
                self.parse_target,
                method="PUT",
                headers={"X-Mine": ["one", "two"]},
                body=b"\xff\x00body",
                cookies={"crumb": "42"},
                meta={"when": datetime(2024, 2, 29, tzinfo=timezone.utc), "pair": (1, 2)},
                cb_kwargs={"names": {"a", "b"}},
                errback=self.failed,
                priority=7,
            )
            raise CloseSpider("for_now")

        def parse_target(self, response: Any, names: set[str]) -> Any:
            yield {"names": names, "meta": response.meta, "request": response.request}

        def failed(self, failure: Any) -> None:
            """Never called here."""

    lab.main.otherwise = page("any")
    await lab.crawl(Carries, seeds=[lab.main / ""])
    resumed = await lab.crawl(Carries, seeds=[lab.main / ""])
    resumed.assert_exhausted()
    (item,) = resumed.items
    assert item["names"] == {"a", "b"}
    assert item["meta"]["pair"] == (1, 2)
    assert item["meta"]["when"] == datetime(2024, 2, 29, tzinfo=timezone.utc)
    request = item["request"]
    assert (request.method, request.body, request.priority) == ("PUT", b"\xff\x00body", 7)
    assert request.errback == resumed.spider.failed
    hit = resumed.log.hits[-1]
    assert hit.headers["x-mine"] == "one, two"
    assert "crumb=42" in hit.headers["cookie"]
