"""What a run says of itself: its policy when it opens, its account when it closes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.utils.project import data_path

from scrapy_frontier import failpoints
from scrapy_frontier.identity import NORMALISER_VERSION
from scrapy_frontier.logs import get_logger
from scrapy_frontier.report.redacted import redacted
from scrapy_frontier.settings import setting_name

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from scrapy_frontier.frontier.runs import OpenRun
    from scrapy_frontier.policy.redaction import Redaction
    from scrapy_frontier.report import Coverage
    from scrapy_frontier.settings import FrontierSettings
    from scrapy_frontier.store.opening import Store

logger = get_logger(__name__)

POLICY_INPUTS: Final = (
    "CONCURRENT_REQUESTS",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "DEPTH_LIMIT",
    "DEPTH_PRIORITY",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_FAIL_ON_DATALOSS",
    "DOWNLOAD_DELAY_JITTER",
    "DOWNLOAD_SLOTS",
    "DOWNLOAD_TIMEOUT",
    "RANDOMIZE_DOWNLOAD_DELAY",
    "REDIRECT_ENABLED",
    "REDIRECT_MAX_TIMES",
    "RETRY_ENABLED",
    "RETRY_EXCEPTIONS",
    "RETRY_HTTP_CODES",
    "RETRY_PRIORITY_ADJUST",
    "RETRY_TIMES",
    "ROBOTSTXT_OBEY",
    "ROBOTSTXT_PARSER",
    "ROBOTSTXT_USER_AGENT",
    "URLLENGTH_LIMIT",
    "USER_AGENT",
)
"""Settings of Scrapy that the frontier decides by."""

_PLACES: Final = frozenset(
    {
        "store",
        "run",
        "report_dir",
        "report_html",
        "redact",
        "artifacts",
        "gc_freeze",
        "dns_floor_s",
        "dns_ceiling_s",
        "dns_negative_s",
        "progress_interval_s",
        "metrics_port",
        "metrics_host",
    }
)
"""Settings that say where, how hosts are found, or what is shown, and nothing of what is decided."""


def policy(
    settings: FrontierSettings, scrapy_settings: BaseSettings, spider: Spider
) -> dict[str, Any]:
    """Every setting and rule in force, as plain data: the text of a policy version. None stands for a default."""
    own = {
        setting_name(item): _plain(scrapy_settings.get(setting_name(item)))
        for item in dataclasses.fields(settings)
        if item.name not in _PLACES
    }
    inputs = {name: _plain(scrapy_settings.get(name)) for name in POLICY_INPUTS}
    domains = getattr(spider, "allowed_domains", None)
    return {
        "normaliser": NORMALISER_VERSION,
        "spider": spider.name,
        "allowed_domains": sorted(map(str, domains)) if domains else None,
        **own,
        **inputs,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def as_json(value: Any) -> str:
    """JSON as the ledger keeps it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def write(store: Store, run: OpenRun, settings: FrontierSettings, redaction: Redaction) -> None:
    """Log the short report, and write the whole one as JSON and as text, and as a page where it is wanted."""
    from scrapy_frontier.report import coverage, render_long, render_short

    with store.reader() as connection:
        account = coverage(connection, run.run_id)
    shown = redacted(account, redaction)
    for line in render_short(shown).splitlines():
        logger.info("%s", line, extra={"action": "run_report"})
    folder = _folder(store, settings)
    if folder is None:
        return
    stem = f"{run.run_id:04d}-{_file_name(run.name)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{stem}.json").write_text(
            json.dumps(shown.to_json(), indent=2, ensure_ascii=False), "utf-8"
        )
        failpoints.reach("close.half_reported")
        (folder / f"{stem}.txt").write_text(render_long(shown), "utf-8")
        _write_scope(folder / f"{stem}.scope.json", account)
    except OSError as error:
        logger.error(
            "The report could not be written to %s: %s; `scrapy frontier report` gives it from the store",
            folder,
            error,
            extra={"action": "report_failed"},
        )
        return
    logger.info("Report: %s", folder / f"{stem}.txt", extra={"action": "report_written"})
    if settings.report_html:
        _write_page(folder / f"{stem}.html", store, shown, redaction)


def _write_page(path: Path, store: Store, shown: Coverage, redaction: Redaction) -> None:
    """The page comes last: whatever becomes of it, the account is written. What it reads is as old as the account,
    for the run is closed.
    """
    from scrapy_frontier.report.html import read_facts, render_html

    try:
        with store.reader() as connection:
            facts = redacted(read_facts(connection, shown.run.id), redaction)
        path.write_text(render_html(shown, facts), "utf-8", errors="backslashreplace")
    except Exception as error:
        logger.error(
            "The page of the report, %s, could not be made: %r; `scrapy frontier report --format html` makes it from"
            " the store",
            path,
            error,
            exc_info=error,
            extra={"action": "report_failed"},
        )
        return
    logger.info("Report as a page: %s", path, extra={"action": "report_written"})


def _write_scope(path: Path, account: Coverage) -> None:
    """A scope for a run of what is left; a file of an earlier end of this run goes where nothing is."""
    scope = account.unfinished.scope
    if scope is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(
            json.dumps({"FRONTIER_SCOPE": scope}, indent=2, ensure_ascii=False), "utf-8"
        )


def _folder(store: Store, settings: FrontierSettings) -> Path | None:
    if settings.report_dir is not None:
        return Path(settings.report_dir)
    if store.path is not None:
        return store.path.parent / "reports"
    return None if store.is_temporary else Path(data_path("reports"))


def _file_name(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:100]
