"""What is meant for one origin and must not be shown to another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from scrapy import Request

from scrapy_frontier.testing import Answer, page, redirect

from .plans import Cases, Plan, Seen
from .web import Web, place, secrets_of

CASES: Final = Cases()

MINE: Final = {"Authorization": "Basic eDp5", "Cookie": "sid=1", "X-Api-Key": "k"}


def told(seen: Seen, label: str) -> dict[str, str]:
    """What the request for this told of who is asking."""
    (hit,) = seen.web.hits(label)
    return {name: value for name, value in secrets_of(hit).items() if name != "referer"}


def telling(seen: Seen) -> str:
    """Who was told what, in words."""
    telling = {label: told(seen, label) for label in seen.web.asked()}
    words = [f"{label} is told {names(secrets)}" for label, secrets in telling.items() if secrets]
    return ", ".join(words) or "nobody is told anything"


def referring(seen: Seen) -> str:
    """Who was told where we came from, in words."""
    telling = {seen.web.label_of(hit): hit.headers.get("referer", "") for hit in seen.web.log}
    words = [
        f"{label} is told `{seen.web.label(referer)}`"
        for label, referer in telling.items()
        if referer
    ]
    return ", ".join(words) or "nobody is told where we came from"


def names(headers: dict[str, str]) -> str:
    """The headers by name, and by value where it is a short one."""
    return " and ".join(
        f"`{name}: {value}`" if len(value) < 10 else f"`{name}`" for name, value in headers.items()
    )


# FC25

HOPS: Final[dict[str, tuple[str, Callable[[Web], str], str, dict[str, str]]]] = {
    "a": ("A/auth", lambda web: web.b / "x", "B/x", {}),
    "b": ("A/auth", lambda web: web.d / "x", "D/x", {}),
    "c": ("S/auth", lambda web: web.p / "land", "P/land", {}),
    "d": (
        "A/auth",
        lambda web: "/y",
        "A/y",
        {"cookie": "sid=1", "authorization": "Basic eDp5"},
    ),
}


def with_credentials(web: Web, letter: str) -> Plan:
    first, location, then, expected = HOPS[letter]
    origin = web.origins[first[0]]
    origin.on("/auth", redirect(location(web)))
    web.origins[then[0]].on(then[1:], page("end"))
    request = Request(origin / "auth", headers=MINE, meta={"dont_merge_cookies": True})

    def proof(seen: Seen) -> bool:
        return told(seen, first) == HOPS["d"][3] and told(seen, then) == expected

    return Plan(
        requests=[request],
        asked={first: 1, then: 1},
        delivered=[then],
        proof=proof,
        shows=telling,
    )


for letter, title, right in (
    ("a", "to another host", "Neither is sent on"),
    ("b", "to another port of the same host", "Neither is sent on: it is another origin"),
    ("c", "from https to http, on the same host", "Neither is sent on"),
    ("d", "within the origin", "Both are sent on"),
):
    CASES.add(f"FC25.{letter}", f"`Authorization` and `Cookie`, and a redirect {title}", right)(
        partial(with_credentials, letter=letter)
    )


@CASES.add(
    "secrets.chain",
    "A chain A, B, A, with `Authorization` for A",
    "B is not told; nor is A again, for it was B who sent us there",
)
def there_and_back(web: Web) -> Plan:
    web.a.on("/1", redirect(web.b / "2"))
    web.b.on("/2", redirect(web.a / "3"))
    web.a.on("/3", page("end"))
    request = Request(web.a / "1", headers=MINE, meta={"dont_merge_cookies": True})
    return Plan(
        requests=[request],
        asked={"A/1": 1, "B/2": 1, "A/3": 1},
        shows=telling,
        delivered=["A/3"],
        proof=lambda seen: told(seen, "B/2") == {} and told(seen, "A/3") == {},
    )


@CASES.add(
    "secrets.jar",
    "A server sets a cookie, and redirects to another host and back",
    "The cookie is sent back to that server, and to no other",
)
def jar(web: Web) -> Plan:
    web.a.on(
        "/1",
        Answer(status=302, headers=(("Location", web.b / "2"), ("Set-Cookie", "sid=9; Path=/"))),
    )
    web.b.on("/2", redirect(web.a / "3"))
    web.a.on("/3", page("end"))
    return Plan(
        requests=[web.a / "1"],
        asked={"A/1": 1, "B/2": 1, "A/3": 1},
        shows=telling,
        delivered=["A/3"],
        proof=lambda seen: told(seen, "B/2") == {} and told(seen, "A/3") == {"cookie": "sid=9"},
    )


@CASES.add(
    "secrets.secure-cookie",
    "A `Secure` cookie, and a redirect from https to http on the same host",
    "The cookie does not leave https",
)
def secure_cookie(web: Web) -> Plan:
    cookie = ("Set-Cookie", "sid=9; Secure; Path=/")
    web.s.on("/1", Answer(status=302, headers=(("Location", web.p / "2"), cookie)))
    web.p.on("/2", page("end"))
    return Plan(
        requests=[web.s / "1"],
        asked={"S/1": 1, "P/2": 1},
        shows=telling,
        delivered=["P/2"],
        proof=lambda seen: told(seen, "P/2") == {},
    )


# FC27


@CASES.add(
    "FC27.a",
    "The user gives a cookie for the host that a redirect leads to",
    "The first host gets no cookie, the other one gets it",
)
def cookie_for_the_target(web: Web) -> Plan:
    web.a.on("/rr", redirect(web.b / "c3"))
    web.b.on("/c3", page("end"))
    cookies = [{"name": "foo", "value": "bar", "domain": web.b.host}]
    return Plan(
        requests=[Request(web.a / "rr", cookies=cookies)],
        asked={"A/rr": 1, "B/c3": 1},
        shows=telling,
        delivered=["B/c3"],
        proof=lambda seen: told(seen, "A/rr") == {} and told(seen, "B/c3") == {"cookie": "foo=bar"},
    )


@CASES.add(
    "FC27.b", "A server sets a cookie for the host it redirects to", "Nobody gets that cookie"
)
def cookie_for_another_host(web: Web) -> Plan:
    cookie = ("Set-Cookie", f"foo=bar; Domain={web.b.host}")
    web.a.on("/rr", Answer(status=302, headers=(("Location", web.b / "c3"), cookie)))
    web.b.on("/c3", page("end"))
    return Plan(
        requests=[web.a / "rr"],
        asked={"A/rr": 1, "B/c3": 1},
        shows=telling,
        delivered=["B/c3"],
        proof=lambda seen: told(seen, "B/c3") == {},
    )


# Referer


@CASES.add(
    "secrets.referer",
    "A page with a token in its URL links to a redirect to another host",
    "The other host does not learn that URL",
)
def referer(web: Web) -> Plan:
    web.a.on("/account", page("", ["/away"]))
    web.a.on("/away", redirect(web.b / "x"))
    web.b.on("/x", page("end"))
    return Plan(
        requests=[web.a / "account?token=t0p"],
        follows=True,
        asked={"A/account?token=t0p": 1, "A/away": 1, "B/x": 1},
        shows=referring,
        delivered=["A/account?token=t0p", "B/x"],
        proof=lambda seen: (
            "t0p" in str(secrets_of(web.hits("A/away")[0]))
            and "t0p" not in str(secrets_of(web.hits("B/x")[0]))
        ),
    )


@CASES.add(
    "secrets.referer-header",
    "The user gives a `Referer`, and the answer is a redirect to another host",
    "The other host does not get it",
)
def referer_of_the_user(web: Web) -> Plan:
    web.a.on("/away", redirect(web.b / "x"))
    web.b.on("/x", page("end"))
    return Plan(
        requests=[Request(web.a / "away", headers={"Referer": web.a / "account?token=t0p"})],
        asked={"A/away": 1, "B/x": 1},
        shows=referring,
        delivered=["B/x"],
        proof=lambda seen: "t0p" not in str(secrets_of(web.hits("B/x")[0])),
    )


@CASES.add(
    "secrets.referer-redirect",
    "The URL that redirects to another host has a token itself",
    "The other host does not learn that URL",
)
def referer_of_the_redirect(web: Web) -> Plan:
    web.a.on("/away", redirect(web.b / "x"))
    web.b.on("/x", page("end"))
    return Plan(
        requests=[web.a / "away?token=t0p"],
        asked={"A/away?token=t0p": 1, "B/x": 1},
        delivered=["B/x"],
        shows=referring,
        proof=lambda seen: "t0p" not in str(secrets_of(web.hits("B/x")[0])),
    )


# Proxy


@CASES.add(
    "secrets.proxy",
    "A request over a proxy with a password is redirected to another host",
    "The proxy is asked for both, with the password; no host learns it",
)
def proxy(web: Web) -> Plan:
    web.c.on(web.a / "1", redirect(web.b / "2"))
    web.c.on(web.b / "2", page("end"))
    request = Request(web.a / "1", meta={"proxy": f"http://user:word@{place(web.c)}"})

    def proof(seen: Seen) -> bool:
        return all("proxy-authorization" in hit.headers for hit in web.log.of(web.c.url)) and (
            len(web.log) == len(web.log.of(web.c.url))
        )

    return Plan(
        requests=[request],
        asked={"A/1": 1, "B/2": 1},
        shows=telling,
        delivered=["B/2"],
        proof=proof,
    )


@CASES.add(
    "secrets.proxy-header",
    "A `Proxy-Authorization` header, no proxy, and a redirect to another host",
    "No host gets it",
)
def proxy_header(web: Web) -> Plan:
    web.a.on("/1", redirect(web.b / "2"))
    web.b.on("/2", page("end"))
    request = Request(web.a / "1", headers={"Proxy-Authorization": "Basic eDp5"})
    return Plan(
        requests=[request],
        asked={"A/1": 1, "B/2": 1},
        shows=telling,
        delivered=["B/2"],
        proof=lambda seen: told(seen, "A/1") == told(seen, "B/2") == {},
    )
