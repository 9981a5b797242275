"""`frontier reparse`: the callbacks of a spider run on what an earlier run has kept, without a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.runs import find_run

if TYPE_CHECKING:
    import argparse

    from scrapy.settings import BaseSettings, Settings

    from scrapy_frontier.commands.invocation import Invocation

ADDON: Final = "scrapy_frontier.Addon"
SCHEDULER: Final = "scrapy_frontier.scheduler.Scheduler"

EPILOG: Final = (
    "Inside a project. The responses that RUN has kept (FRONTIER_EVIDENCE = body) go through the"
    " project's middlewares to the callbacks of its spider, as it is now; items go to pipelines and"
    " feeds. No request is sent, start() is not run. What comes of it is a new run of the same"
    " store; links that RUN has no response of are deferred in it, by the rule reparse.offline. For"
    " a spider in a file of its own: scrapy runspider FILE -s FRONTIER_REPARSE=RUN. Exit status: 0"
    " the new run is finished; 1 it ended early; 2 bad usage."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", metavar="RUN", help="id or name of the run to parse again")
    parser.add_argument(
        "-a",
        dest="arguments",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the spider (may be repeated)",
    )
    parser.add_argument("--name", help="name of the new run (default: RUN-reparse-TIME)")


def _run(invocation: Invocation) -> int:
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.utils.conf import arglist_to_dict

    with invocation.store() as store, store.reader() as connection:
        run_id = find_run(connection, invocation.options.which)
        spider = connection.exec_driver_sql(
            f"SELECT spider FROM run WHERE run_id = {run_id:d}"
        ).scalar_one()
    try:
        arguments: dict[str, str] = arglist_to_dict(invocation.options.arguments)
    except ValueError as error:
        raise ConfigError("-a needs NAME=VALUE") from error
    settings = _settings(invocation, run_id)
    _check_wiring(settings)
    spider_class = _spider_class(settings, spider)
    process = AsyncCrawlerProcess(cast("Settings", settings))
    crawler = process.create_crawler(spider_class)
    process.crawl(crawler, **arguments)
    process.start()
    reason = crawler.stats.get_value("finish_reason") if crawler.stats else None
    return 0 if reason == "finished" and not process.bootstrap_failed else 1


def _settings(invocation: Invocation, run_id: int) -> BaseSettings:
    settings = invocation.settings.copy()
    settings.set("FRONTIER_REPARSE", str(run_id), "cmdline")
    settings.set("FRONTIER_STORE", invocation.store_url, "cmdline")
    settings.set("FRONTIER_RUN", invocation.options.name, "cmdline")
    if settings.getpriority("LOG_ENABLED") in (None, 0, 10):
        settings.set("LOG_ENABLED", True, "cmdline")
    return settings


def _check_wiring(settings: BaseSettings) -> None:
    """Without the frontier this would be a crawl like any other, on the wire."""
    from scrapy.utils.misc import load_object

    addons = [load_object(path) for path in settings.getdict("ADDONS")]
    if load_object(ADDON) not in addons and settings.get("SCHEDULER") != SCHEDULER:
        raise ConfigError(
            "the frontier is not turned on in these settings: put scrapy_frontier.Addon into ADDONS"
        )
    if not settings.getbool("FRONTIER_ENABLED", True):
        raise ConfigError("FRONTIER_ENABLED is False: nothing can be parsed again without it")


def _spider_class(settings: BaseSettings, name: str) -> Any:
    from scrapy.spiderloader import get_spider_loader

    try:
        return get_spider_loader(settings).load(name)
    except KeyError as error:
        raise ConfigError(
            f"this project has no spider {name!r}; for one in a file of its own: scrapy runspider FILE"
            " -s FRONTIER_REPARSE=RUN"
        ) from error


COMMAND = Subcommand(
    "reparse",
    "Run the callbacks of a spider on what an earlier run has kept",
    _add_arguments,
    _run,
    formats=("text",),
    epilog=EPILOG,
)
