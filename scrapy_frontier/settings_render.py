"""The settings of rendered pages, a part of `FrontierSettings`."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_frontier import setting_values as read
from scrapy_frontier.policy.rendering import RenderAllow, RenderLimits
from scrapy_frontier.setting_values import setting

LIMITS = RenderLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderSettings:
    """What is rendered, and how far a page may go."""

    render: str = setting(
        "asked",
        read.render,
        "Which pages a browser renders (extra `playwright`): `asked`, those whose request has `playwright` in its meta;"
        " `all`, every HTML page that answers a request of the spider; `none`.",
    )
    render_executable: str | None = setting(
        None,
        read.optional_text,
        "The Chromium to render with, a path or a name on the path.",
        shown="`executable_path` of `PLAYWRIGHT_LAUNCH_OPTIONS`, else Chromium on the path, else Playwright's own",
    )
    render_allow: RenderAllow = setting(
        RenderAllow(),
        lambda value: RenderAllow.from_setting(read.from_json(value)),
        "What a rendered page may ask for beside its document: `types` of requests, by Playwright's names; and `places`"
        " that it may use although they are out of scope, such as the host of its scripts.",
        shown='`{"types": ["document", "fetch", "script", "stylesheet", "xhr"], "places": []}`',
    )
    render_robots: bool = setting(
        True,
        read.switch,
        "Whether robots.txt holds for what a rendered page asks for, as it does for Google's renderer: what it forbids"
        " the page goes without.",
    )
    render_time_s: float = setting(
        LIMITS.time_s,
        read.seconds,
        "Seconds that a page may spend in the browser, the waits of its sub-requests at the gates included.",
    )
    render_requests: int = setting(
        LIMITS.requests, read.count, "Sub-requests that a rendered page may make."
    )
    render_bytes: int = setting(
        LIMITS.bytes,
        read.count,
        "Bytes that the sub-requests of a rendered page may bring.",
        shown="`33554432`: 32 MiB",
    )
    render_partial: bool = setting(
        True,
        read.switch,
        "A page that meets one of these limits is given to its callback as it is then, with the limit among its flags."
        " False: it fails, by the cause `render.limit`.",
    )
    render_pages: int | None = setting(
        None,
        read.limit,
        "Budget: pages that one run renders. Further ones fail, by the cause `render.pages`.",
        shown="no limit",
    )
    render_concurrency: int = setting(
        2,
        read.count,
        "Pages in the browser at once. A page keeps about one core busy: more than there are cores are no faster.",
    )
    render_quiet_s: float = setting(
        0.2,
        read.seconds,
        "A page is done when it has loaded, its page methods have run, and none of its sub-requests has been under way"
        " for so many seconds.",
    )
    render_screenshot: bool = setting(
        False,
        read.switch,
        "Keeps a picture of each rendered page beside its final document, where `FRONTIER_EVIDENCE` is `body`.",
    )
    render_har: bool = setting(
        False,
        read.switch,
        "Keeps an HTTP Archive (HAR 1.2) of each rendered page beside its final document, where `FRONTIER_EVIDENCE` is"
        " `body`: headers and times, no bodies.",
    )
