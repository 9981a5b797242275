"""The reason codes of the ledger, and what each of them means.

A code is a name, or a name with a part that varies (`http.{status}`). `used` collects from the code which ones it
writes; a test holds the texts to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import scrapy_frontier
from scrapy_frontier.identity import rejections
from scrapy_frontier.policy import budgets, leases, robots, scope

PACKAGE: Final = Path(scrapy_frontier.__file__).parent

_VARIES = re.compile(r"\{\w+\}")

REJECTIONS: Final[Mapping[str, str]] = {
    rejections.SCHEME_UNSUPPORTED: "Another scheme than `http` and `https`: `mailto:`, `javascript:`, `data:`, `ftp:`.",
    rejections.USERINFO: "A user name or a password before the host.",
    rejections.PORT_MALFORMED: "A port that is no number from 0 to 65535.",
    rejections.URL_MALFORMED: "Anything else that the URL Standard finds no URL in.",
    rejections.URL_TOO_LONG: "More characters than `URLLENGTH_LIMIT`.",
}
"""Rules that reject a reference: it has no identity."""

EXCLUSIONS: Final[Mapping[str, str]] = {
    scope.SCOPE_ORIGIN: "An origin that `FRONTIER_SCOPE` excludes, or does not include.",
    scope.SCOPE_PATH: "A path that `FRONTIER_SCOPE` excludes, or does not include, on an origin that it includes.",
    scope.SCOPE_ALLOWED_DOMAINS: "A host outside the spider's `allowed_domains`.",
    robots.ROBOTS_DISALLOW: "A line of the origin's robots.txt forbids it; the detail has the line.",
    robots.ROBOTS_OPERATOR: "A line of `FRONTIER_ROBOTS_RULES` forbids it.",
    "request.ignored": "Another downloader middleware raised `IgnoreRequest` before the request went out.",
}
"""Rules that exclude a URL: its identity is `suppressed`."""

HOLDS: Final[Mapping[str, str]] = {
    "not_before": "Its request asked for a time, and that has not come.",
    robots.ROBOTS_PENDING: "Its origin's robots.txt is being fetched, and others must not wait at its gate meanwhile.",
    "reparse.offline": "A run that parses an earlier one again sends no request, and that one has no response of it.",
    "depth.limit": "It is further from the seeds than `DEPTH_LIMIT`. A shorter way to it releases it.",
    budgets.URLS: "The run has accepted as many URLs as `FRONTIER_MAX_URLS`.",
    budgets.ORIGIN_URLS: "The origin has as many accepted URLs as `FRONTIER_MAX_URLS_PER_ORIGIN`.",
    budgets.QUERIES: "The path has been accepted with as many queries as `FRONTIER_MAX_QUERIES_PER_PATH`.",
    budgets.PLACE_URLS: "A place of `FRONTIER_PLACE_BUDGETS` has as many accepted URLs as its `urls`.",
    budgets.PLACE_QUERIES: "A path in a place of `FRONTIER_PLACE_BUDGETS` has been accepted with as many queries as its"
    " `queries`.",
    budgets.PLACE_DEPTH: "It is further from the seeds than the `depth` of a place in `FRONTIER_PLACE_BUDGETS`. A"
    " shorter way to it releases it.",
    budgets.ORIGIN_BYTES: "The responses of its origin have brought as many bytes as `FRONTIER_MAX_BYTES_PER_ORIGIN`.",
    budgets.PENDING: "As many URLs wait in the queue as `FRONTIER_MAX_PENDING`; it is let in as room comes.",
    "trap.{rule}": "A rule about traps holds it, and the detail has the family and the numbers: `calendar`, `search`,"
    " `sort`, `pagination`, `facets` or `growth` hold a family whose last pages brought nothing new; `permutation`,"
    " `session`, `nested`, `trailing`, `mirror` or `repeat` a further spelling of a known URL that has proved to be a"
    " copy; `soft_404` what pages with the same text lead to.",
    "request.unserialisable": "Its request lived in memory only and died with its process. A further reference releases"
    " it.",
}
"""Rules that hold a URL back for the time being: its identity is `deferred`."""

REASONS: Final[Mapping[str, str]] = {
    "admission.scope": "The scope allows it.",
    "admission.engine": "It is needed by what has been admitted: the files of a media pipeline, say.",
    "trap.exception": "A rule about traps would hold it, and `FRONTIER_TRAP_EXCEPTIONS` lets it through.",
    "operator.release": "An operator let it go.",
    "waiver.{waiver}": "It is outside `allowed_domains`, and `dont_filter` or `allow_offsite` lets it through.",
    robots.ROBOTS_ALLOW: "The robots.txt in force does not forbid it any more.",
    robots.ROBOTS_WAIVED: "robots.txt does not let it through, and a waiver does.",
    robots.ROBOTS_UNREACHABLE: "Its origin's robots.txt cannot be had.",
    robots.ROBOTS_CLOSED: "Its origin's robots.txt could not be had, and this run has stopped trying.",
    "robots.settled": "It is known what its origin's robots.txt says.",
    "priority.points": "It stands in the queue by these points: a rule of `FRONTIER_PRIORITY_RULES`, or"
    " `FRONTIER_PRIORITY_WEIGHTS`.",
    "budget.room": "There is room in the queue again.",
    "band.{band}": "It was handed out, from this priority band.",
    "engine.direct": "It was issued past the scheduler and has its place at the gate.",
    "http.{status}": "The response has this status.",
    "redirect.{status}": "The response leads to another URL.",
    "redirect.refused": "The response leads to another URL, and a rule (see the detail) forbids to follow it.",
    "retry.{cause}": "It is tried again, for this cause.",
    "redirect.self.{cause}": "It leads to itself and is asked for again.",
    "replaced.{cause}": "A middleware asks for the same again.",
    "request.replaced": "A middleware answered the request with another one.",
    "download.{kind}": "The download failed: `timeout`, `connect_timeout`, `dns`, `refused`, `reset`, `truncated`,"
    " `cancelled`, `unsupported`, `evidence` (kept, and not readable), `failed`, or the name of the exception's class.",
    "render.{kind}": "The page could not be rendered: see the rules of that name among the retry rules.",
    "callback.exception": "The callback raised; the detail has the exception.",
    "response.ignored": "A middleware dropped the response.",
    "operator.requeue": "An operator asks for it once more, by `scrapy frontier requeue`; the detail has his wish.",
    "visit.waiting": "A further request for it was waiting until this one ended.",
    "request.unrestorable": "Its stored request cannot be made again, because the spider has changed.",
    "reparse.recorded": "An earlier run has its response, which is parsed again.",
    "evidence.kept": "The process that worked on it is gone, and evidence of its response answers it.",
    "evidence.replayed": "It was answered from evidence: nothing of it went on the wire.",
    "lease.lost": "The process that worked on it is gone.",
    leases.EXPIRED: "Its worker showed no sign of work for `FRONTIER_LEASE` seconds.",
    leases.NOT_REPEATED: "It was under way when its process died or hung, and its method may not be sent twice unasked"
    " (RFC 9110, section 9.2.2): `frontier requeue`, or `frontier_idempotent` in its meta.",
    leases.EXHAUSTED: "That has happened `FRONTIER_LEASE_EXPIRIES` times, and it is given up.",
    "engine.abandoned": "Whoever issued it past the scheduler is gone.",
    "policy.changed": "Another policy version lets it in: its scope, or a budget that has been raised.",
}
"""All other codes, of transitions and of attempts."""


def pattern(code: str) -> str:
    """A code with `{}` for the part that varies."""
    return _VARIES.sub("{}", code)


def used() -> set[str]:
    """The patterns of the codes that the package writes, as far as they can be read off its source."""
    constants = dict(_constants())
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for scope_node in ast.walk(tree):
            if isinstance(scope_node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                found.update(_codes_of(scope_node, constants))
    return {code for code in found if code.replace("{}", "").strip(".")}


def _codes_of(node: ast.AST, constants: Mapping[str, str]) -> Iterator[str]:
    """The first argument of each `Reason(...)` and `Finding(...)` directly in a function or module."""
    local: dict[str, list[ast.expr]] = {}
    for name, value in _assignments(node):
        local.setdefault(name, []).append(value)
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Name(id="Reason" | "Finding"), args=[code, *_]):
                yield from _texts(code, local, constants)


def _texts(
    node: ast.expr, local: Mapping[str, list[ast.expr]], constants: Mapping[str, str]
) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body, local, constants)
            yield from _texts(orelse, local, constants)
        case ast.Name(id=name) if name in constants:
            yield constants[name]
        case ast.Name(id=name) if name in local:
            for value in local[name]:
                yield from _texts(value, {}, constants)
        case ast.JoinedStr(values=parts):
            yield "".join(_part(part) for part in parts)


def _part(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
    return "{}"


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for statement in ast.walk(node):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _constants() -> Iterator[tuple[str, str]]:
    """The upper-case module constants that are texts."""
    for path in PACKAGE.rglob("*.py"):
        for statement in ast.parse(path.read_text("utf-8")).body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text)))
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text)))
                ) if name.isupper():
                    yield name, text
