"""robots.txt: what servers answer, and what may be asked for then."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from scrapy import Request

from scrapy_frontier.testing import Answer, page, redirect, text

from .plans import AT_ONCE, OBEY, AtLeast, Cases, Plan, Seen
from .web import Web, robots

CASES: Final = Cases()

FORBIDDEN: Final = "Forbidden by robots.txt"

PRIVATE: Final = "User-agent: *\nDisallow: /private\n"

QUICK: Final = {"DOWNLOAD_TIMEOUT": 0.3}


def obeyed(web: Web, answer: Answer, settings: dict[str, Any] | None = None) -> Plan:
    """This robots.txt keeps everybody out of /private, and lets all else be."""
    web.a.on("/robots.txt", answer)
    web.a.otherwise = page("any")
    web.forbid(web.a / "private")
    return Plan(
        requests=[web.a / "private/x", web.a / "open"],
        settings={**OBEY, **(settings or {})},
        asked={"A/robots.txt": 1, "A/open": 1},
        delivered=["A/open"],
        failed={"A/private/x": FORBIDDEN},
        fates={"A/private/x": "suppressed robots.disallow", "A/open": "succeeded"},
    )


def allowed(web: Web, answer: Answer) -> Plan:
    """Whatever this robots.txt is, it forbids nothing."""
    web.a.on("/robots.txt", answer)
    web.a.on("/private/x", page("x"))
    return Plan(
        requests=[web.a / "private/x"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/private/x": 1},
        delivered=["A/private/x"],
        fates={"A/private/x": "succeeded"},
    )


def waiting(web: Web, answer: Answer) -> Plan:
    """While this is all that can be had, nothing of the host is asked for; it is tried more than once."""
    web.a.on("/robots.txt", answer)
    web.a.otherwise = page("any")
    web.b.on("/page", page("page"))
    web.forbid(web.a / "private", web.a / "open")
    return Plan(
        requests=[web.a / "private/x", web.a / "open", web.b / "page"],
        settings={**OBEY, **QUICK},
        asked={"A/robots.txt": AtLeast(2), "B/robots.txt": 1, "B/page": 1},
        delivered=["B/page"],
        fates={"A/private/x": "scheduled", "A/open": "scheduled"},
        is_over=False,
    )


# FC01


def at_once(web: Web, delay_s: float) -> Plan:
    web.a.on("/robots.txt", Answer(PRIVATE, content_type="text/plain", delay_s=delay_s))
    web.a.otherwise = page("any")
    web.forbid(web.a / "private")
    return Plan(
        requests=[web.a / f"private/{number}" for number in range(6)],
        settings={**OBEY, **AT_ONCE},
        asked={"A/robots.txt": 1},
        failed={f"A/private/{number}": FORBIDDEN for number in range(6)},
        fates={f"A/private/{number}": "suppressed robots.disallow" for number in range(6)},
    )


for letter, delay_s, speed in (("a", 0, "answers at once"), ("b", 0.3, "takes its time")):
    CASES.add(
        f"FC01.{letter}",
        f"Six first requests at once to a host whose robots.txt {speed} and forbids them",
        "One request for robots.txt, none for the pages; six errbacks",
    )(partial(at_once, delay_s=delay_s))


# FC02 and all else that is no answer

BUSY: Final = Answer("<html>busy</html>", status=503)

UNREACHABLE: Final = {
    "FC02": ("answers 503 with a page", BUSY),
    "robots.500": ("answers 500, with rules that would allow all", text("User-agent: *\n", 500)),
    "robots.429": ("answers 429", Answer("slow down", status=429)),
    "robots.reset": ("resets the connection", Answer(fault="reset")),
    "robots.close": ("closes the connection", Answer(fault="close")),
    "robots.stall": ("never answers", Answer(fault="stall")),
    "robots.stall-half": (
        "stops in the middle of its body",
        Answer(PRIVATE, fault="stall", sent="half"),
    ),
    "robots.cut": ("is cut off in its body", Answer(PRIVATE, fault="close", sent="half")),
    "robots.cut-length": (
        "is shorter than its `Content-Length`",
        Answer("User-agent: *\n", content_length=500),
    ),
    "robots.304": ("answers 304, unasked", Answer(status=304)),
    "robots.999": ("answers with a status that nobody knows", text("User-agent: *\n", 999)),
    "robots.no-http": ("answers with what is no HTTP", Answer(raw=b"\0\1\2 robots\r\n\r\n")),
    "robots.cut-chunked": (
        "is cut off between two chunks",
        Answer(PRIVATE * 20, is_chunked=True, fault="close", sent="half"),
    ),
}

for number, (what, answer) in UNREACHABLE.items():
    CASES.add(
        number,
        f"robots.txt {what}",
        "No page of the host is asked; robots.txt is tried again; other hosts are crawled",
    )(partial(waiting, answer=answer))


@CASES.add(
    "robots.recovers",
    "robots.txt answers 503 at first, then with rules",
    "The rules hold from then on",
)
def recovers(web: Web) -> Plan:
    plan = obeyed(web, text(PRIVATE), QUICK)
    web.a.on("/robots.txt", [BUSY, text(PRIVATE)])
    return replace(plan, asked={"A/robots.txt": 2, "A/open": 1})


@CASES.add(
    "robots.refused", "Nobody listens at the host's port", "The host is given up, the others not"
)
def refused(web: Web) -> Plan:
    web.b.on("/page", page("page"))
    return Plan(
        requests=[web.x / "page", web.b / "page"],
        settings={**OBEY, **QUICK},
        asked={"B/robots.txt": 1, "B/page": 1},
        delivered=["B/page"],
        failed=None,
        fates={"X/page": "scheduled"},
        is_over=False,
    )


# What forbids nothing

HARMLESS: Final = {
    "robots.403": ("answers 403", text("no", 403)),
    "robots.404": (
        "answers 404, with rules in its page",
        text("User-agent: *\nDisallow: /\n", 404),
    ),
    "robots.410": ("answers 410", text("gone", 410)),
    "robots.401": ("answers 401", text("who are you", 401)),
    "robots.empty": ("is empty", text("")),
    "robots.204": ("answers 204", Answer(status=204)),
    "robots.html": ("is a page of HTML", page("Not found, but 200", ["/"])),
    "robots.garbage": (
        "is binary garbage",
        Answer(random.Random(1).randbytes(20_000), content_type="application/octet-stream"),
    ),
    "robots.zeros": ("is a megabyte of NUL bytes", Answer(b"\0" * 1_000_000)),
    "robots.other-agent": (
        "forbids all to another robot",
        text("User-agent: hostilebots\nDisallow: /\n\nUser-agent: hostile\nDisallow: /\n"),
    ),
}

for number, (what, answer) in HARMLESS.items():
    CASES.add(number, f"robots.txt {what}", "The page is asked and delivered")(
        partial(allowed, answer=answer)
    )


# FC05 and other shapes of a file that forbids


@CASES.add("FC05.a", "A byte order mark before the first line", "The rules hold")
def byte_order_mark(web: Web) -> Plan:
    return obeyed(web, Answer(b"\xef\xbb\xbf" + PRIVATE.encode(), content_type="text/plain"))


@CASES.add(
    "FC05.b", "The same with `ROBOTSTXT_PARSER = PythonRobotParser`", "The rules hold with it too"
)
def byte_order_mark_for_python(web: Web) -> Plan:
    return obeyed(
        web,
        Answer(b"\xef\xbb\xbf" + PRIVATE.encode(), content_type="text/plain"),
        {"ROBOTSTXT_PARSER": "scrapy.robotstxt.PythonRobotParser"},
    )


MANY: Final = "".join(f"Disallow: /no/{number}$\nAllow: /no/{number}?*\n" for number in range(100))

SHAPES: Final = {
    "robots.cr": ("with CR alone between the lines", text(PRIVATE.replace("\n", "\r"))),
    "robots.crlf": ("with CR and LF between the lines", text(PRIVATE.replace("\n", "\r\n"))),
    "robots.case": (
        "with odd case and spaces",
        text("USER-AGENT :  *  \n  disALLOW:/private  # no\n"),
    ),
    "robots.late-agent": (
        "with its group in two parts, others between",
        text(
            "User-agent: hostilebot\nAllow: /open\n\nUser-agent: *\nAllow: /\n\n"
            "User-agent: HostileBot\nDisallow: /private\n"
        ),
    ),
    "robots.garbage-line": (
        "with binary garbage between the lines",
        Answer(b"\0\x01\xff\xfe junk\nUser-agent: *\n\x80\x81: \xff\nDisallow: /private\n"),
    ),
    "robots.gzip": ("compressed", Answer(PRIVATE, content_type="text/plain", is_gzipped=True)),
    "robots.typed": ("sent as an image", Answer(PRIVATE, content_type="image/png")),
    "robots.slow": ("sent byte by byte", Answer(PRIVATE, content_type="text/plain", trickle_s=0.2)),
    "robots.200-rules": ("with 200 rules", text(PRIVATE + MANY)),
    "robots.escaped": (
        "with a percent-encoded rule",
        text("User-agent: *\nDisallow: /%70rivate\n"),
    ),
    "robots.longest": (
        "with shorter lines that allow",
        text("User-agent: *\nAllow: /\nAllow: /priv\nDisallow: /private\n"),
    ),
}

for number, (what, answer) in SHAPES.items():
    CASES.add(number, f"A robots.txt {what}", "Its rules hold")(partial(obeyed, answer=answer))


@CASES.add(
    "robots.200-pages",
    "200 rules for 12 pages: the longest that matches decides",
    "Six are asked and six are not",
)
def many_rules(web: Web) -> Plan:
    web.a.on("/robots.txt", text("User-agent: *\n" + MANY))
    pages = [f"no/{number}" for number in range(0, 100, 17)]
    web.a.on("/", page("", [f"/{path}{tail}" for path in pages for tail in ("", "?q=1")]))
    web.a.otherwise = page("any")
    return Plan(
        requests=[web.a / ""],
        follows=True,
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/": 1, **{f"A/{path}?q=1": 1 for path in pages}},
        delivered=["A/", *(f"A/{path}?q=1" for path in pages)],
        failed={f"A/{path}": FORBIDDEN for path in pages},
    )


@CASES.add(
    "robots.600k",
    "A file of 600 KiB, with rules at its begin and at its end",
    "What stands in the first 500 KiB holds; the rest is not read",
)
def huge(web: Web) -> Plan:
    filler = "# " + "x" * 97 + "\n"
    body = "User-agent: *\nDisallow: /early\n" + filler * 6144 + "Disallow: /late\n"
    assert len(body) > 600 * 1024
    web.a.on("/robots.txt", text(body))
    web.a.on("/late", page("late"))
    web.forbid(web.a / "early")
    return Plan(
        requests=[web.a / "early", web.a / "late"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/late": 1},
        delivered=["A/late"],
        failed={"A/early": FORBIDDEN},
    )


@CASES.add(
    "robots.endless",
    "A file that does not end (3 MiB), with a rule at its begin",
    "The rule holds; it is not read to its end",
)
def endless(web: Web) -> Plan:
    return obeyed(web, text(PRIVATE + ("# " + "x" * 97 + "\n") * 31_458))


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
