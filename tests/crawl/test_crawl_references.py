"""References: in scope or not, under rules for their parameters, with spelling, fragment and source."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from crawls import Crawl, Follower, Lab
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.spiders import SitemapSpider

from scrapy_frontier.store.edges import Observation, unpack_observations
from scrapy_frontier.testing import Answer, page, text


def observations(result: Crawl) -> list[Observation]:
    """How references were spelled, in the order of the ledger."""
    found = result.rows(
        f"SELECT observations FROM emission WHERE run_id = {result.run_id}"
        " AND observations IS NOT NULL ORDER BY emission_id"
    )
    return [seen for (packed,) in found for seen in unpack_observations(packed)]


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
