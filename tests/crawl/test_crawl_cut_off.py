"""A request whose process died on the spot counts at its origin's gate, though its time never came on record."""

from __future__ import annotations

import time

import pytest
from crawls import Lab, Result
from processes import CrawlProcess

from scrapy_frontier.failpoints import VARIABLE
from scrapy_frontier.testing import page, text

pytestmark = pytest.mark.slow

SETTINGS = {"RANDOMIZE_DOWNLOAD_DELAY": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}


@pytest.mark.parametrize(
    ("delay_s", "crawl_delay_s", "hit"), [(3600, 0, 1), (0, 2, 2)], ids=["setting", "robots.txt"]
)
def test_interval_counts_from_the_resumption(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, delay_s: int, crawl_delay_s: int, hit: int
) -> None:
    """It is on disk with the recovery, before anything is dispatched, and before the lease is taken back."""
    lab.main.on("/robots.txt", text(f"User-agent: *\nCrawl-delay: {crawl_delay_s}\n"))
    lab.main.on("/p0", page("p0"))
    settings = {**SETTINGS, "DOWNLOAD_DELAY": delay_s, "ROBOTSTXT_OBEY": crawl_delay_s > 0}
    resumed_at = 0.0
    for point in (f"wire.charged:{hit}", "recover.part:1", "recover.done:1"):
        monkeypatch.setenv(VARIABLE, point)
        resumed_at = resumed_at or (time.time() if point.startswith("recover") else 0.0)
        with CrawlProcess(lab.folder, lab.main / "p0", settings) as process:
            process.process.wait(60)
        assert process.process.returncode == -9, process.log
    result = Result(lab.store_url, lab.server.log)
    ((next_eligible_ms,),) = result.rows("SELECT max(next_eligible_ms) FROM origin")
    assert next_eligible_ms >= (resumed_at + max(delay_s, crawl_delay_s)) * 1000
    assert lab.server.log.hits_by_path()["/p0"] == 0
