"""Reads Scrapy's settings about concurrency and delays into the rules that the gates are kept by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_frontier.policy.health import HealthRules
from scrapy_frontier.policy.politeness import PolitenessRules, Ranked

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from scrapy_frontier.settings import FrontierSettings


def rules(settings: BaseSettings, spider: Spider) -> PolitenessRules:
    """The rules that a project's settings and its spider ask for, with Scrapy's meaning."""
    jitter = (
        _ranked(settings, "DOWNLOAD_DELAY_JITTER") if "DOWNLOAD_DELAY_JITTER" in settings else None
    )
    return PolitenessRules.from_values(
        concurrent_requests_per_domain=settings["CONCURRENT_REQUESTS_PER_DOMAIN"],
        concurrent_requests_per_ip=settings.get("CONCURRENT_REQUESTS_PER_IP", 0),
        download_delay=settings["DOWNLOAD_DELAY"],
        download_delay_jitter=jitter,
        randomize_download_delay=_ranked(settings, "RANDOMIZE_DOWNLOAD_DELAY"),
        download_slots=settings.getdict("DOWNLOAD_SLOTS"),
        spider_download_delay=getattr(spider, "download_delay", None),
        spider_max_concurrent_requests=getattr(spider, "max_concurrent_requests", None),
    )


def health_rules(settings: FrontierSettings, scrapy_settings: BaseSettings) -> HealthRules | None:
    """By what the pace of origins is adapted; None where it is not (`FRONTIER_HEALTH`).

    With `AUTOTHROTTLE_ENABLED`, Scrapy's `AUTOTHROTTLE_*` settings are the bounds.
    """
    if not settings.health:
        return None
    if not scrapy_settings.getbool("AUTOTHROTTLE_ENABLED"):
        return HealthRules(settings.max_interval_s, settings.close_after_s)
    return HealthRules.from_autothrottle(
        settings.close_after_s,
        start_delay=scrapy_settings["AUTOTHROTTLE_START_DELAY"],
        max_delay=scrapy_settings["AUTOTHROTTLE_MAX_DELAY"],
        target_concurrency=scrapy_settings["AUTOTHROTTLE_TARGET_CONCURRENCY"],
    )


def _ranked(settings: BaseSettings, name: str) -> Any:
    return Ranked(settings.get(name), settings.getpriority(name) or 0)
