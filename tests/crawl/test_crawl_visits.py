"""What a spider may ask of a request: a time, and another visit."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab, on_both_stores
from scrapy import Request
from scrapy.exceptions import CloseSpider

from scrapy_frontier.testing import Answer, page, redirect


def arrival(result: Crawl, path: str) -> float:
    """When the server saw this path first."""
    return next(hit.arrived_at for hit in result.log if hit.path == path)


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


@on_both_stores
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
        for before, after in pairwise(page_hits)
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


@on_both_stores
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
