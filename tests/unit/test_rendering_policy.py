"""What a rendered page may ask for, and how its browser is started."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_frontier.addon import RENDER, Addon
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import resolve
from scrapy_frontier.policy.rendering import (
    BYTES,
    REQUESTS,
    TYPE,
    TYPES,
    PageSpending,
    RenderAllow,
    RenderLimits,
)

launch = pytest.importorskip("scrapy_frontier.handlers.launch")


@given(
    asked=st.lists(st.tuples(st.sampled_from(sorted(TYPES)), st.integers(0, 300)), max_size=60),
    requests=st.integers(1, 20),
    most=st.integers(1, 1000),
)
def test_no_page_asks_for_more_than_its_limits(
    asked: list[tuple[str, int]], requests: int, most: int
) -> None:
    """However types and sizes fall: counts stay under the ceilings, and the first one that is met is named."""
    spending = PageSpending(RenderAllow(), RenderLimits(requests=requests, bytes=most))
    sent = handed = 0
    for kind, size in asked:
        rule = spending.ask(kind)
        if rule:
            assert rule == TYPE or spending.reached
            continue
        assert kind in RenderAllow().types
        sent += 1
        if not spending.take(size):
            handed += size
    assert sent <= requests
    assert handed <= most
    assert spending.reached in ("", REQUESTS, BYTES)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"type": []},
        {"types": "script"},
        {"types": ["picture"]},
        {"places": ["ftp://x"]},
        {"types": [], "places": "x"},
    ],
)
def test_bad_values_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError):
        RenderAllow.from_setting(value)


def test_places_are_places() -> None:
    """As in the scope: a path covers what lies below it, a host is no substring."""
    allow = RenderAllow.from_setting({"places": ["https://cdn.example.net/lib/", "*.example.org"]})
    covered = {
        url: allow.covers(resolve(url))  # type: ignore[arg-type]
        for url in (
            "https://cdn.example.net/lib/a.js",
            "https://cdn.example.net/other.js",
            "http://static.example.org/x",
            "http://example.org.evil.net/x",
        )
    }
    assert list(covered.values()) == [True, False, True, False]


def test_the_browser_has_no_network_whatever_the_options_say() -> None:
    given = {
        "args": ["--proxy-server=http://out", "--proxy-bypass-list=*", "--lang=de"],
        "proxy": {"server": "http://out"},
        "headless": False,
    }
    made = launch.options(given, "/usr/bin/chromium", "http://127.0.0.1:1")
    assert "proxy" not in made
    assert [flag for flag in made["args"] if "proxy-" in flag] == [
        "--proxy-server=http://127.0.0.1:1",
        "--proxy-bypass-list=<-loopback>",
    ]
    assert "--lang=de" in made["args"]
    assert made["headless"] is False
    context = launch.context_options(
        {"proxy": {}, "user_data_dir": "x", "service_workers": "allow", "locale": "de"}, "agent"
    )
    assert context == {
        "locale": "de",
        "user_agent": "agent",
        "service_workers": "block",
        "accept_downloads": False,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLAYWRIGHT_CDP_URL", "http://127.0.0.1:9222"),
        ("PLAYWRIGHT_CONNECT_URL", "ws://x"),
        ("PLAYWRIGHT_BROWSER_PROVIDER", "x.Provider"),
        ("PLAYWRIGHT_BROWSER_TYPE", "firefox"),
    ],
)
def test_browsers_that_cannot_be_cut_off_are_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        launch.check(Settings({name: value}))


def test_the_addon_takes_the_place_of_the_stock_handler() -> None:
    """A project that has scrapy-playwright's handler keeps its spiders; its pages go through the frontier."""
    path = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    settings = Settings({"DOWNLOAD_HANDLERS": {"http": path, "https": path}}, priority="project")
    Addon().update_settings(settings)
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    base = settings.getdict("DOWNLOAD_HANDLERS_BASE")
    assert {scheme: handlers[scheme] for scheme in ("http", "https")} == {
        scheme: base[scheme] for scheme in ("http", "https")
    }
    assert RENDER.rpartition(".")[2] in {
        getattr(key, "__name__", key) for key in settings.getdict("DOWNLOADER_MIDDLEWARES")
    }


def test_none_leaves_all_as_it_is() -> None:
    settings = Settings({"FRONTIER_RENDER": "none"}, priority="project")
    Addon().update_settings(settings)
    assert RENDER.rpartition(".")[2] not in {
        getattr(key, "__name__", key) for key in settings.getdict("DOWNLOADER_MIDDLEWARES")
    }
