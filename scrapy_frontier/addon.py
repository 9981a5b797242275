"""One line in ADDONS turns everything on; the same wiring can be spelled out in settings.py."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.downloadermiddlewares import redirect, retry
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.extensions.throttle import AutoThrottle
from scrapy.spidermiddlewares import depth
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware
from scrapy.utils.misc import load_object

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.logs import get_logger
from scrapy_frontier.settings import FrontierSettings

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = get_logger(__name__)

SCHEDULER: Final = "scrapy_frontier.scheduler.Scheduler"
ADMISSION: Final = "scrapy_frontier.downloadermiddlewares.admission.AdmissionMiddleware"
DISCOVERY: Final = "scrapy_frontier.spidermiddlewares.discovery.DiscoveryMiddleware"
REDIRECT: Final = "scrapy_frontier.downloadermiddlewares.redirect.RedirectMiddleware"
META_REFRESH: Final = "scrapy_frontier.downloadermiddlewares.redirect.MetaRefreshMiddleware"
RETRY: Final = "scrapy_frontier.downloadermiddlewares.retry.RetryMiddleware"
RENDER: Final = "scrapy_frontier.downloadermiddlewares.render.RenderMiddleware"
DEPTH: Final = "scrapy_frontier.spidermiddlewares.depth.DepthMiddleware"
PROGRESS: Final = "scrapy_frontier.extensions.progress.FrontierProgress"
METRICS: Final = "scrapy_frontier.extensions.metrics.FrontierMetrics"
STATISTICS: Final = "scrapy_frontier.extensions.statistics.FrontierStatistics"

EXTENSIONS: Final = ((STATISTICS, 0), (PROGRESS, -100), (METRICS, 0))
"""With their positions: a feed to standard output must find the terminal shared already."""

SLOT_SETTINGS: Final = {"concurrency": 10**6, "delay": 0, "jitter": 0}
"""The frontier's downloader slot waits for nothing: the origins' gates have decided already."""

TRIAL_COMMANDS: Final = frozenset({"shell", "fetch", "view", "parse", "check", "bench"})
"""Commands of Scrapy that try something out: they never touch a durable run."""


class Addon:
    """`ADDONS = {"scrapy_frontier.Addon": 500}`.

    What a project has set itself stays as it is; where that keeps the frontier from working, a warning says so.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Put the parts of the frontier in their places."""
        if not FrontierSettings.from_settings(settings).enabled:
            raise NotConfigured("FRONTIER_ENABLED is False")
        command = trial_command(sys.orig_argv)
        if command is not None:
            raise NotConfigured(f"'scrapy {command}' does not touch a durable run")
        _set_scheduler(settings)
        settings.setdefault_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES", load_object(ADMISSION), 990
        )
        settings.setdefault_in_component_priority_dict(
            "SPIDER_MIDDLEWARES", load_object(DISCOVERY), 10
        )
        for extension, position in EXTENSIONS:
            settings.setdefault_in_component_priority_dict(
                "EXTENSIONS", load_object(extension), position
            )
        _replace(settings, "DOWNLOADER_MIDDLEWARES", redirect.RedirectMiddleware, REDIRECT)
        _replace(settings, "DOWNLOADER_MIDDLEWARES", redirect.MetaRefreshMiddleware, META_REFRESH)
        _replace(settings, "DOWNLOADER_MIDDLEWARES", retry.RetryMiddleware, RETRY)
        _replace(settings, "SPIDER_MIDDLEWARES", depth.DepthMiddleware, DEPTH)
        # Both drop requests where no account could see it; the scope decides for the first, and a rule named
        # url.too_long for the second.
        _switch_off(settings, "DOWNLOADER_MIDDLEWARES", OffsiteMiddleware)
        # Judges too late, and takes a failure for a permission.
        _switch_off(settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware)
        _switch_off(settings, "SPIDER_MIDDLEWARES", UrlLengthMiddleware)
        _switch_off_throttle(settings)
        _add_slot(settings)
        _add_rendering(settings)
        _warn_of_unused(settings)


def trial_command(argv: Sequence[str]) -> str | None:
    """The trial command of Scrapy that this process runs, if it is one; `argv` as in `sys.orig_argv`.

    (Scrapy takes the command's name out of `sys.argv` before an add-on is asked.)
    """
    words = iter(argv)
    if not any(Path(word).stem == "scrapy" for word in words):
        return None
    command = next((word for word in words if not word.startswith("-")), None)
    return command if command in TRIAL_COMMANDS else None


def _set_scheduler(settings: BaseSettings) -> None:
    settings.set("SCHEDULER", SCHEDULER, priority="addon")
    try:
        chosen = load_object(settings["SCHEDULER"])
    except (ImportError, NameError, ValueError):
        chosen = None
    if not (isinstance(chosen, type) and issubclass(chosen, load_object(SCHEDULER))):
        raise ConfigError(
            f"SCHEDULER = {settings['SCHEDULER']!r} in your settings keeps the frontier out: remove"
            " that line, or take scrapy_frontier.Addon out of ADDONS"
        )


def _switch_off(settings: BaseSettings, name: str, builtin: type) -> None:
    """Disable a built-in component, unless the project has said something about it itself."""
    own = {load_object(key) for key in settings.get(name, {}) if key is not None}
    if builtin in own:
        return
    for component in own:
        if isinstance(component, type) and issubclass(component, builtin):
            logger.warning(
                "%s in %s drops requests that the frontier then cannot account for; remove it if FRONTIER_SCOPE says"
                " the same",
                component.__qualname__,
                name,
                extra={"action": "component_kept"},
            )
            return
    settings.set_in_component_priority_dict(name, builtin, None)


def _switch_off_throttle(settings: BaseSettings) -> None:
    """Scrapy's AutoThrottle works on downloader slots, which the frontier does not use; its settings are read by the
    frontier's own, and the two are never on together.
    """
    for key in list(settings.getdict("EXTENSIONS")):
        component = load_object(key)
        if isinstance(component, type) and issubclass(component, AutoThrottle):
            if component is not AutoThrottle:
                logger.warning(
                    "%s in EXTENSIONS is switched off: the frontier adapts the pace of origins itself, see"
                    " FRONTIER_HEALTH",
                    component.__qualname__,
                    extra={"action": "component_replaced"},
                )
            settings.set_in_component_priority_dict("EXTENSIONS", component, None)
    settings.set_in_component_priority_dict("EXTENSIONS", AutoThrottle, None)


def _replace(settings: BaseSettings, name: str, builtin: type, path: str) -> None:
    """Put a component of ours where the built-in one stands, unless the project switched that off or replaced it."""
    position = settings.getdict(f"{name}_BASE").get(f"{builtin.__module__}.{builtin.__qualname__}")
    own = {load_object(key): order for key, order in settings.get(name, {}).items()}
    for component, order in own.items():
        if component is builtin:
            if order is None:
                return
            position = order
        elif isinstance(component, type) and issubclass(component, builtin):
            if component is not load_object(path):
                logger.warning(
                    "%s in %s stands in for %s: the frontier's %s is not used",
                    component.__qualname__,
                    name,
                    builtin.__qualname__,
                    path,
                    extra={"action": "component_kept"},
                )
            return
    settings.set_in_component_priority_dict(name, builtin, None)
    settings.set_in_component_priority_dict(name, load_object(path), position)


def _add_slot(settings: BaseSettings) -> None:
    from scrapy_frontier.frontier.slots import SLOT

    slots = {**settings.getdict("DOWNLOAD_SLOTS"), str(SLOT): SLOT_SETTINGS}
    priority = settings.getpriority("DOWNLOAD_SLOTS")
    settings.set("DOWNLOAD_SLOTS", slots, priority=max(priority or 0, 15))


def _add_rendering(settings: BaseSettings) -> None:
    """Render by our own middleware where scrapy-playwright is installed, whose handler would let pages out."""
    chosen = FrontierSettings.from_settings(settings).render
    if find_spec("scrapy_playwright") is None:
        if chosen == "all":
            raise ConfigError(
                "FRONTIER_RENDER = 'all' needs scrapy-playwright: install scrapy-frontier[playwright]"
            )
        return
    if chosen == "none":
        return
    settings.setdefault_in_component_priority_dict(
        "DOWNLOADER_MIDDLEWARES", load_object(RENDER), 585
    )
    stock = load_object("scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler")
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    own = settings.getdict("DOWNLOAD_HANDLERS_BASE")
    for scheme, path in list(handlers.items()):
        handler = load_object(path) if path is not None else None
        if isinstance(handler, type) and issubclass(handler, stock):
            handlers[scheme] = own[scheme]
            logger.log(
                logging.INFO if handler is stock else logging.WARNING,
                "%s for %s in DOWNLOAD_HANDLERS is not used: %s fetches pages, and the frontier renders them",
                path,
                scheme,
                own[scheme],
                extra={"action": "component_replaced"},
            )
    priority = settings.getpriority("DOWNLOAD_HANDLERS")
    settings.set("DOWNLOAD_HANDLERS", handlers, priority=max(priority or 0, 15))


def _warn_of_unused(settings: BaseSettings) -> None:
    adapts = FrontierSettings.from_settings(settings).health
    if settings.getbool("AUTOTHROTTLE_ENABLED") and not adapts:
        logger.warning(
            "AUTOTHROTTLE_ENABLED has no effect while FRONTIER_HEALTH is False: the gates keep DOWNLOAD_DELAY and"
            " CONCURRENT_REQUESTS_PER_DOMAIN for each origin",
            extra={"action": "setting_unused"},
        )
    if settings.getpriority("DUPEFILTER_CLASS"):
        logger.warning(
            "DUPEFILTER_CLASS is not used: the frontier decides by the fetch key, see FRONTIER_PARAMETER_RULES",
            extra={"action": "setting_unused"},
        )
