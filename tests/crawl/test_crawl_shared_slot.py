"""Origins that share a `download_slot`, one of which never gives its robots.txt."""

from __future__ import annotations

from typing import Any

from crawls import Follower, Lab
from scrapy import Request

from scrapy_frontier.testing import Answer, page, text


async def test_an_origin_without_robots_txt_does_not_hold_up_its_neighbour(lab: Lab) -> None:
    """The neighbour is crawled; the URLs of the other stay in the account, and a resumed run fetches them."""

    class Shares(Follower):
        async def start(self) -> Any:
            for url in self.start_urls:
                yield Request(url, meta={"download_slot": "shared"})

    other = lab.server.origin("other", "127.0.0.2")
    lab.main.on("/robots.txt", text("User-agent: *\nDisallow:\n"))
    other.on("/robots.txt", Answer(status=503))
    for origin in (lab.main, other):
        origin.on("/1", page("1"))
    settings = {
        "ROBOTSTXT_OBEY": True,
        "FRONTIER_ROBOTS_MAX_TRIES": 2,
        "FRONTIER_ROBOTS_BACKOFF": 0.05,
    }
    seeds = [other / "1", lab.main / "1"]
    result = await lab.crawl(Shares, settings, seeds=seeds)
    result.assert_sound()
    assert result.log.hits_by_url()[lab.main / "1"] == 1
    assert result.log.hits_by_url()[other / "robots.txt"] == 2
    assert result.coverage.run.state == "stopped"

    other.on("/robots.txt", text("User-agent: *\nDisallow:\n"))
    resumed = await lab.crawl(Shares, settings, seeds=seeds)
    resumed.assert_exhausted()
    assert resumed.fate(other / "1").end == "succeeded"
