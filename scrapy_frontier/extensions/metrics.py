"""Answers Prometheus while a crawl runs: `FRONTIER_METRICS_PORT`, extra `prometheus`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured
from twisted.internet.error import CannotListenError
from twisted.web.resource import Resource
from twisted.web.server import Site

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.frontier import Frontier
from scrapy_frontier.frontier.metrics import METRICS, RUN
from scrapy_frontier.logs import get_logger

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    # typing.Self requires Python 3.11
    from typing_extensions import Self

logger = get_logger(__name__)


class FrontierMetrics:
    """The endpoint of one crawl. The port is opened before the run is: one that cannot be had ends the crawl there."""

    def __init__(self, crawler: Crawler, frontier: Frontier, port: int, host: str) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._port = _listen(self, port, host)
        logger.info(
            "Metrics for Prometheus: http://%s:%d/metrics",
            host,
            self._port.getHost().port,
            extra={"action": "metrics_opened"},
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension of a crawl. Raises `ConfigError` without the extra, or without the port."""
        frontier = Frontier.of(crawler)
        port = frontier.settings.metrics_port
        if port is None:
            raise NotConfigured
        extension = cls(crawler, frontier, port, frontier.settings.metrics_host)
        crawler.signals.connect(extension.engine_stopped, signals.engine_stopped)
        return extension

    def engine_stopped(self) -> Any:
        """Close the port; the engine waits for it."""
        return self._port.stopListening()

    def collect(self) -> Iterator[Any]:
        """The metrics as they are now, in the words of prometheus-client (its protocol for collectors)."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            InfoMetricFamily,
        )

        figures = self._frontier.statistics()
        if not figures:
            return
        run = self._frontier.opened.run
        spider = self._crawler.spider.name if self._crawler.spider is not None else ""
        about = InfoMetricFamily(RUN, "the run that this process works on", labels=["spider"])
        about.add_metric([spider], {"run": run.name, "id": str(run.run_id), "policy": run.policy})
        yield about
        for metric in METRICS:
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            made = family(metric.name, metric.meaning, labels=metric.labels)
            for value, stat in metric.stats.items():
                made.add_metric([spider, value][: len(metric.labels)], figures[stat])
            yield made


class _Metrics(Resource):
    """Answers out of the event loop: nothing changes while the figures are read."""

    def __init__(self, registry: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._registry = registry

    def render_GET(self, request: Any) -> bytes:  # noqa: N802
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(request.getHeader("accept") or "")
        request.setHeader("Content-Type", content_type)
        return encode(self._registry)


def _listen(extension: FrontierMetrics, port: int, host: str) -> Any:
    from twisted.internet import reactor as installed

    try:
        from prometheus_client import CollectorRegistry
    except ImportError as error:
        raise ConfigError(
            "FRONTIER_METRICS_PORT needs prometheus-client: install scrapy-frontier[prometheus]"
        ) from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(extension)
    root: Any = Resource()  # type: ignore[no-untyped-call]
    root.putChild(b"metrics", _Metrics(registry))
    reactor: Any = installed
    try:
        return reactor.listenTCP(port, Site(root), interface=host)  # type: ignore[no-untyped-call]
    except CannotListenError as error:
        raise ConfigError(
            f"FRONTIER_METRICS_PORT = {port}: {host} cannot be listened on there ({error.socketError}); another crawl"
            " may have it: give each a port of its own, or 0"
        ) from error
