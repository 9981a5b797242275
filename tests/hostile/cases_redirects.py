"""Redirects: chains, circles, and ways into what is forbidden."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from scrapy import Request as ScrapyRequest

from scrapy_frontier.testing import Answer, Request, page, redirect

from .plans import OBEY, Cases, Plan, Seen
from .web import Web

CASES: Final = Cases()

IN_SCOPE: Final = {"allowed_domains": ["127.0.0.1"]}

LOOPS: Final = {"REDIRECT_MAX_TIMES": 4}


def gate(location: str, *, opens: bool = True) -> Any:
    """A page that sends its client to `location` for want of a cookie, or for ever."""

    def answer(request: Request) -> Answer:
        if opens and "ok=1" in request.headers.get("cookie", ""):
            return page("in")
        return Answer(status=302, headers=(("Location", location), ("Set-Cookie", "ok=1")))

    return answer


# FC14


def cookie_gate(web: Web, location: str) -> Plan:
    web.a.on("/gate", gate(location))
    fragment = location if location.startswith("#") else ""
    return Plan(
        requests=[web.a / "gate"],
        asked={"A/gate": 2},
        delivered=[f"A/gate{fragment}"],
        fates={"A/gate": "succeeded"},
    )


for letter, location in zip("abc", ("/gate", "", "#x"), strict=True):
    CASES.add(
        f"FC14.{letter}",
        f"A page sets a cookie and redirects to itself (`Location: {location}`)",
        "It is asked again, and delivered",
    )(partial(cookie_gate, location=location))


@CASES.add(
    "FC14.d", "It does so for ever", "The errback is told after `REDIRECT_MAX_TIMES` (4) redirects"
)
def gate_that_never_opens(web: Web) -> Plan:
    web.a.on("/gate", gate("/gate", opens=False))
    return Plan(
        requests=[web.a / "gate"],
        settings=LOOPS,
        asked={"A/gate": 5},
        failed={"A/gate": "redirect.limit"},
        fates={"A/gate": "redirected redirect.refused"},
    )


# FC17


@CASES.add(
    "FC17.a", "A start URL redirects out of `allowed_domains`", "The other host is not asked"
)
def off_site_start(web: Web) -> Plan:
    web.a.on("/off", redirect(web.b / "landing"))
    web.forbid(web.b.url)
    return Plan(
        attributes={**IN_SCOPE, "start_urls": [web.a / "off"]},
        asked={"A/off": 1},
        fates={"B/landing": "suppressed scope.allowed_domains"},
    )


@CASES.add(
    "FC17.b",
    "A link leads to such a redirect",
    "The other host is not asked, the errback is told why",
)
def off_site_link(web: Web) -> Plan:
    web.a.on("/", page("", ["/off"]))
    web.a.on("/off", redirect(web.b / "landing"))
    web.forbid(web.b.url)
    return Plan(
        requests=[web.a / ""],
        attributes=IN_SCOPE,
        follows=True,
        asked={"A/": 1, "A/off": 1},
        delivered=["A/"],
        failed={"A/off": "scope.allowed_domains"},
        fates={"B/landing": "suppressed scope.allowed_domains"},
    )


@CASES.add(
    "FC17.c", "The same, requested with `allow_offsite`", "The redirect is followed, as was wished"
)
def off_site_by_wish(web: Web) -> Plan:
    web.a.on("/off", redirect(web.b / "landing"))
    web.b.on("/landing", page("landing"))
    return Plan(
        requests=[ScrapyRequest(web.a / "off", meta={"allow_offsite": True})],
        attributes=IN_SCOPE,
        asked={"A/off": 1, "B/landing": 1},
        delivered=["B/landing"],
    )


# FC24


@CASES.add(
    "FC24",
    "An endless chain of ever new URLs",
    "The errback is told after `REDIRECT_MAX_TIMES` (4) redirects",
)
def endless_chain(web: Web) -> Plan:
    def further(request: Request) -> Answer:
        return redirect(f"/r?n={int(request.query[2:]) + 1}")

    web.a.on("/r", further)
    return Plan(
        requests=[web.a / "r?n=0"],
        settings=LOOPS,
        asked={f"A/r?n={number}": 1 for number in range(5)},
        failed={"A/r?n=4": "redirect.limit"},
        fates={"A/r?n=3": "redirected redirect.302", "A/r?n=4": "redirected redirect.refused"},
    )


# Chains


def not_followed(web: Web, status: int) -> Plan:
    """A status that sends nobody elsewhere, whatever its `Location`."""
    web.a.on("/x", Answer(status=status, headers=(("Location", "/y"),)))
    return Plan(requests=[web.a / "x"], asked={"A/x": 1}, failed={"A/x": f"HTTP {status}"})


@CASES.add("chain", "A chain over four origins", "Each is asked once; the last page is delivered")
def chain_over_origins(web: Web) -> Plan:
    web.a.on("/1", redirect(web.b / "2", 301))
    web.b.on("/2", redirect(web.c / "3", 302))
    web.c.on("/3", redirect(web.d / "4", 307))
    web.d.on("/4", redirect(web.a / "5", 308))
    web.a.on("/5", page("end"))

    def proof(seen: Seen) -> bool:
        meta = seen.responses[0].meta
        way = [web.a / "1", web.b / "2", web.c / "3", web.d / "4"]
        return (
            meta["redirect_urls"] == way
            and meta["redirect_times"] == 4
            and meta["redirect_reasons"] == [301, 302, 307, 308]
        )

    return Plan(
        requests=[web.a / "1"],
        asked={"A/1": 1, "B/2": 1, "C/3": 1, "D/4": 1, "A/5": 1},
        delivered=["A/5"],
        proof=proof,
        fates={"C/3": "redirected redirect.307", "A/5": "succeeded"},
    )


@CASES.add(
    "chain.joined",
    "Two pages redirect to a third one, which is crawled besides",
    "It is asked once",
)
def joined(web: Web) -> Plan:
    web.a.on("/", page("", ["/new", "/old", "/older"]))
    web.a.on("/old", redirect("/new", 301))
    web.a.on("/older", redirect("/new", 301))
    web.a.on("/new", page("new"))
    return Plan(
        requests=[web.a / ""],
        follows=True,
        asked={"A/": 1, "A/new": 1, "A/old": 1, "A/older": 1},
        delivered=["A/", "A/new"],
        failed=None,
        fates={"A/old": "redirected redirect.301", "A/older": "redirected redirect.301"},
    )


@CASES.add(
    "chain.schemes",
    "https to http and back, on the same host and port",
    "Each is asked once, and the last page is delivered",
)
def over_schemes(web: Web) -> Plan:
    web.s.on("/1", redirect(web.p / "2"))
    web.p.on("/2", redirect(web.s / "3"))
    web.s.on("/3", page("end"))
    return Plan(
        requests=[web.s / "1"],
        asked={"S/1": 1, "P/2": 1, "S/3": 1},
        delivered=["S/3"],
    )


@CASES.add(
    "chain.same-path",
    "http redirects to the same path on https",
    "The two are two pages: both are asked once",
)
def to_https(web: Web) -> Plan:
    web.p.on("/x", redirect(web.s / "x", 301))
    web.s.on("/x", page("secure"))
    return Plan(
        requests=[web.p / "x"],
        asked={"P/x": 1, "S/x": 1},
        delivered=["S/x"],
        fates={"P/x": "redirected redirect.301", "S/x": "succeeded"},
    )


@CASES.add(
    "chain.breaks",
    "The second host of a chain resets the connection, each time",
    "It is tried again (`RETRY_TIMES` 1); the errback is told",
)
def chain_that_breaks(web: Web) -> Plan:
    web.a.on("/1", redirect(web.b / "2"))
    web.b.on("/2", Answer(fault="reset"))
    return Plan(
        requests=[web.a / "1"],
        asked={"A/1": 1, "B/2": 2},
        failed={"B/2": "DownloadFailedError"},
        fates={"A/1": "redirected redirect.302", "B/2": "failed download.reset"},
    )


@CASES.add(
    "chain.retried",
    "Each host of a chain answers 503 at first",
    "Each is tried again, and the last page is delivered",
)
def chain_with_retries(web: Web) -> Plan:
    busy = Answer(status=503)
    web.a.on("/1", [busy, redirect(web.b / "2")])
    web.b.on("/2", [busy, redirect("/3")])
    web.b.on("/3", [busy, page("end")])
    return Plan(
        requests=[web.a / "1"],
        settings={"RETRY_TIMES": 3},
        asked={"A/1": 2, "B/2": 2, "B/3": 2},
        delivered=["B/3"],
    )


@CASES.add(
    "chain.visit",
    "A page that was fetched is requested again over a redirect, with `dont_filter`",
    "It is fetched again, as was wished",
)
def visit_over_a_redirect(web: Web) -> Plan:
    web.a.on("/old", redirect("/new"))
    web.a.on("/new", page("new"))
    return Plan(
        attributes={"second": ScrapyRequest(web.a / "old", dont_filter=True)},
        requests=[web.a / "new"],
        asked={"A/new": 2, "A/old": 1},
        delivered=["A/new", "A/new"],
    )


for status in (300, 304, 305, 306):
    CASES.add(
        f"status.{status}", f"{status} with a `Location`", "It is not followed; the errback is told"
    )(partial(not_followed, status=status))


@CASES.add("status.201", "201 with a `Location`", "It is delivered")
def created(web: Web) -> Plan:
    web.a.on("/x", Answer("made", status=201, headers=(("Location", "/y"),)))
    return Plan(requests=[web.a / "x"], asked={"A/x": 1}, delivered=["A/x"])


# Circles


def circle(web: Web, ways: str) -> Plan:
    """Pages that redirect to each other in turn; the last of them leads back to the first."""
    names = [f"{way[0]}/{number}" for number, way in enumerate(ways)]
    for name, onward in zip(names, [*names[1:], names[0]], strict=True):
        origin, target = web.origins[name[0]], web.origins[onward[0]]
        origin.on(name[1:], redirect(target / onward[2:]))
    first = web.origins[names[0][0]] / names[0][2:]
    return Plan(
        requests=[first],
        settings=LOOPS,
        asked=dict.fromkeys(names, 1),
        failed={names[-1]: "redirect.loop"},
        fates={names[-1]: "redirected redirect.refused"},
    )


for name, ways, title in (
    ("2", "AA", "Two pages redirect to each other"),
    ("3", "ABC", "Three hosts redirect in a circle"),
):
    CASES.add(f"loop.{name}", title, "Each is asked once; the errback is told that it is a circle")(
        partial(circle, ways=ways)
    )


@CASES.add(
    "loop.self",
    "A page redirects to itself for ever, and sets no cookie",
    "The errback is told after `REDIRECT_MAX_TIMES` (4) redirects",
)
def itself(web: Web) -> Plan:
    web.a.on("/x", redirect("/x"))
    return Plan(
        requests=[web.a / "x"],
        settings=LOOPS,
        asked={"A/x": 5},
        failed={"A/x": "redirect.limit"},
        fates={"A/x": "redirected redirect.refused"},
    )


@CASES.add(
    "loop.cookie",
    "A circle of two pages that opens by a cookie",
    "It is walked a second time, and the page behind it is delivered",
)
def circle_that_opens(web: Web) -> Plan:
    web.a.on("/page", gate("/set"))
    web.a.on("/set", Answer(status=302, headers=(("Location", "/page"), ("Set-Cookie", "x=1"))))
    return Plan(
        requests=[web.a / "page"],
        asked={"A/page": 2, "A/set": 1},
        delivered=["A/page"],
        fates={"A/page": "succeeded", "A/set": "redirected redirect.302"},
    )


@CASES.add(
    "loop.cookie-first",
    "A page sets a cookie and redirects to a check, which redirects back",
    "The page is asked again, with the cookie, and delivered",
)
def cookie_check(web: Web) -> Plan:
    web.a.on("/page", gate("/check"))
    web.a.on("/check", redirect("/page"))
    return Plan(
        requests=[web.a / "page"],
        asked={"A/page": 2, "A/check": 1},
        delivered=["A/page"],
        fates={"A/page": "succeeded", "A/check": "redirected redirect.302"},
    )


@CASES.add(
    "loop.login",
    "A page redirects to a login on another host, which sends back with a ticket for a cookie",
    "The page is asked again, with the cookie, and delivered",
)
def login(web: Web) -> Plan:
    def protected(request: Request) -> Answer:
        if "ok=1" in request.headers.get("cookie", ""):
            return page("in")
        return redirect(web.b / "login")

    cookie = ("Set-Cookie", "ok=1; Path=/")
    web.a.on("/page", protected)
    web.b.on("/login", redirect(web.a / "ticket?t=1"))
    web.a.on("/ticket", Answer(status=302, headers=(("Location", "/page"), cookie)))
    return Plan(
        requests=[web.a / "page"],
        asked={"A/page": 2, "B/login": 1, "A/ticket?t=1": 1},
        delivered=["A/page"],
        fates={"A/page": "succeeded"},
    )


@CASES.add(
    "loop.start",
    "The circle begins behind the page that was asked for",
    "Each is asked once; the errback is told",
)
def circle_behind_a_start(web: Web) -> Plan:
    web.a.on("/start", redirect("/1"))
    web.a.on("/1", redirect("/2"))
    web.a.on("/2", redirect("/1"))
    return Plan(
        requests=[web.a / "start"],
        settings=LOOPS,
        asked={"A/start": 1, "A/1": 1, "A/2": 1},
        failed={"A/2": "redirect.loop"},
    )


# Into what is forbidden


@CASES.add(
    "forbidden.same",
    "A redirect into a path that robots.txt disallows",
    "That is not asked; the errback is told",
)
def into_a_disallowed_path(web: Web) -> Plan:
    web.disallow(web.a, "/private")
    web.a.on("/r", redirect("/private/x"))
    return Plan(
        requests=[web.a / "r"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/r": 1},
        failed={"A/private/x": "Forbidden by robots.txt"},
        fates={"A/private/x": "suppressed robots.disallow", "A/r": "redirected redirect.302"},
    )


@CASES.add(
    "forbidden.other",
    "A redirect into a path that another host's robots.txt disallows",
    "The other host is asked for its robots.txt, and for nothing else",
)
def into_a_disallowed_path_elsewhere(web: Web) -> Plan:
    web.disallow(web.b, "/private")
    web.a.on("/r", redirect(web.b / "private/x"))
    return Plan(
        requests=[web.a / "r"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/r": 1, "B/robots.txt": 1},
        failed={"B/private/x": "Forbidden by robots.txt"},
        fates={"B/private/x": "suppressed robots.disallow"},
    )


@CASES.add(
    "forbidden.chain",
    "A chain of three hosts, the second of which disallows the hop",
    "The chain ends there",
)
def chain_through_a_disallowed_path(web: Web) -> Plan:
    web.disallow(web.b, "/private")
    web.a.on("/r", redirect(web.b / "private/x"))
    web.b.on("/private/x", redirect(web.c / "end"))
    web.c.on("/end", page("end"))
    return Plan(
        requests=[web.a / "r"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/r": 1, "B/robots.txt": 1},
        failed={"B/private/x": "Forbidden by robots.txt"},
    )


@CASES.add(
    "forbidden.unreachable",
    "A redirect to a host whose robots.txt answers 503",
    "The page waits; it is not asked",
)
def into_an_unreachable_origin(web: Web) -> Plan:
    web.b.on("/robots.txt", Answer("busy", status=503))
    web.b.on("/page", page("page"))
    web.forbid(web.b / "page")
    web.a.on("/r", redirect(web.b / "page"))
    return Plan(
        requests=[web.a / "r"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/r": 1, "B/robots.txt": 2},
        fates={"B/page": "scheduled"},
        is_over=False,
    )


@CASES.add(
    "scope.chain",
    "A chain leaves `allowed_domains` and would come back",
    "The other host is not asked; the errback is told",
)
def chain_out_of_scope_and_back(web: Web) -> Plan:
    web.a.on("/r", redirect(web.b / "out"))
    web.b.on("/out", redirect(web.a / "in"))
    web.forbid(web.b.url)
    return Plan(
        requests=[web.a / "r"],
        attributes=IN_SCOPE,
        asked={"A/r": 1},
        failed={"A/r": "scope.allowed_domains"},
        fates={"B/out": "suppressed scope.allowed_domains", "A/in": "unknown"},
    )
