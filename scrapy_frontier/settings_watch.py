"""The settings of what a crawl shows of itself while it runs, a part of `FrontierSettings`."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_frontier import setting_values as read
from scrapy_frontier.setting_values import setting
from scrapy_frontier.settings_render import RenderSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings(RenderSettings):
    """Progress and metrics. None of them has a say in what is fetched."""

    progress_interval_s: float = setting(
        60.0,
        read.seconds_or_off,
        "Seconds between two lines of progress in the log. At a terminal one live line below the log takes their place."
        " 0: neither.",
    )
    metrics_port: int | None = setting(
        None,
        read.port,
        "Port at which the crawl answers Prometheus, under `/metrics` (extra `prometheus`); 0 for any that is free. A"
        " port that is taken ends the crawl before it begins.",
        shown="none: no endpoint",
    )
    metrics_host: str = setting(
        "127.0.0.1",
        read.text,
        "Address on which that port is opened. Whoever reaches it can read the statistics, which hold no URL.",
    )
