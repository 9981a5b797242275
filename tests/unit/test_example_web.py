"""The example web is what its modules say: finite where it should be, whole, always the same."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from protego import Protego

from scrapy_frontier.testing import Answer, Origin, ScriptedServer

PROJECT = Path(__file__).parents[2] / "example_project"
HREF = re.compile(r'<(?:a|link)\b[^>]*\bhref="([^"]*)"')


@pytest.fixture(scope="module", autouse=True)
def project() -> Iterator[None]:
    """The example project is no installed package: its folder goes on the path for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PROJECT))
        yield
        for name in [name for name in sys.modules if name.partition(".")[0] == "example"]:
            patch.delitem(sys.modules, name)


@pytest.fixture(scope="module")
def sites(project: None) -> ModuleType:
    import example.web

    return example.web


@pytest.fixture(scope="module")
def web(sites: Any) -> Iterator[Mapping[str, Origin]]:
    server: ScriptedServer = sites.open_web()
    yield server.origins
    server.stop()


def links_of(url: str, answer: Answer) -> list[str]:
    """The http links of a page, absolute and without fragments."""
    body = answer.body if isinstance(answer.body, str) else answer.body.decode()
    hrefs = (urljoin(url, unescape(href).strip()) for href in HREF.findall(body))
    return [urldefrag(href)[0] for href in hrefs if href.startswith("http")]


def target_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def walk(site: Origin, *, without: str = r"(?!)") -> dict[str, Answer]:
    """Every page of a site that can be reached from its front page by its own links."""
    pages: dict[str, Answer] = {}
    waiting = ["/"]
    while waiting:
        target = waiting.pop()
        if target in pages or re.search(without, target):
            continue
        answer = pages[target] = site.get(target)
        waiting += [
            target_of(link)
            for link in links_of(site.url + target, answer)
            if link.startswith(site.url + "/")
        ]
    return pages


BOUNDS = {"docs": r"^/search\?", "calendar": r"/(?!2024/)\d{4}/"}


def closures(web: Mapping[str, Origin]) -> dict[str, dict[str, Answer]]:
    """The pages of every site, with the bounds that the endless parts need."""
    return {name: walk(site, without=BOUNDS.get(name, r"(?!)")) for name, site in web.items()}


@pytest.fixture(scope="module")
def pages(web: Mapping[str, Origin]) -> dict[str, dict[str, Answer]]:
    return closures(web)


def digest(web: Mapping[str, Origin]) -> str:
    """One number for the content of the web, whatever its ports are; a few giant pages suffice."""
    sample = {**BOUNDS, "giant": r"\d\d"}
    content = "\n".join(
        f"{name} {target} {answer.status} {answer.headers} {answer.body!r}"
        for name, site in web.items()
        for target, answer in sorted(walk(site, without=sample.get(name, r"(?!)")).items())
    )
    for name, origin in web.items():
        content = content.replace(origin.url.removeprefix("http://"), name)
    return hashlib.sha256(content.encode()).hexdigest()


def test_every_site_has_the_size_it_is_meant_to_have(
    sites: Any, pages: dict[str, dict[str, Answer]]
) -> None:
    """All but the calendar and the search are finite, and about as large as the README says."""
    sizes = {name: len(site) for name, site in pages.items()}
    days, months, fronts = 366, 12, 1
    assert sizes == {
        "docs": pytest.approx(150, abs=10),
        "shop": pytest.approx(1600, abs=50),
        "news": days + months + len(sites.news.TOPICS) + 3,
        "giant": sites.giant.PARCELS + fronts,
        "private": 7,
        "silent": 6,
        "slow": 6,
        "moved": pytest.approx(20, abs=2),
        "broken": len(sites.broken.TROUBLES) + fronts,
        "calendar": days + months + fronts,
        "market": 5,  # what can be seen of it without a browser
    }


def test_every_link_leads_where_the_site_says(
    sites: Any, web: Mapping[str, Origin], pages: dict[str, dict[str, Answer]]
) -> None:
    """Pages are 200, but for those that their module names as dead, moved or broken."""
    named = {
        "docs": set(sites.docs.DEAD_LINKS),
        "news": set(sites.news.WITHDRAWN),
        "broken": set(sites.broken.TROUBLES),
    }
    for name, site in pages.items():
        odd = {target for target, answer in site.items() if answer.status != 200}
        if name == "moved":
            assert all(300 <= site[target].status < 400 for target in odd)
        else:
            assert odd <= named.get(name, set()), name
    assert {t: pages["docs"][t].status for t in sites.docs.DEAD_LINKS} == sites.docs.DEAD_LINKS


def test_links_between_the_sites_work(
    web: Mapping[str, Origin], pages: dict[str, dict[str, Answer]]
) -> None:
    """A link to another site of the web finds its page there."""
    by_url = {origin.url: origin for origin in web.values()}
    crossing = {
        link
        for name, site in pages.items()
        for target, answer in site.items()
        for link in links_of(web[name].url + target, answer)
        if not link.startswith(web[name].url)
    }
    outside = {link for link in crossing if "://127.0.0.1:" not in link}
    assert outside == {"https://www.example.org/orchards"}
    for link in crossing - outside:
        origin = by_url["http://" + urlsplit(link).netloc]
        assert origin.get(target_of(link)).status == 200, link


def test_the_main_job_stays_on_three_sites(
    web: Mapping[str, Origin], pages: dict[str, dict[str, Answer]]
) -> None:
    """Handbook, shop and gazette link to each other and to no site that is made to be difficult."""
    easy = [web[name].url for name in ("docs", "shop", "news")]
    for name in ("docs", "shop", "news"):
        for target, answer in pages[name].items():
            local = [x for x in links_of(web[name].url + target, answer) if "127.0.0.1" in x]
            assert all(link.startswith(tuple(easy)) for link in local)


DIGEST_ELSEWHERE = """
import sys
sys.path[:0] = [{project!r}, {tests!r}]
import example.web, test_example_web as test
server = example.web.open_web()
print(test.digest(server.origins))
server.stop()
"""


def test_the_web_is_the_same_in_every_process(sites: Any) -> None:
    """No hash seed, port or date changes a page."""
    server: ScriptedServer = sites.open_web()
    here = digest(server.origins)
    server.stop()
    code = DIGEST_ELSEWHERE.format(project=str(PROJECT), tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", code]
    elsewhere = subprocess.run(
        command,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": str(PROJECT.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.strip() == here


def test_all_spellings_show_the_same_page(web: Mapping[str, Origin]) -> None:
    """The page of spellings spells one address in many ways."""
    docs = web["docs"]
    links = set(links_of(docs / "spellings.html", docs.get("/spellings.html")))
    assert len(links) > 1
    assert {docs.get(target_of(link)) for link in links} == {docs.get("/trees/apple/")}


def test_search_results_go_on_for_ever_and_are_closed_to_robots(web: Mapping[str, Origin]) -> None:
    """Each result page suggests longer searches, which is why robots.txt forbids them."""
    docs = web["docs"]
    (first, *_) = [x for x in links_of(docs / "search", docs.get("/search")) if "?q=" in x]
    robots = Protego.parse(str(docs.get("/robots.txt").body))
    found = [x for x in links_of(first, docs.get(target_of(first))) if "?q=" in x]
    assert found
    assert all(len(link) > len(first) and not robots.can_fetch(link, "example") for link in found)
    assert robots.can_fetch(docs / "search", "example")


def test_the_order_of_facets_does_not_matter_to_the_shop(web: Mapping[str, Origin]) -> None:
    """Two orders of the same choice are two addresses with the same products."""
    shop = web["shop"]
    one = shop.get("/hats/?colour=red&sort=price")
    other = shop.get("/hats/?sort=price&colour=red")
    products = [re.findall(r"/products/\w+", str(answer.body)) for answer in (one, other)]
    assert products[0] == products[1] != []


def test_the_shop_links_to_facets_in_the_order_of_choice(
    pages: dict[str, dict[str, Answer]],
) -> None:
    """Permutations of the same parameters are really linked: the trap is there."""
    assert {"/hats/?colour=red&sort=price", "/hats/?sort=price&colour=red"} <= set(pages["shop"])


def test_tracking_parameters_change_nothing(
    sites: Any, web: Mapping[str, Origin], pages: dict[str, dict[str, Answer]]
) -> None:
    """Every linked variant of a product is the page that its canonical link names."""
    shop = web["shop"]
    variants = {t: a for t, a in pages["shop"].items() if t.startswith("/products/")}
    assert len(variants) > len(sites.shop.PRODUCTS)
    assert all(shop.get(target.partition("?")[0]) == page for target, page in variants.items())


def test_sitemaps_list_every_article_and_one_that_is_gone(
    sites: Any, web: Mapping[str, Origin]
) -> None:
    """The sitemap index leads to all of 2024, and to the withdrawn article."""
    news = web["news"]
    maps = re.findall(r"<loc>(.*?)</loc>", str(news.get("/sitemap.xml").body))
    listed = [
        target_of(url)
        for place in maps
        for url in re.findall(r"<loc>(.*?)</loc>", str(news.get(target_of(place)).body))
    ]
    articles = [sites.news.path_of(day) for day in sites.news.DAYS]
    assert sorted(listed) == sorted([*articles, *sites.news.WITHDRAWN])
    assert {path: news.get(path).status for path in sites.news.WITHDRAWN} == {"/2024/02/30/": 410}


def test_the_feed_links_to_articles_with_a_tracking_parameter(web: Mapping[str, Origin]) -> None:
    """The feed names known articles under addresses of its own."""
    news = web["news"]
    items = re.findall(r"<link>([^<]*utm_source=rss)</link>", str(news.get("/feed.xml").body))
    assert len(items) == 20
    assert all(news.get(target_of(url)).status == 200 for url in items)


def test_robots_rules_close_what_they_name(sites: Any, web: Mapping[str, Origin]) -> None:
    """The private garden is open but for the forbidden paths; the mill asks for a second."""
    private, slow, silent = web["private"], web["slow"], web["silent"]
    rules = Protego.parse(str(private.get("/robots.txt").body))
    closed = {t for t in walk(private) if not rules.can_fetch(private / t, "example")}
    assert closed == sites.robots.FORBIDDEN
    assert Protego.parse(str(slow.get("/robots.txt").body)).crawl_delay("example") == 1
    assert [silent.get("/robots.txt").status for _ in range(3)] == [503] * 3


def follow(web: Mapping[str, Origin], url: str) -> list[str]:
    """The addresses that redirects lead through, up to 40 of them or to the first outside."""
    by_url = {origin.url: origin for origin in web.values()}
    seen = [url]
    while len(seen) < 40 and (origin := by_url.get("http://" + urlsplit(url).netloc)):
        answer = origin.get(target_of(url))
        refresh = re.search(r'content="0; url=([^"]*)"', str(answer.body))
        location = refresh[1] if refresh else dict(answer.headers).get("Location")
        if location is None:
            break
        url = urldefrag(urljoin(url, str(location)))[0]
        seen.append(url)
    return seen


def test_redirects_end_as_they_are_named(sites: Any, web: Mapping[str, Origin]) -> None:
    """The honest ones end here, loops do not end, the others lead where they say."""
    moved = web["moved"]
    assert {follow(web, moved / t)[-1] for t in sites.moved.ENDS_WELL} == {moved / "here.html"}
    assert len(follow(web, moved / "/chain/1")) == sites.moved.CHAIN_LENGTH + 1
    assert len(follow(web, moved / "/endless/1")) == sites.moved.ENDLESS_LENGTH + 1
    assert len(follow(web, moved / "/loop/a")) == len(follow(web, moved / "/loop/self")) == 40
    away = [follow(web, moved / t)[-1] for t in sites.moved.LEADS_AWAY]
    names = ("docs", "private", "silent")
    assert all(end.startswith(web[name].url) for end, name in zip(away, names, strict=True))
    assert target_of(away[1]) in sites.robots.FORBIDDEN
    assert follow(web, moved / "/to-mail")[-1] == "mailto:miller@example.org"
    assert follow(web, moved / "/to-elsewhere")[-1] == "https://www.example.org/"
    assert moved.get("/without-location").status == 302


def test_troubles_are_as_lasting_as_they_are_named(sites: Any) -> None:
    """`always` and `then-fine` mean what they say in a newly opened web."""
    server: ScriptedServer = sites.open_web()
    broken = server.origins["broken"]
    outcomes = {
        path: [(a.status, a.fault) for a in (broken.get(path), broken.get(path))]
        for path in sites.broken.TROUBLES
    }
    server.stop()
    assert outcomes["/always-500"] == [(500, None)] * 2
    assert outcomes["/503-then-fine"] == [(503, None), (200, None)]
    assert outcomes["/429-then-fine"] == [(429, None), (200, None)]
    assert outcomes["/reset-then-fine"] == [(200, "reset"), (200, None)]
    assert outcomes["/always-reset"] == [(200, "reset")] * 2
    assert outcomes["/gone"] == [(410, None)] * 2


def test_the_calendar_never_ends(web: Mapping[str, Origin]) -> None:
    """After a thousand months there is a next one, and every one is new."""
    calendar = web["calendar"]
    url, seen = calendar / "2024/01/", set()
    for _ in range(1000):
        answer = calendar.get(target_of(url))
        assert answer.status == 200
        seen.add(url)
        url = links_of(url, answer)[-1]
    assert len(seen) == 1000
    assert url == calendar / "2107/05/"


@pytest.mark.parametrize("path", ["/2024/02/30/", "/2024/13/", "/9999/01/", "/0000/01/", "/x"])
def test_the_calendar_knows_no_impossible_days(web: Mapping[str, Origin], path: str) -> None:
    """What is no date is not found."""
    assert web["calendar"].get(path).status == 404


def test_the_last_day_of_february_is_in_the_calendar(web: Mapping[str, Origin]) -> None:
    """2024 is a leap year here too."""
    leap_day = f"/{date(2024, 2, 29):%Y/%m/%d}/"
    assert web["calendar"].get(leap_day).status == 200


def test_a_taken_port_names_the_setting(web: Mapping[str, Origin], project: None) -> None:
    """A crawl that cannot serve its web says how to choose another port."""
    from example.extensions import LocalWeb

    with pytest.raises(OSError, match="EXAMPLE_WEB_PORT=N"):
        LocalWeb(web["docs"].port, None, is_served_here=True)


def test_a_web_served_elsewhere_has_the_same_addresses(sites: Any, project: None) -> None:
    """With EXAMPLE_WEB_ENABLED=False the spiders find the web of `python -m example.web`."""
    from example.extensions import LocalWeb

    web = LocalWeb(18700, None, is_served_here=False)
    assert web.server is None
    assert web.urls == sites.addresses(18700)
    assert (web.urls["docs"], len(web.urls)) == ("http://127.0.0.1:18700", 11)
