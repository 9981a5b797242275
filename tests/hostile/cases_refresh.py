"""Meta refresh: pages that send their readers elsewhere."""

from __future__ import annotations

from functools import partial
from typing import Final

from scrapy_frontier.testing import Answer, page, redirect

from .plans import OBEY, Cases, Plan
from .web import Web

CASES: Final = Cases()

REFRESH: Final = '<meta http-equiv="refresh" content="{}">'


def refresh(content: str) -> Answer:
    """A page with a refresh in its head."""
    return Answer(f"<html><head>{REFRESH.format(content)}</head><body>content</body></html>")


def delivered_as_it_is(web: Web, body: str, path: str = "/page") -> Plan:
    """The page is delivered, and nothing else is asked for."""
    web.a.on(path, Answer(body))
    web.a.otherwise = page("elsewhere")
    return Plan(
        requests=[web.a / path],
        asked={f"A{path}": 1},
        delivered=[f"A{path}"],
        fates={f"A{path}": "succeeded"},
    )


def followed(web: Web, body: str) -> Plan:
    """The page sends its reader to /x."""
    web.a.on("/page", Answer(body))
    web.a.on("/x", page("x"))
    return Plan(
        requests=[web.a / "page"],
        asked={"A/page": 1, "A/x": 1},
        delivered=["A/x"],
        fates={"A/page": "redirected redirect.200", "A/x": "succeeded"},
    )


# FC29

ELSEWHERE: Final = REFRESH.format("0;url=/elsewhere")

WITHIN: Final = {
    "FC29.a": ("<script>", f"<script>var t='{ELSEWHERE}';</script>"),
    "FC29.b": ("<template>", f"<template>{ELSEWHERE}</template>"),
    "FC29.c": ("<textarea>", f"<textarea>{ELSEWHERE}</textarea>"),
    "refresh.title": ("<title>", f"<title>{ELSEWHERE}</title>"),
    "refresh.style": ("<style>", f"<style>/* {ELSEWHERE} */</style>"),
    "refresh.noscript": ("<noscript>", f"<noscript>{ELSEWHERE}</noscript>"),
    "refresh.attribute": ("an attribute", f"<p title='{ELSEWHERE}'>"),
}

for number, (name, within) in WITHIN.items():
    shown = f"`{name}`" if name.startswith("<") else name
    CASES.add(number, f"The text of a refresh within {shown}", "The page is delivered as it is")(
        partial(delivered_as_it_is, body=f"<html>{within}<body>content</body></html>")
    )


# FC30


@CASES.add("FC30", "A page reloads itself every 30 seconds", "It is delivered")
def reload(web: Web) -> Plan:
    body = f"<html>{REFRESH.format('30;url=/mself')}<body>content</body></html>"
    return delivered_as_it_is(web, body, "/mself")


@CASES.add("refresh.reload-now", "A page reloads itself at once", "It is delivered")
def reload_at_once(web: Web) -> Plan:
    return delivered_as_it_is(web, REFRESH.format("0;url=/mself"), "/mself")


@CASES.add("refresh.reload-plain", "A page reloads itself, without naming a URL", "It is delivered")
def reload_without_url(web: Web) -> Plan:
    return delivered_as_it_is(web, REFRESH.format("5"))


# FC32

SPELLINGS: Final = {
    "a": '<meta content="0;url=/x" http-equiv="refresh">',
    "b": "<META HTTP-EQUIV=Refresh CONTENT=0;URL=/x>",
    "c": REFRESH.format("0; URL='/x'"),
    "d": REFRESH.format("0;/x"),
    "e": REFRESH.format("0 /x"),
    "f": REFRESH.format("0,url=/x"),
    "g": REFRESH.format("0.5;url=/x"),
}

for letter, markup in SPELLINGS.items():
    CASES.add(f"FC32.{letter}", f"`{markup}`", "A/x is asked and delivered")(
        partial(followed, body=f"<html><head>{markup}</head><body>content</body></html>")
    )


@CASES.add(
    "FC32.h",
    "A refresh whose tag ends far behind the first 4096 characters",
    "A/x is asked and delivered",
)
def tag_over_the_edge(web: Web) -> Plan:
    tag = '<meta http-equiv="refresh" content="0;url=/x"' + " " * 2000 + ">"
    return followed(web, "<html><head>" + " " * 4000 + tag)


@CASES.add("FC32.i", "A refresh in a comment", "The page is delivered as it is")
def commented(web: Web) -> Plan:
    return delivered_as_it_is(web, f"<html><!-- {ELSEWHERE} --><body>content</body></html>")


# Delays


@CASES.add(
    "refresh.delay", "A delay of 5 seconds, `METAREFRESH_MAXDELAY` 100", "A/x is asked, at once"
)
def short_delay(web: Web) -> Plan:
    return followed(web, REFRESH.format("5;url=/x"))


@CASES.add(
    "refresh.long-delay", "A delay of 500 seconds, `METAREFRESH_MAXDELAY` 100", "It is delivered"
)
def long_delay(web: Web) -> Plan:
    return delivered_as_it_is(web, REFRESH.format("500;url=/elsewhere"))


# Where to


@CASES.add(
    "refresh.scope",
    "A refresh to a host outside `allowed_domains`",
    "That host is not asked; the errback is told",
)
def out_of_scope(web: Web) -> Plan:
    web.a.on("/page", refresh(f"0;url={web.b / 'x'}"))
    web.forbid(web.b.url)
    return Plan(
        requests=[web.a / "page"],
        attributes={"allowed_domains": [web.a.host]},
        asked={"A/page": 1},
        failed={"A/page": "scope.allowed_domains"},
        fates={"B/x": "suppressed scope.allowed_domains"},
    )


@CASES.add("refresh.robots", "A refresh to a path that robots.txt disallows", "That is not asked")
def disallowed(web: Web) -> Plan:
    web.disallow(web.a, "/private")
    web.a.on("/page", refresh("0;url=/private/x"))
    return Plan(
        requests=[web.a / "page"],
        settings=OBEY,
        asked={"A/robots.txt": 1, "A/page": 1},
        failed={"A/private/x": "Forbidden by robots.txt"},
        fates={"A/private/x": "suppressed robots.disallow"},
    )


@CASES.add(
    "refresh.javascript", "A refresh to `javascript:`", "Refused by name: the errback is told"
)
def to_javascript(web: Web) -> Plan:
    web.a.on("/page", refresh("0;url=javascript:alert(1)"))
    return Plan(
        requests=[web.a / "page"],
        asked={"A/page": 1},
        failed={"A/page": "scheme.unsupported"},
        fates={"A/page": "redirected redirect.refused"},
    )


@CASES.add(
    "refresh.loop", "Two pages refresh to each other", "Each is asked once; the errback is told"
)
def circle(web: Web) -> Plan:
    web.a.on("/1", refresh("0;url=/2"))
    web.a.on("/2", refresh("0;url=/1"))
    return Plan(
        requests=[web.a / "1"],
        asked={"A/1": 1, "A/2": 1},
        failed={"A/2": "redirect.loop"},
    )


@CASES.add(
    "refresh.mixed",
    "A redirect, then a refresh, then a redirect, over three hosts",
    "Each is asked once; the last page is delivered",
)
def mixed(web: Web) -> Plan:
    web.a.on("/1", redirect(web.b / "2"))
    web.b.on("/2", refresh(f"0;url={web.c / '3'}"))
    web.c.on("/3", redirect("/4"))
    web.c.on("/4", page("end"))
    return Plan(
        requests=[web.a / "1"],
        asked={"A/1": 1, "B/2": 1, "C/3": 1, "C/4": 1},
        delivered=["C/4"],
        proof=lambda seen: seen.responses[0].meta["redirect_reasons"] == [302, "meta refresh", 302],
    )


@CASES.add(
    "refresh.base", "A relative refresh on a page with a `<base>`", "It is relative to that base"
)
def with_base(web: Web) -> Plan:
    body = f'<html><head><base href="{web.b / "there/"}">{REFRESH.format("0;url=x")}</head></html>'
    web.a.on("/page", Answer(body))
    web.b.on("/there/x", page("x"))
    return Plan(
        requests=[web.a / "page"],
        asked={"A/page": 1, "B/there/x": 1},
        delivered=["B/there/x"],
    )
