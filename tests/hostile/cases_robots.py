"""robots.txt: what servers answer, and what may be asked for then."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any, Final

from scrapy_frontier.testing import Answer, page, text

from .plans import AT_ONCE, OBEY, AtLeast, Cases, Plan
from .web import Web

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
