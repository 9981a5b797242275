"""A crawl on the frontier: every page once, and an account that adds up."""

from __future__ import annotations

from crawls import Follower, Lab, on_both_stores

from scrapy_frontier.testing import page


@on_both_stores
async def test_every_reachable_page_is_fetched_once(lab: Lab) -> None:
    """Links, repeated and circular ones too, make one request for each URL."""
    lab.main.on("/", page("Home", ["/a", "/b", "/", "/a#part"]))
    lab.main.on("/a", page("A", ["/", "/b", "/c"]))
    lab.main.on("/b", page("B", ["/a"]))
    lab.main.on("/c", page("C"))
    result = await lab.crawl(Follower, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/a": 1, "/b": 1, "/c": 1}
    assert result.ends() == {"succeeded": 4}
