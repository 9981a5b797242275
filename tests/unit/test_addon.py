"""The add-on: one line turns the frontier on, and what a project has set itself stays."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.extensions.throttle import AutoThrottle
from scrapy.settings import BaseSettings, Settings
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware
from scrapy.utils.misc import load_object

from scrapy_frontier import addon
from scrapy_frontier.addon import Addon, trial_command
from scrapy_frontier.downloadermiddlewares import redirect
from scrapy_frontier.downloadermiddlewares.admission import AdmissionMiddleware
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.extensions.statistics import FrontierStatistics
from scrapy_frontier.frontier.core import SLOT
from scrapy_frontier.scheduler import Scheduler
from scrapy_frontier.spidermiddlewares.discovery import DiscoveryMiddleware


class OwnRedirect(RedirectMiddleware):
    """A project's redirect middleware."""


class OwnOffsite(OffsiteMiddleware):
    """A project's offsite middleware."""


class OwnScheduler(Scheduler):
    """A project's scheduler."""


def turned_on(**values: Any) -> Settings:
    """The settings of a project with these values, after the add-on."""
    settings = Settings(values, priority="project")
    Addon().update_settings(settings)
    return settings


def components(settings: BaseSettings, name: str) -> dict[type, int]:
    """The components in force: class to order."""
    merged = (
        settings.get_component_priority_dict_with_base(name)
        if hasattr(settings, "get_component_priority_dict_with_base")
        else settings.getwithbase(name)
    )
    return {load_object(key): order for key, order in merged.items() if order is not None}


def test_parts_are_in_their_places() -> None:
    """Admission stands nearest to the downloader, discovery nearest to the engine."""
    settings = turned_on()
    downloader = components(settings, "DOWNLOADER_MIDDLEWARES")
    spider = components(settings, "SPIDER_MIDDLEWARES")
    assert load_object(settings["SCHEDULER"]) is Scheduler
    assert max(downloader, key=downloader.__getitem__) is AdmissionMiddleware
    assert min(spider, key=spider.__getitem__) is DiscoveryMiddleware
    assert FrontierStatistics in components(settings, "EXTENSIONS")


def test_what_drops_in_silence_is_switched_off() -> None:
    """Built-in components that drop requests unseen are replaced by rules of the account."""
    settings = turned_on()
    assert OffsiteMiddleware not in components(settings, "DOWNLOADER_MIDDLEWARES")
    assert UrlLengthMiddleware not in components(settings, "SPIDER_MIDDLEWARES")


def test_replacements_stand_where_the_built_in_ones_stood() -> None:
    """Order is kept: other middlewares see the same before and after them."""
    before = components(Settings(), "DOWNLOADER_MIDDLEWARES")
    after = components(turned_on(), "DOWNLOADER_MIDDLEWARES")
    for builtin, ours in (
        (RedirectMiddleware, redirect.RedirectMiddleware),
        (MetaRefreshMiddleware, redirect.MetaRefreshMiddleware),
    ):
        assert builtin not in after
        assert after[ours] == before[builtin]


@pytest.mark.parametrize(
    "key", [RedirectMiddleware, "scrapy.downloadermiddlewares.redirect.RedirectMiddleware"]
)
def test_component_that_the_project_switched_off_stays_off(key: Any) -> None:
    """`RedirectMiddleware: None` means no redirects, with the frontier too."""
    settings = turned_on(DOWNLOADER_MIDDLEWARES={key: None})
    found = components(settings, "DOWNLOADER_MIDDLEWARES")
    assert not any(issubclass(found_class, RedirectMiddleware) for found_class in found)


def test_component_that_the_project_moved_stays_there() -> None:
    """An order of the project's own goes to the replacement."""
    settings = turned_on(DOWNLOADER_MIDDLEWARES={RedirectMiddleware: 123})
    found = components(settings, "DOWNLOADER_MIDDLEWARES")
    assert found[redirect.RedirectMiddleware] == 123
    assert RedirectMiddleware not in found


@pytest.mark.parametrize("own", [OwnRedirect, OwnOffsite])
def test_component_of_the_project_is_kept_with_a_warning(
    own: type, caplog: pytest.LogCaptureFixture
) -> None:
    """A subclass that a project put in place stays, and the log says what that means."""
    builtin = own.__bases__[0]
    settings = turned_on(DOWNLOADER_MIDDLEWARES={builtin: None, own: 77})
    found = components(settings, "DOWNLOADER_MIDDLEWARES")
    assert found[own] == 77
    assert builtin not in found
    settings = turned_on(DOWNLOADER_MIDDLEWARES={own: 77})
    assert components(settings, "DOWNLOADER_MIDDLEWARES")[own] == 77
    assert own.__qualname__ in caplog.text


def test_applied_twice_is_applied_once() -> None:
    """The add-on can be asked again without harm."""
    settings = turned_on()
    once = {name: components(settings, name) for name in NAMES}
    Addon().update_settings(settings)
    assert {name: components(settings, name) for name in NAMES} == once


NAMES = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS")


def test_wiring_by_hand_is_the_same() -> None:
    """What the documentation spells out for settings.py is what the add-on does, and is kept by it."""
    by_hand = turned_on(
        SCHEDULER=addon.SCHEDULER,
        DOWNLOADER_MIDDLEWARES={addon.ADMISSION: 990},
        SPIDER_MIDDLEWARES={addon.DISCOVERY: 10},
        EXTENSIONS={addon.STATISTICS: 0},
    )
    for name in NAMES:
        assert components(by_hand, name) == components(turned_on(), name)


def test_slot_waits_for_nothing_and_the_users_stay() -> None:
    """The frontier's downloader slot is added to DOWNLOAD_SLOTS, whoever set that."""
    mine = {"example.com": {"concurrency": 1, "delay": 2}}
    slots = turned_on(DOWNLOAD_SLOTS=mine).getdict("DOWNLOAD_SLOTS")
    assert slots["example.com"] == mine["example.com"]
    assert slots[SLOT]["delay"] == slots[SLOT]["jitter"] == 0
    assert slots[SLOT]["concurrency"] >= 10**6


def test_scheduler_of_the_project() -> None:
    """Another scheduler is refused with both remedies; a subclass of ours is used."""
    with pytest.raises(ConfigError, match=r"SCHEDULER.*ADDONS"):
        turned_on(SCHEDULER="scrapy.core.scheduler.Scheduler")
    assert turned_on(SCHEDULER="scrapy_frontier.scheduler.Scheduler")
    assert turned_on(SCHEDULER=Scheduler)


def test_subclass_of_the_scheduler_is_used() -> None:
    """A project may extend the frontier's scheduler."""
    settings = turned_on(SCHEDULER=OwnScheduler)
    assert load_object(settings["SCHEDULER"]) is OwnScheduler


def test_switched_off_by_its_setting() -> None:
    """FRONTIER_ENABLED = False leaves the settings as they were."""
    settings = Settings({"FRONTIER_ENABLED": False}, priority="project")
    before = settings.copy_to_dict()
    with pytest.raises(NotConfigured):
        Addon().update_settings(settings)
    assert settings.copy_to_dict() == before


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"AUTOTHROTTLE_ENABLED": True, "FRONTIER_HEALTH": False}, "AUTOTHROTTLE_ENABLED"),
        ({"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}, "DUPEFILTER_CLASS"),
    ],
)
def test_settings_without_effect_are_named(
    values: dict[str, Any], part: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A setting that does nothing any more is a warning, not a surprise."""
    with caplog.at_level(logging.WARNING):
        turned_on(**values)
    assert part in caplog.text
    caplog.clear()
    turned_on()
    assert not caplog.records


def test_settings_stay_picklable() -> None:
    """Settings travel to other processes, in Scrapy Cloud and elsewhere."""
    settings = turned_on()
    assert pickle.loads(pickle.dumps(settings.copy_to_dict())) == settings.copy_to_dict()


def test_crawler_takes_the_add_on() -> None:
    """Scrapy finds it by the one line of the documentation."""

    class AnySpider(Spider):
        name = "any"

    crawler = Crawler(AnySpider, {"ADDONS": {"scrapy_frontier.Addon": 500}})
    crawler.spider = AnySpider.from_crawler(crawler)
    crawler.addons.load_settings(crawler.settings)
    assert load_object(crawler.settings["SCHEDULER"]) is Scheduler


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["python", "/usr/bin/scrapy", "shell", "http://x"], "shell"),
        (["/venv/bin/python", "-m", "scrapy", "fetch", "--nolog", "http://x"], "fetch"),
        (["python", "-m", "scrapy", "parse", "-c", "crawl", "http://x"], "parse"),
        (["python", "scrapy", "check"], "check"),
        ([r"C:\Scripts\scrapy.exe".replace("\\", "/"), "bench"], "bench"),
        (["python", "-m", "scrapy", "crawl", "shell"], None),
        (["python", "-m", "scrapy", "runspider", "fetch.py"], None),
        (["python", "script.py", "shell"], None),
        (["python", "-m", "scrapy"], None),
        (["python", "-m", "pytest", "-k", "scrapy"], None),
        ([], None),
    ],
)
def test_trial_commands(argv: list[str], command: str | None) -> None:
    """Commands that try something out are told from those that crawl, by the command line alone."""
    assert trial_command(argv) == command


def test_trial_command_keeps_the_frontier_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """`scrapy shell` gets a plain Scrapy, and no durable run is touched."""
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "scrapy", "shell"])
    with pytest.raises(NotConfigured, match="scrapy shell"):
        turned_on()


class OwnThrottle(AutoThrottle):
    """A project's throttle."""


@pytest.mark.parametrize("own", [None, AutoThrottle, OwnThrottle])
def test_autothrottle_and_the_frontier_s_health_are_never_on_together(
    own: type | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Scrapy's extension goes whoever put it there; one of the project's own goes with a warning."""
    given = {} if own is None else {"EXTENSIONS": {own: 500}}
    with caplog.at_level(logging.WARNING):
        settings = turned_on(AUTOTHROTTLE_ENABLED=True, **given)
    left = components(settings, "EXTENSIONS")
    assert not any(issubclass(component, AutoThrottle) for component in left)
    assert ("OwnThrottle" in caplog.text) == (own is OwnThrottle)
