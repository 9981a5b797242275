"""What a robots.txt says besides its rules."""

from __future__ import annotations

from crawls import Lab

from scrapy_frontier.store.edges import unpack_observations
from scrapy_frontier.testing import page, text


async def test_sitemaps_of_a_robots_txt_are_kept_and_not_fetched(lab: Lab) -> None:
    """`Sitemap:` lines are references of kind sitemap; nobody asked to follow them."""
    lab.main.on(
        "/robots.txt", text("User-agent: *\nDisallow:\nSitemap: /map.xml\nSitemap: ftp://x/m\n")
    )
    lab.main.on("/", page("home"))
    result = await lab.crawl(settings={"ROBOTSTXT_OBEY": True}, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/robots.txt": 1, "/": 1}
    assert result.coverage.references.rejected == {"scheme.unsupported": 1}
    ((packed,),) = result.rows("SELECT observations FROM emission WHERE kind = 4")
    seen = unpack_observations(packed)
    assert [(item.observed, item.is_followed) for item in seen] == [
        ("/map.xml", False),
        ("ftp://x/m", False),
    ]
