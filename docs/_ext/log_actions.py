"""The actions of the log: what each record of the package says of itself, and what that means.

`used` reads them off the source, with the levels they are logged at; a test holds the texts to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import scrapy_frontier

PACKAGE: Final = Path(scrapy_frontier.__file__).parent

LEVELS: Final = ("debug", "info", "warning", "error", "critical", "exception", "log")
"""Methods of a logger that write a record."""

ACTIONS: Final[Mapping[str, str]] = {
    "bad_meta": "A key of `Request.meta` has a value that means nothing, and is ignored.",
    "browser_ended": "A browser did not close its page, and was ended.",
    "clock_set_back": "The clock is behind the last entry of the ledger; the run goes on by the ledger's time.",
    "close_failed": "The end of the run could not be written; the run can be resumed.",
    "component_kept": "A component of the project stands where one of the frontier's would.",
    "component_replaced": "A component of Scrapy or of the project is not used.",
    "dns_failed": "A host has no address, or it could not be looked up.",
    "dns_forgotten": "A connection failed, and its host will be looked up again.",
    "dns_found": "A host was looked up.",
    "dns_receiver_failed": "Somebody who waited for an address could not take it.",
    "evidence_unreadable": "Evidence of a response cannot be read.",
    "family_braked": "A family of URLs is held as a trap.",
    "frontier_failed": "The frontier cannot go on, and closes the spider.",
    "health_unreadable": "What an earlier process knew of an origin's health cannot be read.",
    "lease_expired": "Attempts showed no sign of work, and their leases were taken back.",
    "lease_short": "`FRONTIER_LEASE` is shorter than a download may be silent.",
    "metrics_opened": "Prometheus can read the metrics, and where.",
    "open_failed": "The store or the run could not be opened; nothing is requested.",
    "origin_closed": "An origin is closed for this run.",
    "page_failed": "`frontier serve` could not make a page.",
    "policy_changed": "The run goes on under another policy version; what that changes for its URLs.",
    "progress": "How far the crawl is, once in `FRONTIER_PROGRESS_INTERVAL` seconds.",
    "reference_rejected": "A reference cannot be requested.",
    "render_guard_failed": "The guard of a rendered page failed, and the page was closed.",
    "render_request_gone": "A sub-request ended before it was answered.",
    "reparse_begun": "An earlier run is parsed again; how many of its pages.",
    "reparse_unfinished": "The run that is parsed again is not finished.",
    "report_failed": "The report at the end could not be made or written.",
    "report_written": "The report at the end, and where it is.",
    "request_unrestorable": "A stored request cannot be made again.",
    "request_unserialisable": "A request cannot be stored and lives in memory only.",
    "robots_agent": "The user agent and what robots.txt is asked for do not fit together.",
    "robots_fetched": "A robots.txt was fetched.",
    "robots_unreadable": "What is stored of a robots.txt cannot be read.",
    "run_opened": "A run, its store and its policy version.",
    "run_pending": "How many URLs a resumed run has waiting.",
    "run_report": "A line of the short report at the end.",
    "run_resumed": "What becomes of what was under way when the run was left.",
    "script_failed": "The scripted server of the tests could not answer.",
    "seed_rejected": "A start URL cannot be requested.",
    "setting_unused": "A setting has no effect.",
    "spider_closing": "The spider was being closed already.",
    "sqlite_fault": "The SQLite in use has a fault that can damage a store.",
    "store_commits_slow": "Transactions take long.",
    "store_log_held_up": "A reader keeps the write-ahead log from being emptied.",
    "store_migrated": "The store was brought to the schema of this version.",
    "store_queue_old": "Messages wait long for their transaction, and no request is handed out.",
    "transition_refused": "A move that the table does not allow was asked for, and not made: an error of the program.",
    "writer_failed": "The writer of the store has failed, and writes nothing more.",
}
"""Every action, and what a record with it says."""


def used() -> dict[str, set[str]]:
    """The actions of the source, each with the levels it is logged at. Raises `ValueError` for a record without one."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and _writes(call.func):
                level = "error" if call.func.attr == "exception" else call.func.attr  # type: ignore[attr-defined]
                for action in _actions(call, f"{path.relative_to(PACKAGE)}:{call.lineno}"):
                    found.setdefault(action, set()).add(level)
    return found


def _writes(function: ast.expr) -> bool:
    """Whether this is a method of a logger that writes a record."""
    match function:
        case ast.Attribute(value=owner, attr=name) if name in LEVELS:
            return ast.unparse(owner).rpartition(".")[2] in {"logger", "logging", "log"}
    return False


def _actions(call: ast.Call, place: str) -> Iterator[str]:
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(
                arg="extra",
                value=ast.Dict(keys=[ast.Constant(value="action"), *_], values=[value, *_]),
            ):
                yield from _texts(value, place)
                return
    raise ValueError(f"{place}: a log record without extra={{'action': ...}}")


def _texts(value: ast.expr, place: str) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body, place)
            yield from _texts(orelse, place)
        case ast.Subscript(value=ast.Name(id=name)):
            yield from _members(name, place)
        case _:
            raise ValueError(f"{place}: its action cannot be read off the source")


def _members(name: str, place: str) -> Iterator[str]:
    """The texts of a dictionary of actions in the same module."""
    path = PACKAGE / place.rpartition(":")[0]
    for statement in ast.parse(path.read_text("utf-8")).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.Dict(values=values)) if (
                found == name
            ):
                for value in values:
                    yield from _texts(value, place)
                return
    raise ValueError(f"{place}: {name} is no dictionary of actions in this module")
