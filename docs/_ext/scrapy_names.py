"""What the frontier reads of Scrapy's own names, and what it takes from each.

`used_settings` and `used_meta` collect from the code what it reads; a test holds the two texts to them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import scrapy_frontier
from scrapy_frontier.frontier.reports import POLICY_INPUTS

PACKAGE: Final = Path(scrapy_frontier.__file__).parent

SETTINGS: Final[Mapping[str, str]] = {
    "CONCURRENT_REQUESTS": "How many requests are on the wire at once, over all origins.",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "How many of them may be at one origin.",
    "CONCURRENT_REQUESTS_PER_IP": "Replaces the limit per origin where it is set (deprecated in Scrapy).",
    "DOWNLOAD_DELAY": "The interval of an origin, in seconds.",
    "DOWNLOAD_DELAY_JITTER": "How far an interval is varied, 0.5 by half (Scrapy 2.19).",
    "RANDOMIZE_DOWNLOAD_DELAY": "`True` stands for a jitter of 0.5.",
    "DOWNLOAD_SLOTS": "`concurrency`, `delay` and `jitter` of single origins or hosts.",
    "LOG_ENABLED": "`scrapy frontier reparse` logs as a crawl does, unless a project says `False`.",
    "LOG_FILE": "With it the log has lines of progress also where a terminal shows a live line.",
    "JOBDIR": "The folder of the store, unless `FRONTIER_STORE` is set; its unfinished run is resumed.",
    "URLLENGTH_LIMIT": "Longer URLs are rejected by the rule `url.too_long`.",
    "DEPTH_LIMIT": "URLs further from the seeds are held back by the rule `depth.limit`.",
    "DEPTH_PRIORITY": "Kept by Scrapy; part of the policy version.",
    "DOWNLOAD_TIMEOUT": "Kept by Scrapy; part of the policy version.",
    "REDIRECT_ENABLED": "`False`: responses that redirect go to the spider.",
    "REDIRECT_MAX_TIMES": "Hops of one chain.",
    "RETRY_ENABLED": "`False`: nothing is tried again. What a 429 or 503 asks of its origin is kept nevertheless.",
    "RETRY_EXCEPTIONS": "Set by a project, it says which failures are tried again; else the table of retry rules does.",
    "RETRY_HTTP_CODES": "Set by a project, it says which statuses are tried again; else the table of retry rules does.",
    "RETRY_PRIORITY_ADJUST": "Added to the priority of what is tried again.",
    "RETRY_TIMES": "Attempts after the first that faults may cost, for each request.",
    "DOWNLOAD_FAIL_ON_DATALOSS": "`False`: a response that is not whole goes to the callback, with the flag"
    " `dataloss`.",
    "ROBOTSTXT_OBEY": "robots.txt decides on every URL before it is dispatched.",
    "ROBOTSTXT_PARSER": "Another parser than the default reads the lines of robots.txt in the frontier's place.",
    "ROBOTSTXT_USER_AGENT": "Names the group of robots.txt that holds; else `USER_AGENT` does.",
    "USER_AGENT": "Names the group of robots.txt that holds. `doctor` looks whether it says whom to reach.",
    "ADDONS": "`doctor` looks whether the frontier is in it.",
    "SCHEDULER": "Set to the frontier's; another one in the project's settings is an error.",
    "DOWNLOADER_MIDDLEWARES": "The add-on puts its middlewares there, and takes out what they replace.",
    "SPIDER_MIDDLEWARES": "The same.",
    "EXTENSIONS": "The add-on puts its statistics there.",
    "DOWNLOAD_HANDLERS": "scrapy-playwright's handler is replaced by Scrapy's own: the frontier renders.",
    "DOWNLOAD_MAXSIZE": "How large a rendered page may grow, too, in characters.",
    "DOWNLOAD_HANDLERS_BASE": "Names Scrapy's own handler of a scheme.",
    "PLAYWRIGHT_BROWSER_TYPE": "Must be `chromium`, the default: no other browser can be cut off from the network.",
    "TWISTED_REACTOR": "Must be the asyncio reactor, which is the default.",
    "TWISTED_DNS_RESOLVER": "May name a resolver whose answers age; a warning says where it is not in force.",
    "DNSCACHE_ENABLED": "`False`: the frontier's resolvers keep no answer.",
    "DNSCACHE_SIZE": "How many hosts they keep; the least recently used makes room.",
    "DNS_TIMEOUT": "How many seconds a request waits for the addresses of its host.",
    "AUTOTHROTTLE_ENABLED": "The bounds of the frontier's own throttle are the following; Scrapy's extension is off.",
    "AUTOTHROTTLE_START_DELAY": "The interval that an origin is begun with.",
    "AUTOTHROTTLE_MAX_DELAY": "The longest interval; it goes before `FRONTIER_MAX_INTERVAL`.",
    "AUTOTHROTTLE_TARGET_CONCURRENCY": "Requests in flight at an origin on average, at the most.",
    "DUPEFILTER_CLASS": "Is not used; a warning says so where it is set.",
}
"""Settings of Scrapy, and what the frontier takes from them."""

META: Final[Mapping[str, str]] = {
    "frontier_delay": "Not before so many seconds from now: a number or a `timedelta`.",
    "frontier_not_before": "Not before this time: a `datetime`, or seconds since the epoch. With both keys the later"
    " time counts.",
    "download_slot": "A queue and a gate of its own, by this name, as in Scrapy. `DOWNLOAD_SLOTS` may give its limits.",
    "allow_offsite": "Lets the request leave `allowed_domains`; recorded as a waiver.",
    "dont_obey_robotstxt": "Lets the request through whatever robots.txt says; recorded as a waiver.",
    "dont_redirect": "The response goes to the callback, wherever it leads.",
    "handle_httpstatus_all": "The same, for every status.",
    "handle_httpstatus_list": "The same, for these.",
    "depth": "Set by Scrapy: how far the request is from the seeds.",
    "is_start_request": "Set by Scrapy on what `start()` yields.",
    "dont_retry": "Nothing is tried again.",
    "max_retry_times": "`RETRY_TIMES` for this request.",
    "priority_adjust": "`RETRY_PRIORITY_ADJUST` for this request.",
    "give_up_log_level": "`RETRY_GIVE_UP_LOG_LEVEL` for this request.",
    "download_timeout": "Kept by Scrapy; tells a timeout of the connection from one of the answer. Shortly before it is"
    " over, what has arrived of a body is taken where that is wished.",
    "download_maxsize": "How large a rendered page may grow, too, in characters.",
    "download_fail_on_dataloss": "`DOWNLOAD_FAIL_ON_DATALOSS` for this request.",
    "frontier_idempotent": "`True`: the request may be sent twice, whatever its method.",
    "frontier_holds": "Set by the frontier: how many times the request has waited by no fault of its own.",
    "playwright": "`True`: a browser renders the page (`FRONTIER_RENDER`); `False`: it does not, where all are"
    " rendered.",
    "playwright_context": "Names options of `PLAYWRIGHT_CONTEXTS` that the page's context is made with.",
    "playwright_context_kwargs": "Options of the page's context, besides `proxy` and `user_data_dir`.",
    "playwright_include_page": "The callback is given the page, still behind its guard, as `playwright_page`, and"
    " closes it.",
    "playwright_page": "Set by the frontier, where the page is kept for the callback.",
    "frontier_rendered": "Set by the frontier for the callback of a rendered page: what it asked for, and where it"
    " would have led.",
    "frontier_sub_request": "Set by the frontier on what a rendered page asks for.",
    "cookiejar": "The jar whose cookies a rendered page has, as in Scrapy.",
    "dont_merge_cookies": "A rendered page gets no cookies of Scrapy's jar, and gives none back.",
    "proxy": "The host that is looked up again after a failed connection, in place of the URL's.",
    "retry_times": "Set by Scrapy; tells a retry from any other request that stands in for one.",
    "redirect_urls": "Set by Scrapy: the URLs of the chain so far.",
    "redirect_times": "Set by Scrapy; tells a redirect likewise.",
}
"""Keys of `Request.meta`, and what the frontier makes of them."""


def used_settings() -> set[str]:
    """The names of settings that the code reads."""
    found = set(POLICY_INPUTS)
    for node in _nodes():
        match node:
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))) if _is(
                owner, "settings"
            ):
                found.add(name)
            case ast.Call(
                func=ast.Attribute(value=owner), args=[ast.Constant(value=str(name)), *_]
            ) if _is(owner, "settings"):
                found.add(name)
    return {name for name in found if name.isupper() and not name.startswith("FRONTIER_")}


def used_meta() -> set[str]:
    """The keys of a request's meta that the code reads."""
    found = set()
    for node in _nodes():
        match node:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]
            ) if _is(owner, "meta"):
                found.add(key)
            case ast.Compare(left=ast.Constant(value=str(key)), comparators=[owner]) if _is(
                owner, "meta"
            ):
                found.add(key)
    return found


def _is(node: ast.expr, name: str) -> bool:
    """Whether an expression is a variable or attribute whose name ends in `name`."""
    match node:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found.endswith(name)
    return False


def _nodes() -> Iterator[ast.AST]:
    for path in PACKAGE.rglob("*.py"):
        if "testing" not in path.parts:
            yield from ast.walk(ast.parse(path.read_text("utf-8")))
