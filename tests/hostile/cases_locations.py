"""What stands in `Location`, and where it leads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from scrapy_frontier.testing import Answer, page, redirect, text

from .plans import Cases, Plan, Seen
from .web import Web, place

CASES: Final = Cases()

MISSED: Final = text("You should not be here.\n")
"""What a wrong way leads to: a page, so that it is seen to be delivered."""


# Leads somewhere


def leads_to(web: Web, location: str | bytes | Callable[[Web], str], label: str) -> Plan:
    """A redirect from A/r/x by this `Location` asks for what `label` says."""
    value = location(web) if callable(location) else location
    web.a.on("/r/x", redirect(value))
    web.a.on("/r/x?q=1", MISSED)
    for origin in (web.a, web.b):
        origin.otherwise = MISSED
    return Plan(requests=[web.a / "r/x"], asked={"A/r/x": 1, label: 1}, delivered=[label])


LEADS: Final[dict[str, tuple[str | bytes | Callable[[Web], str], str]]] = {
    "FC18.a": ("/é?q=ü".encode(), "A/%C3%A9?q=%C3%BC"),
    "FC18.b": (b"/\xe9", "A/%E9"),
    "FC18.c": ("/a b", "A/a%20b"),
    "FC18.d": (lambda web: f"  {web.b / 'x'}  ", "B/x"),
    "FC18.e": (lambda web: f"{web.b / 'x'}\ty", "B/xy"),
    "FC18.f": (lambda web: f"HTTP://{place(web.b)}/X", "B/X"),
    "FC19.a": (lambda web: f"///{place(web.b)}/x", "B/x"),
    "FC19.b": (lambda web: f"/\\{place(web.b)}/x", "B/x"),
    "FC19.c": (lambda web: f"\\\\{place(web.b)}\\x", "B/x"),
    "location.scheme-relative": (lambda web: f"//{place(web.b)}/x", "B/x"),
    "location.http-slashes": (lambda web: f"http:////{place(web.b)}/x", "B/x"),
    "location.http-no-slash": ("http:/y", "A/y"),
    "location.backslash-path": ("\\y\\z", "A/y/z"),
    "location.dots": ("/a/../../b/./c/..", "A/b/"),
    "location.encoded-dots": ("/a/%2e%2E/b", "A/b"),
    "location.empty-segments": ("a//b", "A/r/a//b"),
    "location.query-only": ("?q=1", "A/r/x?q=1"),
    "location.latin-query": (b"/s?q=\xfc", "A/s?q=%FC"),
    "location.quoted": ('/"<x>"', "A/%22%3Cx%3E%22"),
}

TITLES: Final = {
    "FC18.a": "UTF-8 bytes",
    "FC18.b": "a byte that is no UTF-8",
    "FC18.c": "a space",
    "FC18.d": "white space around the URL",
    "FC18.e": "a tab within the URL",
    "FC18.f": "a scheme in capitals",
    "FC19.a": "`///host/x`",
    "FC19.b": "`/\\host/x`",
    "FC19.c": "`\\\\host\\x`",
    "location.scheme-relative": "`//host/x`",
    "location.http-slashes": "`http:////host/x`",
    "location.http-no-slash": "`http:/y`, of the scheme of the page",
    "location.backslash-path": "`\\y\\z`",
    "location.dots": "dot segments, some above the root",
    "location.encoded-dots": "encoded dot segments",
    "location.empty-segments": "an empty path segment",
    "location.query-only": "a query alone",
    "location.latin-query": "a byte that is no UTF-8, in the query",
    "location.quoted": "quotes and angle brackets",
}

for number, (location, label) in LEADS.items():
    CASES.add(number, f"`Location`: {TITLES[number]}", f"{label} is asked")(
        partial(leads_to, location=location, label=label)
    )


# Links of the same kind

LINKS: Final[dict[str, tuple[Callable[[Web], str], Callable[[Web], str]]]] = {
    "FC19.d": (lambda web: f"///{place(web.b)}/x", lambda web: "B/x"),
    "FC19.e": (lambda web: f"http:///{place(web.b)}/x", lambda web: "B/x"),
    "FC19.f": (lambda web: f"http:/{place(web.b)}/x", lambda web: f"A/{place(web.b)}/x"),
}


def link_to(web: Web, number: str) -> Plan:
    href, target = (part(web) for part in LINKS[number])
    web.a.on("/r/x", page("", [href]))
    for origin in (web.a, web.b):
        origin.otherwise = MISSED
    return Plan(
        requests=[web.a / "r/x"],
        follows=True,
        asked={"A/r/x": 1, target: 1},
        delivered=["A/r/x", target],
    )


for number, title, label in (
    ("FC19.d", "`///host/x`", "B/x"),
    ("FC19.e", "`http:///host/x`", "B/x"),
    ("FC19.f", "`http:/host/x`", "A/host/x"),
):
    CASES.add(number, f"A link to {title}", f"{label} is asked")(partial(link_to, number=number))


# Leads nowhere


def refused(web: Web, location: Callable[[Web], str], rule: str) -> Plan:
    """A redirect by this `Location` is not followed; the errback is told the rule."""
    value = location(web)
    web.a.on("/r/x", redirect(value))
    for origin in (web.a, web.b):
        origin.otherwise = MISSED
    return Plan(
        requests=[web.a / "r/x"],
        asked={"A/r/x": 1},
        failed={"A/r/x": rule},
        fates={"A/r/x": "redirected redirect.refused"},
    )


SCHEME: Final = "scheme.unsupported"

REFUSED: Final[dict[str, tuple[Callable[[Web], str], str, str]]] = {
    "mailto": (lambda web: "mailto:someone@example.com", SCHEME, "`mailto:`"),
    "javascript": (lambda web: "javascript:alert(1)", SCHEME, "`javascript:`"),
    "ftp": (lambda web: f"ftp://{web.b.host}/x", SCHEME, "`ftp:`"),
    "file": (lambda web: "file:///etc/hostname", SCHEME, "`file:`"),
    "data": (lambda web: "data:text/html,hello", SCHEME, "`data:`"),
    "userinfo": (lambda web: f"http://u:p@{place(web.b)}/x", "userinfo", "user name and password"),
    "userinfo-trick": (
        lambda web: f"http://{place(web.a)}@{place(web.b)}/x",
        "userinfo",
        "a host in the place of the user name",
    ),
    "port-high": (lambda web: f"http://{web.b.host}:99999/x", "port.malformed", "port 99999"),
    "port-text": (lambda web: f"http://{web.b.host}:8o/x", "port.malformed", "port `8o`"),
    "port-signed": (lambda web: f"http://{web.b.host}:-1/x", "port.malformed", "port -1"),
    "host-empty": (lambda web: "http://", "url.malformed", "no host"),
    "host-odd": (lambda web: "http://[::1/x", "url.malformed", "half an IPv6 address"),
    "too-long": (lambda web: "/" + "x" * 3000, "url.too_long", "3000 characters"),
}

for name, (odd, rule, title) in REFUSED.items():
    CASES.add(
        f"location.{name}",
        f"`Location`: {title}",
        f"Refused by name (`{rule}`): the errback is told",
    )(partial(refused, location=odd, rule=rule))


@CASES.add("location.missing", "A redirect without `Location`", "The errback is told of the status")
def without_location(web: Web) -> Plan:
    web.a.on("/r/x", Answer(status=302))
    return Plan(
        requests=[web.a / "r/x"],
        asked={"A/r/x": 1},
        failed={"A/r/x": "HTTP 302"},
        fates={"A/r/x": "http_error http.302"},
    )


@CASES.add(
    "location.empty",
    "An empty `Location` for ever, without a cookie",
    "The errback is told after `REDIRECT_MAX_TIMES` (4) redirects",
)
def empty_location(web: Web) -> Plan:
    web.a.on("/r/x", redirect(""))
    return Plan(
        requests=[web.a / "r/x"],
        settings={"REDIRECT_MAX_TIMES": 4},
        asked={"A/r/x": 5},
        failed={"A/r/x": "redirect.limit"},
        fates={"A/r/x": "redirected redirect.refused"},
    )


@CASES.add(
    "location.two",
    "Two different `Location` headers",
    "Neither is followed: which one is meant nobody knows; the errback is told",
)
def two_locations(web: Web) -> Plan:
    web.a.on("/r/x", Answer(status=302, headers=(("Location", "/one"), ("Location", "/two"))))
    web.a.otherwise = MISSED
    return Plan(
        requests=[web.a / "r/x"],
        asked={"A/r/x": 1},
        failed={"A/r/x": "location.ambiguous"},
    )


@CASES.add("location.twice", "The same `Location` twice", "It is followed")
def same_location_twice(web: Web) -> Plan:
    web.a.on("/r/x", Answer(status=302, headers=(("Location", "/one"), ("Location", "/one"))))
    web.a.on("/one", page("one"))
    return Plan(requests=[web.a / "r/x"], asked={"A/r/x": 1, "A/one": 1}, delivered=["A/one"])


@CASES.add(
    "location.base",
    "A relative `Location` with a page that has a `<base>`",
    "`Location` is relative to the URL that was asked for",
)
def location_with_base(web: Web) -> Plan:
    body = f'<base href="{web.b / "there/"}">moved'
    web.a.on("/r/x", Answer(body, status=302, headers=(("Location", "y"),)))
    web.a.on("/r/y", page("y"))
    return Plan(requests=[web.a / "r/x"], asked={"A/r/x": 1, "A/r/y": 1}, delivered=["A/r/y"])


# FC22: user names and passwords


def authorization(seen: Seen, label: str) -> str | None:
    """What the request for this told of who is asking."""
    return seen.web.hits(label)[0].headers.get("authorization")


@CASES.add(
    "FC22.a",
    "The user requests `http://u:p@host/x`",
    "The page is asked with `Authorization`, at that host only",
)
def userinfo_of_the_user(web: Web) -> Plan:
    web.a.on("/x", page("x", [web.b / "y"]))
    web.b.on("/y", page("y"))
    return Plan(
        requests=[f"http://u:p@{place(web.a)}/x"],
        follows=True,
        asked={"A/x": 1, "B/y": 1},
        delivered=None,
        proof=lambda seen: (
            authorization(seen, "A/x") == "Basic dTpw"
            and authorization(seen, "B/y") is None
            and not any("u:p" in str(hit.headers) for hit in web.log)
        ),
        shows=lambda seen: (
            f"{sum('authorization' in hit.headers for hit in web.log)} with `Authorization`"
        ),
    )


@CASES.add(
    "FC22.b", "`Location: http://u:p@host/x`", "Refused by name (`userinfo`): the errback is told"
)
def userinfo_of_a_redirect(web: Web) -> Plan:
    web.a.on("/r", redirect(f"http://u:p@{place(web.a)}/x"))
    return Plan(
        requests=[web.a / "r"],
        asked={"A/r": 1},
        failed={"A/r": "userinfo"},
        fates={"A/r": "redirected redirect.refused"},
    )


@CASES.add(
    "FC22.c",
    "A link to `http://u:p@host/x`",
    "Refused by name (`userinfo`); the rest of the page is crawled",
)
def userinfo_of_a_link(web: Web) -> Plan:
    web.a.on("/", page("", [f"http://u:p@{place(web.a)}/z", "/next"]))
    web.a.on("/next", page("next"))
    return Plan(
        requests=[web.a / ""],
        follows=True,
        asked={"A/": 1, "A/next": 1},
        delivered=["A/", "A/next"],
    )
