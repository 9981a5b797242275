"""robots.txt: whom and what it holds for, where it stands, and who may pass it by."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, Final

from scrapy import Request

from scrapy_frontier.testing import Answer, page, redirect, text

from .cases_robots import BUSY, FORBIDDEN, PRIVATE, obeyed
from .plans import AT_ONCE, OBEY, AtLeast, Cases, Plan, Seen
from .web import Web, robots

CASES: Final = Cases()

# FC06

AGENTS: Final = {
    "a": ("bot", "mybot", True),
    "b": ("google", "googlebot-mobile", True),
    "c": ("mybot/2.0", "mybot/1.0", False),
    "d": ("mybot", "Mozilla/5.0 (compatible; mybot/1.0)", False),
    "e": ("MyBot", "MYBOT/1.0 (+http://example.com)", False),
}


def agent(web: Web, name: str, user_agent: str, is_allowed: bool) -> Plan:
    web.a.on("/robots.txt", text(f"User-agent: {name}\nDisallow: /\n\nUser-agent: *\nDisallow:\n"))
    web.a.on("/x", page("x"))
    settings = {**OBEY, "USER_AGENT": user_agent}
    if is_allowed:
        return Plan(
            requests=[web.a / "x"],
            settings=settings,
            asked={"A/robots.txt": 1, "A/x": 1},
            delivered=["A/x"],
        )
    return Plan(
        requests=[web.a / "x"],
        settings=settings,
        asked={"A/robots.txt": 1},
        failed={"A/x": FORBIDDEN},
    )


for letter, (name, user_agent, is_allowed) in AGENTS.items():
    CASES.add(
        f"FC06.{letter}",
        f"A group for `{name}`, a crawler that calls itself `{user_agent}`",
        "It does not concern it: the page is asked" if is_allowed else "It does: no page is asked",
    )(partial(agent, name=name, user_agent=user_agent, is_allowed=is_allowed))


@CASES.add(
    "robots.agent-setting",
    "`ROBOTSTXT_USER_AGENT` names another robot than `USER_AGENT`",
    "The group of the former holds",
)
def agent_of_the_setting(web: Web) -> Plan:
    rules = text(
        "User-agent: hostilebot\nDisallow: /open\n\nUser-agent: other\nDisallow: /private\n"
    )
    return obeyed(web, rules, {"ROBOTSTXT_USER_AGENT": "Other"})


# FC07, FC10: paths


DOTS: Final = {"a": "pub/../private/x", "b": "./private/x", "c": "a/%2e%2e/private/x"}


def dot_segments(web: Web, path: str) -> Plan:
    web.disallow(web.a, "/private")
    web.a.otherwise = page("any")
    web.forbid(web.a / "pub/..", web.a / "./", web.a / "a/")
    return Plan(
        requests=[web.a / path],
        settings=OBEY,
        asked={"A/robots.txt": 1},
        failed={f"A/{path}": FORBIDDEN},
        fates={"A/private/x": "suppressed robots.disallow"},
    )


for letter, path in DOTS.items():
    CASES.add(
        f"FC07.{letter}",
        f"`/{path}`, where `/private` is disallowed",
        "It is `/private/x`, and not asked",
    )(partial(dot_segments, path=path))


@CASES.add(
    "FC07.d", "`//private/x`, where `/private` is disallowed", "It is another path, and asked"
)
def doubled_slash(web: Web) -> Plan:
    web.disallow(web.a, "/private")
    web.a.otherwise = page("any")
    return Plan(
        requests=[f"{web.a.url}//private/x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A//private/x": 1},
        delivered=["A//private/x"],
    )


@CASES.add("FC10", "`Disallow: /` and URLs without a path", "None is asked")
def no_path(web: Web) -> Plan:
    web.a.on("/robots.txt", robots(["/"]))
    web.forbid(f"{web.a.url}?", web.a / "?")
    return Plan(
        requests=[web.a.url, f"{web.a.url}?q=a"],
        settings=OBEY,
        asked={"A/robots.txt": 1},
        failed=None,
        fates={
            "A/": "suppressed robots.disallow",
            "A/?q=a": "suppressed robots.disallow",
        },
    )


@CASES.add(
    "robots.itself", "robots.txt is requested as a page, `Disallow: /`", "It is always allowed"
)
def robots_as_a_page(web: Web) -> Plan:
    web.a.on("/robots.txt", robots(["/"]))
    return Plan(
        requests=[web.a / "robots.txt", web.a / "x"],
        settings=OBEY,
        asked={"A/robots.txt": 2},
        delivered=["A/robots.txt"],
        failed={"A/x": FORBIDDEN},
    )


# FC11: authorities


@CASES.add(
    "FC11",
    "http allows all, https at the same host and port forbids all",
    "Each has its own robots.txt: the page is asked by http, not by https",
)
def schemes(web: Web) -> Plan:
    web.p.on("/robots.txt", text("User-agent: *\nAllow: /\n"))
    web.s.on("/robots.txt", robots(["/"]))
    web.p.on("/a", page("a"))
    web.s.on("/a", page("a"))
    web.forbid(web.s / "a")
    return Plan(
        requests=[web.p / "a", web.s / "a"],
        settings=OBEY,
        asked={"P/robots.txt": 1, "P/a": 1, "S/robots.txt": 1},
        delivered=["P/a"],
        failed={"S/a": FORBIDDEN},
    )


@CASES.add(
    "robots.ports", "Two ports of one host with different rules", "Each has its own robots.txt"
)
def ports(web: Web) -> Plan:
    web.disallow(web.a, "/x")
    web.disallow(web.d, "/y")
    web.a.on("/y", page("y"))
    web.d.on("/x", page("x"))
    return Plan(
        requests=[origin / path for origin in (web.a, web.d) for path in ("x", "y")],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/y": 1, "D/robots.txt": 1, "D/x": 1},
        delivered=["A/y", "D/x"],
        failed={"A/x": FORBIDDEN, "D/y": FORBIDDEN},
    )


# FC13


@CASES.add(
    "FC13", "`Crawl-delay: 0.3` and three pages", "At least 0.3 s between requests to the host"
)
def crawl_delay(web: Web) -> Plan:
    web.a.on("/robots.txt", text("User-agent: *\nCrawl-delay: 0.3\n"))
    web.a.otherwise = page("any")

    def smallest_interval_s(seen: Seen) -> float:
        pages = [hit.arrived_at for hit in web.log.of(web.a.url)]
        return min((later - earlier for earlier, later in pairwise(pages[1:])), default=0)

    def proof(seen: Seen) -> bool:
        return smallest_interval_s(seen) >= 0.299

    return Plan(
        requests=[web.a / "1", web.a / "2", web.a / "3"],
        settings={**OBEY, **AT_ONCE},
        asked={"A/robots.txt": 1, "A/1": 1, "A/2": 1, "A/3": 1},
        delivered=["A/1", "A/2", "A/3"],
        proof=proof,
        shows=lambda seen: f"at least {smallest_interval_s(seen):.1f} s between them",
    )


@CASES.add(
    "robots.delay-short",
    "`Crawl-delay: 0.01`, `DOWNLOAD_DELAY = 0.2`",
    "The longer of the two is kept",
)
def short_crawl_delay(web: Web) -> Plan:
    web.a.on("/robots.txt", text("User-agent: *\nCrawl-delay: 0.01\n"))
    web.a.otherwise = page("any")
    return Plan(
        requests=[web.a / "1", web.a / "2"],
        settings={**OBEY, "DOWNLOAD_DELAY": 0.2},
        asked={"A/robots.txt": 1, "A/1": 1, "A/2": 1},
        delivered=["A/1", "A/2"],
        proof=lambda seen: (web.log.smallest_gap_s(web.a.url) or 0) >= 0.199,
    )


# FC04: redirects of robots.txt


def redirected(web: Web, target: str, label: str, **attributes: Any) -> Plan:
    """A/robots.txt redirects to `label`, whose rules hold for A."""
    origin = web.origins[label[0]]
    web.a.on("/robots.txt", redirect(target))
    origin.on(label[1:], text(PRIVATE))
    web.a.on("/private/x", page("x"))
    web.forbid(web.a / "private")
    return Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        attributes=attributes,
        asked={"A/robots.txt": 1, label: 1},
        failed={"A/private/x": FORBIDDEN},
        fates={"A/private/x": "suppressed robots.disallow"},
    )


@CASES.add(
    "FC04.a",
    "robots.txt redirects to another host, `allowed_domains` has the first only",
    "The rules there hold for the first: the page is not asked",
)
def off_site(web: Web) -> Plan:
    return redirected(web, web.b / "robots.txt", "B/robots.txt", allowed_domains=[web.a.host])


@CASES.add("FC04.b", "The same without `allowed_domains`", "The page is not asked")
def another_host(web: Web) -> Plan:
    return redirected(web, web.b / "robots.txt", "B/robots.txt")


@CASES.add(
    "FC04.c",
    "robots.txt redirects to another path of another host, `allowed_domains` has the first only",
    "The page is not asked: by the rules there, or for want of rules",
)
def another_path_of_another_host(web: Web) -> Plan:
    web.a.on("/robots.txt", redirect(web.b / "rules.txt"))
    web.b.on("/rules.txt", text(PRIVATE))
    web.forbid(web.a / "private")
    return Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        attributes={"allowed_domains": [web.a.host]},
        asked={"A/robots.txt": 1, "B/rules.txt": 1},
        failed={"A/private/x": FORBIDDEN},
    )


def robots_chain(web: Web, hops: int) -> str:
    """robots.txt of A leads over so many redirects to rules; the label of these."""
    web.a.on("/robots.txt", redirect("/r1"))
    for number in range(1, hops):
        web.a.on(f"/r{number}", redirect(f"/r{number + 1}"))
    web.a.on(f"/r{hops}", text(PRIVATE))
    web.a.on("/private/x", page("x"))
    return f"A/r{hops}"


@CASES.add("robots.5-hops", "robots.txt behind five redirects", "It is followed, the rules hold")
def five_hops(web: Web) -> Plan:
    robots_chain(web, 5)
    web.forbid(web.a / "private")
    return Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, **{f"A/r{number}": 1 for number in range(1, 6)}},
        failed={"A/private/x": FORBIDDEN},
    )


@CASES.add(
    "robots.6-hops",
    "robots.txt behind six redirects",
    "Five are followed; then it counts as not there, and the page is asked",
)
def six_hops(web: Web) -> Plan:
    robots_chain(web, 6)
    return Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        asked={
            "A/robots.txt": 1,
            **{f"A/r{number}": 1 for number in range(1, 6)},
            "A/private/x": 1,
        },
        delivered=["A/private/x"],
    )


@CASES.add(
    "robots.hops-hosts",
    "robots.txt behind redirects over three hosts",
    "The rules hold for the first",
)
def hops_over_hosts(web: Web) -> Plan:
    web.a.on("/robots.txt", redirect(web.b / "robots.txt"))
    web.b.on("/robots.txt", redirect(web.s / "robots.txt"))
    web.s.on("/robots.txt", text(PRIVATE))
    web.a.on("/private/x", page("x"))
    web.forbid(web.a / "private")
    return Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "B/robots.txt": 1, "S/robots.txt": 1},
        failed={"A/private/x": FORBIDDEN},
    )


@CASES.add(
    "robots.loop",
    "robots.txt redirects in a circle",
    "Each is asked once; it counts as not there, and the page is asked",
)
def robots_circle(web: Web) -> Plan:
    web.a.on("/robots.txt", redirect("/r1"))
    web.a.on("/r1", redirect("/robots.txt"))
    web.a.on("/x", page("x"))
    return Plan(
        requests=[web.a / "x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/r1": 1, "A/x": 1},
        delivered=["A/x"],
    )


@CASES.add(
    "robots.to-html", "robots.txt redirects to the home page", "It has no rules: the page is asked"
)
def robots_to_html(web: Web) -> Plan:
    web.a.on("/robots.txt", redirect("/"))
    web.a.on("/", page("Welcome", ["/x"]))
    web.a.on("/x", page("x"))
    return Plan(
        requests=[web.a / "x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/": 1, "A/x": 1},
        delivered=["A/x"],
    )


@CASES.add(
    "robots.to-503",
    "robots.txt redirects to a host that answers 503",
    "The first host's pages wait",
)
def robots_to_trouble(web: Web) -> Plan:
    web.a.on("/robots.txt", redirect(web.b / "robots.txt"))
    web.b.on("/robots.txt", BUSY)
    web.a.on("/x", page("x"))
    web.forbid(web.a / "x")
    return Plan(
        requests=[web.a / "x"],
        settings=OBEY,
        asked={"A/robots.txt": AtLeast(2), "B/robots.txt": AtLeast(2)},
        is_over=False,
    )


@CASES.add(
    "robots.to-mailto",
    "robots.txt redirects to `mailto:`",
    "It counts as not there: the page is asked",
)
def robots_to_mailto(web: Web) -> Plan:
    web.a.on("/robots.txt", redirect("mailto:webmaster@example.com"))
    web.a.on("/x", page("x"))
    return Plan(
        requests=[web.a / "x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/x": 1},
        delivered=["A/x"],
    )


@CASES.add(
    "robots.shared",
    "robots.txt of two hosts redirect to that of a third one, which is crawled too",
    "Its rules hold for all three",
)
def shared(web: Web) -> Plan:
    for origin in (web.a, web.b):
        origin.on("/robots.txt", redirect(web.c / "robots.txt"))
    web.disallow(web.c, "/private")
    web.forbid(web.a / "private", web.b / "private")
    for origin in (web.a, web.b, web.c):
        origin.on("/open", page("open"))
    names = ("A", "B", "C")
    return Plan(
        requests=[web.origins[name] / path for name in names for path in ("private/x", "open")],
        settings=OBEY,
        asked={
            "A/robots.txt": 1,
            "B/robots.txt": 1,
            "C/robots.txt": 3,
            **{f"{name}/open": 1 for name in names},
        },
        delivered=[f"{name}/open" for name in names],
        failed={f"{name}/private/x": FORBIDDEN for name in names},
    )


# Waivers, and one at a time


@CASES.add(
    "robots.waiver",
    "`dont_obey_robotstxt` on one of two requests for disallowed pages",
    "That one is asked, the other is not",
)
def waiver(web: Web) -> Plan:
    web.a.on("/robots.txt", text(PRIVATE))
    web.a.on("/private/1", page("1"))
    web.forbid(web.a / "private/2")
    return Plan(
        requests=[
            Request(web.a / "private/1", meta={"dont_obey_robotstxt": True}),
            web.a / "private/2",
        ],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/private/1": 1},
        delivered=["A/private/1"],
        failed={"A/private/2": FORBIDDEN},
    )


@CASES.add(
    "robots.one-at-a-time",
    "`CONCURRENT_REQUESTS = 1`, three hosts, a redirect between two of them",
    "Nobody waits for ever",
)
def one_at_a_time(web: Web) -> Plan:
    for origin in (web.a, web.b, web.c):
        origin.on("/robots.txt", Answer(PRIVATE, content_type="text/plain", delay_s=0.02))
        origin.on("/open", page("open"))
        web.forbid(origin / "private")
    web.a.on("/moved", redirect(web.b / "private/1"))
    return Plan(
        requests=[
            web.a / "moved",
            *(origin / path for origin in (web.a, web.b, web.c) for path in ("private/x", "open")),
        ],
        settings={**OBEY, "CONCURRENT_REQUESTS": 1},
        asked={
            "A/moved": 1,
            **{f"{name}/{path}": 1 for name in "ABC" for path in ("robots.txt", "open")},
        },
        delivered=["A/open", "B/open", "C/open"],
        failed={
            "B/private/1": FORBIDDEN,
            **{f"{name}/private/x": FORBIDDEN for name in "ABC"},
        },
    )
