"""Redirects: what becomes of method, body and fragment."""

from __future__ import annotations

from functools import partial
from typing import Final

from scrapy import Request as ScrapyRequest

from scrapy_frontier.testing import Answer, Request, page, redirect

from .plans import Cases, Plan, Seen
from .web import Web

CASES: Final = Cases()

# Method and body

METHODS: Final = {
    ("POST", 301): "GET",
    ("POST", 302): "GET",
    ("POST", 303): "GET",
    ("POST", 307): "POST",
    ("POST", 308): "POST",
    ("PUT", 301): "PUT",
    ("PUT", 302): "PUT",
    ("PUT", 303): "GET",
    ("DELETE", 303): "GET",
    ("HEAD", 303): "HEAD",
    ("HEAD", 302): "HEAD",
}


def has_body(method: str) -> bool:
    return method in ("POST", "PUT")


def method_after(web: Web, method: str, status: int) -> Plan:
    bodies: list[bytes] = []

    def target(request: Request) -> Answer:
        bodies.append(request.body)
        return page("end")

    web.a.on("/form", redirect("/to", status))
    web.a.on("/to", target)
    after = METHODS[method, status]
    body = b"body" if has_body(method) else b""
    headers = {"Content-Type": "text/plain", "Content-Language": "la"} if body else {}
    to = "A/to" if after == "GET" else f"{after} A/to"

    def proof(seen: Seen) -> bool:
        (hit,) = web.hits(to)
        if after == method:
            return bodies == [body] and (
                hit.headers.get("content-language") == headers.get("Content-Language")
            )
        told = {"content-type", "content-language"} & hit.headers.keys()
        return bodies == [b""] and not told and hit.headers.get("content-length", "0") == "0"

    def shows(seen: Seen) -> str:
        (body,) = bodies or [b""]
        return "with the body" if body else "without a body"

    return Plan(
        requests=[ScrapyRequest(web.a / "form", method=method, body=body, headers=headers)],
        asked={f"{method} A/form": 1, to: 1},
        delivered=["A/to"],
        proof=proof,
        shows=shows,
    )


for (method, status), after in METHODS.items():
    CASES.add(
        f"method.{method.lower()}-{status}",
        f"{status} in answer to a {method}",
        f"A {after} {'with the same' if has_body(after) else 'without a'} body",
    )(partial(method_after, method=method, status=status))


@CASES.add(
    "method.same-url",
    "A form answers a POST with 303 to its own URL",
    "That is asked by GET, and delivered: it is no circle",
)
def form(web: Web) -> Plan:
    def answer(request: Request) -> Answer:
        return redirect("/form", 303) if request.method == "POST" else page("thanks")

    web.a.on("/form", answer)
    return Plan(
        requests=[ScrapyRequest(web.a / "form", method="POST", body=b"a=1")],
        asked={"POST A/form": 1, "A/form": 1},
        delivered=["A/form"],
        fates={"A/form": "succeeded"},
    )


# Fragments


@CASES.add(
    "fragment",
    "`Location` with and without a fragment, in answer to a URL with one",
    "The target's own fragment counts, else that of the request is handed on",
)
def fragments(web: Web) -> Plan:
    web.a.on("/plain", redirect("/to"))
    web.a.on("/own", redirect("/there#own"))
    web.a.on("/to", page("to"))
    web.a.on("/there", page("there"))
    return Plan(
        requests=[web.a / "plain#part", web.a / "own#part"],
        asked={"A/plain": 1, "A/own": 1, "A/to": 1, "A/there": 1},
        delivered=["A/to#part", "A/there#own"],
    )
