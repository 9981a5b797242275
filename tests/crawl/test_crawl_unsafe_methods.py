"""A POST that was under way when its process died, or hung, is not sent a second time by itself."""

from __future__ import annotations

from typing import Any

from crawls import Follower, Lab, Result
from processes import CrawlProcess, wait_for_hits
from scrapy import FormRequest, Request

from scrapy_frontier.testing import Answer, page

SPIDER = '''
import scrapy


class Orders(scrapy.Spider):
    """Places one order, and one that may be placed twice."""

    name = "orders"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.seed = seed

    async def start(self):
        yield scrapy.FormRequest(self.seed + "order", formdata={"n": "1"})
        yield scrapy.FormRequest(
            self.seed + "again", formdata={"n": "1"}, meta={"frontier_idempotent": True}
        )
        yield scrapy.Request(self.seed + "read")

    def parse(self, response):
        yield {"url": response.url}
'''


def test_a_post_that_was_killed_is_given_up(lab: Lab) -> None:
    """It may have been acted on: it becomes a dead letter, which an operator can requeue (RFC 9110, 9.2.2)."""
    for path in ("/order", "/again", "/read"):
        lab.main.on(path, Answer("late", delay_s=20))
    with CrawlProcess(lab, lab.main / "", spider=SPIDER) as process:
        wait_for_hits(lab, process, 3)
        process.kill()
    lab.main.otherwise = page("fine")
    for path in ("/order", "/again", "/read"):
        lab.main.on(path, page("fine"))
    with CrawlProcess(lab, lab.main / "", spider=SPIDER) as process:
        process.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.log.hits_by_path() == {"/order": 1, "/again": 2, "/read": 2}
    order = result.fate(f"POST {lab.main / 'order'}")
    assert (order.disposition, order.reason) == ("failed", "lease.not_repeated")
    assert [letter.reason for letter in result.coverage.deadletters] == ["lease.not_repeated"]


async def test_a_post_whose_lease_expires_is_given_up(lab: Lab) -> None:
    """A worker that hangs over it proves nothing of whether the server has acted on it."""

    class Orders(Follower):
        async def start(self) -> Any:
            yield FormRequest(lab.main / "order", formdata={"n": "1"})
            yield Request(lab.main / "read")

    answers = iter([Answer("late", delay_s=30), page("fine")])
    lab.main.on("/order", Answer("late", delay_s=30))
    lab.main.on("/read", lambda request: next(answers))
    settings = {"FRONTIER_LEASE": 1, "DOWNLOAD_TIMEOUT": 60, "FRONTIER_HEALTH": False}
    result = await lab.crawl(Orders, settings, patience_s=30)
    result.assert_sound()
    assert result.log.hits_by_path() == {"/order": 1, "/read": 2}
    order = result.fate(f"POST {lab.main / 'order'}")
    assert (order.disposition, order.reason) == ("failed", "lease.not_repeated")
