"""Requests that do not come from the scheduler, and what the account says of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Follower
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from scrapy_frontier import HopRefused
from scrapy_frontier.report.explain import IdentityExplained, explain
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Answer, page, redirect, text

from .cases import CASES
from .lab import HostileLab
from .plans import OBEY, Plan


def explained(result: Crawl, url: str) -> IdentityExplained:
    """What `scrapy frontier explain` says of a URL."""
    with open_store(result.store_url, read_only=True) as store, store.reader() as connection:
        (one,) = explain(connection, result.run_id, url, now_ms=0).identities
        return one


# Media pipelines


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_media_pipelines_obey(lab: HostileLab, tmp_path: Path, concurrency: int) -> None:
    """The files of an item are fetched where robots.txt lets them be, at each hop."""
    web = lab.web
    web.disallow(web.a, "/private")
    web.disallow(web.b, "/private")
    web.a.on("/", page(""))
    web.a.on("/moved", redirect(web.b / "private/moved"))
    web.a.on("/gone", redirect(web.b / "pub/gone"))
    for origin in (web.a, web.b):
        origin.on("/pub*", text("file"))

    class Collects(Follower):
        def parse(self, response: Any) -> Any:
            files = ("a/private/1", "a/pub/1", "b/private/1", "b/pub/1", "a/moved", "a/gone")
            urls = [getattr(web, name[0]) / name[2:] for name in files]
            yield {"file_urls": urls}

    settings = {
        **OBEY,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "files"),
        "MEDIA_ALLOW_REDIRECTS": True,
        "CONCURRENT_REQUESTS": concurrency,
    }
    result = await lab.crawl(Collects, settings, seeds=[web.a / ""])
    (item,) = result.items
    fetched = {file["url"] for file in item["files"]}
    assert fetched == {web.a / "pub/1", web.b / "pub/1", web.a / "gone"}
    assert dict(web.asked()) == {
        "A/robots.txt": 1,
        "B/robots.txt": 1,
        "A/": 1,
        "A/pub/1": 1,
        "A/moved": 1,
        "A/gone": 1,
        "B/pub/1": 1,
        "B/pub/gone": 1,
    }
    assert result.coverage.identities.suppressed == {"robots.disallow": 3}


# engine.download_async


class Fetches(Follower):
    """Fetches `wanted` past the scheduler, from the callback of its first page."""

    def __init__(self, wanted: list[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.wanted = wanted

    async def parse(self, response: Any) -> Any:
        for request in self.wanted:
            yield await self.outcome(request)

    async def outcome(self, request: Request) -> dict[str, Any]:
        try:
            response = await self.crawler.engine.download_async(request)
        except IgnoreRequest as error:
            return {"url": request.url, "error": str(error)}
        return {"url": request.url, "body": response.text}


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_download_async_obeys(lab: HostileLab, concurrency: int) -> None:
    """A fetch past the scheduler is judged by robots.txt, at each hop; a waiver of its own lets it through."""
    web = lab.web
    web.disallow(web.a, "/private")
    web.disallow(web.b, "/private")
    web.a.on("/", page(""))
    web.a.on("/waived", redirect("/open"))
    web.a.on("/moved", redirect(web.b / "private/moved"))
    web.a.on("/open", text("open"))
    wanted = [
        Request(web.a / "private/1"),
        Request(web.b / "private/1"),
        Request(web.a / "moved"),
        Request(web.a / "waived", meta={"dont_obey_robotstxt": True}),
    ]
    settings = {**OBEY, "CONCURRENT_REQUESTS": concurrency}
    result = await lab.crawl(Fetches, settings, wanted=wanted, seeds=[web.a / ""])
    outcomes = [item.get("error") or item["body"] for item in result.items]
    assert outcomes == ["Forbidden by robots.txt"] * 3 + ["open"]
    assert result.coverage.identities.suppressed == {"robots.disallow": 3}
    assert dict(web.asked()) == {
        "A/robots.txt": 1,
        "B/robots.txt": 1,
        "A/": 1,
        "A/moved": 1,
        "A/waived": 1,
        "A/open": 1,
    }


async def test_download_async_stays_in_scope(lab: HostileLab) -> None:
    """A fetch past the scheduler is held to the scope, at each hop."""
    web = lab.web
    web.forbid(web.b.url)
    web.a.on("/", page(""))
    web.a.on("/moved", redirect(web.b / "x"))
    wanted = [Request(web.b / "x"), Request(web.a / "moved"), Request("ftp://127.0.0.2/x")]
    settings = {"FRONTIER_SCOPE": {"include": [web.a.url]}}
    result = await lab.crawl(Fetches, settings, wanted=wanted, seeds=[web.a / ""])
    assert all("error" in item for item in result.items)
    assert len(result.items) == 3
    assert dict(web.asked()) == {"A/": 1, "A/moved": 1}
    assert result.fate(web.b / "x").reason == "scope.origin"


async def test_download_async_from_an_unreachable_origin(lab: HostileLab) -> None:
    """A fetch past the scheduler waits for a robots.txt too, and fails where it never comes."""
    web = lab.web
    web.a.on("/", page(""))
    web.b.on("/robots.txt", Answer(status=503))
    web.forbid(web.b / "x")
    wanted = [Request(web.b / "x")]
    result = await lab.crawl(Fetches, OBEY, wanted=wanted, seeds=[web.a / ""])
    (item,) = result.items
    assert "error" in item
    assert dict(web.asked()) == {"A/robots.txt": 1, "A/": 1, "B/robots.txt": 2}


async def test_download_async_in_a_circle(lab: HostileLab) -> None:
    """A circle past the scheduler ends by the redirect budget, with an exception that says so."""
    web = lab.web
    web.a.on("/", page(""))
    web.a.on("/1", redirect("/2"))
    web.a.on("/2", redirect("/1"))
    settings = {"REDIRECT_MAX_TIMES": 4}
    result = await lab.crawl(Fetches, settings, wanted=[Request(web.a / "1")], seeds=[web.a / ""])
    (item,) = result.items
    assert "redirect" in item["error"]
    assert web.asked()["A/1"] + web.asked()["A/2"] <= 5


# The setting FRONTIER_SCOPE, and the operator's own rules


async def test_redirects_stay_in_the_scope(lab: HostileLab) -> None:
    """A hop is judged by origin and by path, wherever its chain began."""
    web = lab.web
    web.forbid(web.b.url, web.a / "shop/private")
    web.a.on("/shop/1", redirect(web.b / "x"))
    web.a.on("/shop/2", redirect("/shop/private/x"))
    web.a.on("/shop/3", redirect("/shop/4"))
    web.a.on("/shop/4", page("fine"))
    plan = Plan(
        requests=[web.a / f"shop/{number}" for number in (1, 2, 3)],
        settings={
            "FRONTIER_SCOPE": {
                "include": [f"{web.a.url}/shop/"],
                "exclude": [f"{web.a.url}/shop/private/"],
            }
        },
        asked={f"A/shop/{number}": 1 for number in (1, 2, 3, 4)},
        delivered=["A/shop/4"],
        failed={"A/shop/1": "scope.origin", "A/shop/2": "scope.path"},
        fates={"B/x": "suppressed scope.origin", "A/shop/private/x": "suppressed scope.path"},
    )
    result, _ = await lab.run(plan)
    assert result.coverage.redirects.refused == {"scope.origin": 1, "scope.path": 1}


async def test_redirects_are_held_to_the_operators_rules(lab: HostileLab) -> None:
    """`FRONTIER_ROBOTS_RULES` hold for hops too, whatever the host's own robots.txt says."""
    web = lab.web
    web.forbid(web.b / "cgi-bin")
    web.a.on("/r", redirect(web.b / "cgi-bin/x"))
    web.b.on("/robots.txt", text("User-agent: *\nAllow: /\n"))
    plan = Plan(
        requests=[web.a / "r"],
        settings={**OBEY, "FRONTIER_ROBOTS_RULES": "User-agent: *\nDisallow: /cgi-bin/\n"},
        asked={"A/robots.txt": 1, "A/r": 1},
        failed=None,
        fates={"B/cgi-bin/x": "suppressed robots.operator"},
    )
    _, seen = await lab.run(plan)
    assert list(seen.failed) == ["B/cgi-bin/x"]


# The account


async def test_the_account_names_the_waiver(lab: HostileLab) -> None:
    """`dont_obey_robotstxt` is a waiver in the account, with the URL it let through."""
    result, _ = await lab.hold(CASES["robots.waiver"])
    (waiver,) = result.coverage.waivers
    assert (waiver.name, waiver.count) == ("dont_obey_robotstxt", 1)
    assert waiver.example == lab.web.a / "private/1"


async def test_the_account_names_the_line(lab: HostileLab) -> None:
    """What robots.txt excludes is explained by the line that decides, its number and its text."""
    web = lab.web
    web.a.on("/robots.txt", text("# ours\nUser-agent: *\nAllow: /\nDisallow: /private/\n"))
    plan = Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        asked={"A/robots.txt": 1},
        failed={"A/private/x": "Forbidden by robots.txt"},
    )
    result, _ = await lab.run(plan)
    told = str(explained(result, web.a / "private/x"))
    assert "robots.disallow" in told
    assert "/private/" in told
    assert "'line': 4" in told
    (kept_out,) = result.coverage.robots
    assert (kept_out.rule, kept_out.suppressed) == ("robots.disallow", 1)


async def test_the_account_says_why_an_origin_waits(lab: HostileLab) -> None:
    """URLs that stay unresolved for want of a robots.txt have that reason in the account, and in their explanation."""
    result, _ = await lab.hold(CASES["FC02"])
    assert "robots.closed" in str(result.coverage.to_json())
    assert "robots.txt" in explained(result, lab.web.a / "open").gate_sentence


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("loop.2", "redirect.loop"),
        ("FC24", "redirect.limit"),
        ("FC17.b", "scope.allowed_domains"),
        ("location.mailto", "scheme.unsupported"),
        ("location.userinfo", "userinfo"),
        ("location.port-high", "port.malformed"),
        ("forbidden.same", "robots.disallow"),
        ("refresh.scope", "scope.allowed_domains"),
    ],
)
async def test_the_account_counts_refused_hops(lab: HostileLab, number: str, rule: str) -> None:
    """Each hop that was not followed is counted under its rule."""
    result, _ = await lab.hold(CASES[number])
    assert result.coverage.redirects.refused == {rule: 1}


async def test_a_circle_is_named_with_its_whole_chain(lab: HostileLab) -> None:
    """The failure and the account have each URL of the chain."""
    result, seen = await lab.hold(CASES["loop.3"])
    web = lab.web
    chain = (web.a / "0", web.b / "1", web.c / "2")
    (error,) = seen.failures
    assert isinstance(error, HopRefused)
    assert isinstance(error, IgnoreRequest)
    assert (error.rule, error.url, error.chain) == ("redirect.loop", web.a / "0", chain)
    detail = explained(result, web.c / "2").detail
    assert detail["rule"] == "redirect.loop"
    assert tuple(detail["chain"]) == chain


async def test_the_account_says_where_a_joined_requester_went(lab: HostileLab) -> None:
    """A hop to a known page makes no second request; the account names that page, and it those that led to it."""
    result, _ = await lab.hold(CASES["chain.joined"])
    web = lab.web
    for path in ("old", "older"):
        one = explained(result, web.a / path)
        assert one.detail["to"] == web.a / "new"
        assert "join" in str(one.detail)
    pages = explained(result, web.a / "new").references.pages
    assert set(pages) == {web.a / "", web.a / "old", web.a / "older"}
    assert result.coverage.references.by_kind["redirect"].duplicates == 2


async def test_a_hop_to_what_is_excluded_already_is_told(lab: HostileLab) -> None:
    """A chain that ends at a page which robots.txt kept out before has its errback told like the first one."""
    web = lab.web
    web.disallow(web.a, "/private")
    web.a.on("/r", redirect("/private/x"))
    told: list[tuple[str, list[str]]] = []

    class Asks(Follower):
        async def start(self) -> Any:
            for path in ("private/x", "r"):
                yield Request(web.a / path, errback=self.note)

        def note(self, failure: Any) -> None:
            chain = failure.request.meta.get("redirect_urls", [])
            told.append((failure.request.url, chain))

    result = await lab.crawl(Asks, OBEY)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/robots.txt": 1, "/r": 1}
    assert told[0] == (web.a / "private/x", [])
    assert len(told) == 2


async def test_an_errback_may_go_on(lab: HostileLab) -> None:
    """What the errback of a refused hop yields is crawled, with the page that redirected as its source."""
    web = lab.web
    web.a.on("/r", redirect("ftp://127.0.0.2/x"))
    web.a.on("/instead", page("instead"))

    class Persists(Follower):
        async def start(self) -> Any:
            yield Request(web.a / "r", errback=self.instead)

        def instead(self, failure: Any) -> Any:
            assert failure.check(HopRefused)
            yield Request(web.a / "instead")

    result = await lab.crawl(Persists)
    result.assert_exhausted()
    assert result.coverage.references.by_kind["errback"].total == 1
    assert explained(result, web.a / "instead").first_seen.page == web.a / "r"


async def test_an_errback_of_a_forbidden_page_may_go_on(lab: HostileLab) -> None:
    """The same for what robots.txt forbids."""
    web = lab.web
    web.disallow(web.a, "/private")
    web.a.on("/instead", page("instead"))

    class Persists(Follower):
        async def start(self) -> Any:
            yield Request(web.a / "private/x", errback=self.instead)

        def instead(self, failure: Any) -> Any:
            assert failure.check(IgnoreRequest)
            yield Request(web.a / "instead")

    result = await lab.crawl(Persists, OBEY)
    result.assert_exhausted()
    assert result.fate(web.a / "instead").end == "succeeded"
    assert result.coverage.references.by_kind["errback"].total == 1
