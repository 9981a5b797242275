"""Every FRONTIER_* setting: name, type, default, meaning, check. Read once into one frozen object.

The table of settings in the documentation is made from the fields of `FrontierSettings`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier import setting_values as read
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity import ParameterRules
from scrapy_frontier.policy.budgets import PlaceBudgets
from scrapy_frontier.policy.priority import NO_RULES, NO_WEIGHTS, PriorityRules, Weights
from scrapy_frontier.policy.redaction import RedactionRule
from scrapy_frontier.policy.retry import RetryRule, read_rules
from scrapy_frontier.policy.scope import Scope
from scrapy_frontier.policy.traps import TrapExceptions
from scrapy_frontier.setting_values import setting
from scrapy_frontier.settings_watch import WatchSettings

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PREFIX: Final = "FRONTIER_"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSettings(WatchSettings):
    """All settings of this package, checked. The field `max_lag_s` is the setting `FRONTIER_MAX_LAG`, and so on."""

    enabled: bool = setting(
        True, read.switch, "Switches the frontier off without taking the add-on out of `ADDONS`."
    )
    store: str | None = setting(
        None,
        read.optional_text,
        "Where the ledger lives, as a SQLAlchemy URL: `sqlite:///path/to/file.db`, where a relative path is taken from"
        " the working directory, or `postgresql+psycopg://user@host/database` (extra `postgres`).",
        shown="`frontier.db` in `JOBDIR` where that is set, else in the project's `.scrapy` folder",
    )
    run: str | None = setting(
        None,
        read.optional_text,
        "Name of the run. An unfinished run of that name is resumed; otherwise a new one begins. Without a name every"
        " crawl is a new run, unless `JOBDIR` is set: then its unfinished run is resumed.",
        shown="none",
    )
    synchronous: str = setting(
        "FULL",
        read.synchronous,
        "SQLite's `synchronous`, PostgreSQL's `synchronous_commit`. `FULL`: what was acknowledged survives a power cut."
        " `NORMAL`: it survives the death of the process, but a power cut may take the last commits.",
    )
    evidence: str = setting(
        "none",
        read.evidence,
        "What is kept of each response beside the ledger: `none`; `headers`: its status and header block, and the"
        " digest of its body; `body`: its body too, as the wire sent it and as the spider saw it.",
    )
    artifacts: str | None = setting(
        None,
        read.optional_text,
        "Where evidence is kept: a folder, or a URL of an object store that fsspec knows (`s3://bucket/prefix`, with"
        " the extra `artifacts`). A place belongs to one store.",
        shown="a folder beside the store: `frontier.db.artifacts`",
    )
    evidence_max_body: int = setting(
        64 * 1024 * 1024,
        read.count,
        "The largest body that is kept, in bytes. Of a larger one the size and the digest are kept.",
        shown="`67108864`: 64 MiB",
    )
    reparse: str | None = setting(
        None,
        read.optional_text,
        "Id or name of a run whose kept responses the spider parses again, in a new run that sends no request. See the"
        " command `reparse`.",
        shown="none: crawl",
    )
    scope: Scope = setting(
        Scope.from_setting({}),
        lambda value: Scope.from_setting(read.from_json(value)),
        "Which URLs may be fetched: `include` and `exclude` rules over origins and paths. The narrower rule wins.",
        shown="`{}`: everything",
    )
    parameter_rules: ParameterRules = setting(
        ParameterRules.from_setting([]),
        lambda value: ParameterRules.from_setting(read.from_json(value)),
        "Named, narrow rules for query parameters that do not make another page. They act on the comparison key, never"
        " on the URL that is requested.",
        shown="`[]`: none",
    )
    robots_rules: str | None = setting(
        None,
        read.optional_text,
        "The operator's own rules, written as a robots.txt: what they disallow is not fetched, whatever an"
        " origin's robots.txt says. They hold for every origin.",
        shown="none",
    )
    robots_max_tries: int = setting(
        5,
        read.count,
        "Failures in a row to get an origin's robots.txt (5xx, 429, no connection) after which the origin is closed for"
        " this run. Its URLs stay scheduled; a resumed run tries again.",
    )
    robots_backoff_s: float = setting(
        5.0,
        read.seconds,
        "Seconds until a robots.txt that could not be had is asked for again, doubled with each failure.",
    )
    robots_unreachable_days: float | None = setting(
        None,
        read.optional_days,
        "Days after which an origin whose robots.txt cannot be had counts as one without a robots.txt, as RFC 9309"
        " allows after 30.",
        shown="never",
    )
    crawl_delay_cap_s: float = setting(
        300.0,
        read.seconds,
        "The longest Crawl-delay that is kept, in seconds. Crawl-delay raises an origin's interval and never shortens"
        " it.",
    )
    retry_rules: tuple[RetryRule, ...] = setting(
        (),
        lambda value: read_rules(read.from_json(value)),
        "Named rules of the project's own about what is tried again, how often and when: by status, cause, exception,"
        " origin, spider or method. The narrowest that fits decides.",
        shown="`{}`: the built-in table alone",
    )
    retry_delay_s: float = setting(
        3.0,
        read.seconds,
        "Seconds until the first further attempt after a fault, doubled with each one, and varied by a quarter.",
    )
    retry_max_delay_s: float = setting(
        300.0,
        read.seconds,
        "The longest time between two attempts, unless the server asks for a longer one.",
    )
    retry_after_cap_s: float = setting(
        3600.0,
        read.seconds,
        "The longest Retry-After that is obeyed, in seconds; of a longer one so much of it.",
    )
    retry_holds: int = setting(
        10,
        read.count,
        "How many times a URL waits at a server's word (429 or 503 with a Retry-After) before it is given up; without"
        " such a time, and in an outage of its origin, twice `RETRY_TIMES` times. These are counted apart: none of them"
        " takes one of the URL's attempts.",
    )
    lease_s: float = setting(
        600.0,
        read.seconds,
        "Seconds for which an attempt holds its URL without a sign of work: bytes that arrive, an item or request that"
        " its callback yields. Then another attempt follows. Above `DOWNLOAD_TIMEOUT`, and above the longest time that"
        " a callback may be silent.",
    )
    lease_expiries: int = setting(
        3,
        read.count,
        "Expired leases of a URL after which it is given up and becomes a dead letter.",
    )
    max_urls: int | None = setting(
        None,
        read.limit,
        "Budget: accepted URLs of the run. What is discovered beyond it is held back (`budget.urls`).",
        shown="no limit",
    )
    max_urls_per_origin: int | None = setting(
        None,
        read.limit,
        "Budget: accepted URLs of each origin (`budget.origin_urls`).",
        shown="no limit",
    )
    max_queries_per_path: int | None = setting(
        None,
        read.limit,
        "Budget: accepted URLs that differ in their query alone, for each path of an origin (`budget.queries`).",
        shown="no limit",
    )
    max_bytes: int | None = setting(
        None,
        read.limit,
        "Budget: bytes of all response bodies of the run, as they came over the wire. When they are spent the spider is"
        " closed, with the stop reason `budget:bytes`.",
        shown="no limit",
    )
    max_bytes_per_origin: int | None = setting(
        None,
        read.limit,
        "Budget: bytes of the response bodies of each origin, as they came over the wire. When they are spent the"
        " origin's other URLs are held back (`budget.origin_bytes`).",
        shown="no limit",
    )
    max_duration_s: float | None = setting(
        None,
        read.optional_seconds,
        "Budget: seconds that the run may take, all its sessions together. Then the spider is closed, with the stop"
        " reason `deadline`.",
        shown="no limit",
    )
    max_pending: int | None = setting(
        None,
        read.limit,
        "Bounds the queue: while this many URLs wait, what is discovered is held back (`budget.pending`), and let in as"
        " room comes.",
        shown="no limit",
    )
    place_budgets: PlaceBudgets = setting(
        PlaceBudgets(),
        lambda value: PlaceBudgets.from_setting(read.from_json(value)),
        'Budgets of places, by name: `{"archive": {"place": "https://example.com/archive/", "urls": 500,'
        ' "depth": 3, "queries": 10}}`. Each limit may be left out.',
        shown="`{}`: none",
    )
    health: bool = setting(
        True,
        read.switch,
        "Adapts to each origin how many requests are in flight and the interval between them, within the configured"
        " limits: less after 429, 503, time-outs, failures and slower answers, more again while all goes well. Closes"
        " origins that do nothing but fail. `AUTOTHROTTLE_ENABLED` sets its bounds.",
    )
    max_interval_s: float = setting(
        60.0,
        read.seconds,
        "The longest interval that trouble gives an origin, in seconds. With `AUTOTHROTTLE_ENABLED` that is"
        " `AUTOTHROTTLE_MAX_DELAY`.",
    )
    close_after_s: float | None = setting(
        180.0,
        read.optional_seconds,
        "Seconds of nothing but failures (no connection, time-outs, 429, 502 to 504) after which an origin is closed"
        " for this run. Its URLs stay unresolved; a resumed run tries again. None: never.",
    )
    link_inventory: bool = setting(
        False,
        read.switch,
        "Records every URL-bearing attribute of every HTML page (tag, rel, anchor text, fragment), also those that no"
        " callback follows. They make no request.",
    )
    whatwg_links: bool = setting(
        True,
        read.switch,
        "`response.urljoin()`, `response.follow()` and `follow_all()` resolve as browsers do, and a link that cannot be"
        " requested is recorded as rejected instead of raising in the callback.",
    )
    traps: bool = setting(
        True,
        read.switch,
        "Defers what only repeats what is known: the rest of a family of URLs whose last pages brought nothing new, and"
        " further spellings of known URLs that have proved to be copies. `scrapy frontier release` lets it go.",
    )
    trap_exceptions: TrapExceptions = setting(
        TrapExceptions(),
        lambda value: TrapExceptions.from_setting(read.from_json(value)),
        "Places where named rules about traps do not hold: a list of dictionaries with `place`, `rules` and perhaps"
        " `name`.",
        shown="`[]`: none",
    )
    likeness: bool = setting(
        True,
        read.switch,
        "Records a digest and a SimHash of the main text of each HTML page, and which earlier page of its origin it is"
        " like. Without it the rules about traps know URLs and links alone.",
    )
    window: int = setting(
        10_000,
        read.count,
        "Scheduled URLs held in memory at the most; the others wait in the store.",
    )
    hot_origins: int = setting(
        10_000,
        read.count,
        "Origins held in memory at the most; the others wait in the store and take their turn.",
    )
    known_urls: int = setting(
        65_536,
        read.count,
        "URLs whose identity is remembered in memory, so that a repeated link costs no look-up in the store.",
    )
    band_shares: tuple[float, ...] = setting(
        read.DEFAULT_BAND_SHARES,
        read.shares,
        "Share of the dispatches that each priority band gets while all have work, the most urgent band first. No band"
        " starves.",
    )
    priority_rules: PriorityRules = setting(
        NO_RULES,
        lambda value: PriorityRules.from_setting(read.from_json(value)),
        'Points by place, by name: `{"news": {"place": "https://example.com/news/", "points": 50}}`. They are'
        " added to the priority of a request; the narrowest place decides.",
        shown="`{}`: none",
    )
    priority_weights: Weights = setting(
        NO_WEIGHTS,
        lambda value: Weights.from_setting(read.from_json(value)),
        "What else moves a URL in the queue, in points: `depth` for each step away from the seeds (below 0: the near"
        " ones first), `links` for each doubling of the references to it, `freshness` for each doubling of the days"
        " since an earlier run of the spider fetched it.",
        shown="`{}`: nothing",
    )
    max_lag_s: float = setting(
        10.0,
        read.seconds,
        "No new request is handed out while the oldest unwritten message is older than this many seconds.",
    )
    max_queue: int = setting(
        20_000,
        read.count,
        "Messages waiting for the writer before callbacks and `start()` are made to wait.",
    )
    dns_floor_s: float = setting(
        60.0,
        read.seconds,
        "With a resolver of this package: seconds for which the addresses of a host are kept at the least, unless a"
        " connection to them fails. A setting of the process, as `TWISTED_DNS_RESOLVER` is.",
    )
    dns_ceiling_s: float = setting(
        3600.0,
        read.seconds,
        "With a resolver of this package: seconds for which the addresses of a host are kept at the most. A setting of"
        " the process.",
    )
    dns_negative_s: float = setting(
        30.0,
        read.seconds,
        "With a resolver of this package: seconds for which it is remembered that there is no such host. A failure to"
        " find out is remembered for 5 seconds at the most. A setting of the process.",
    )
    gc_freeze: bool = setting(
        True,
        read.switch,
        "When the first run of a process is open, what is in memory by then (modules, settings, the schema) is taken"
        " out of the reach of Python's garbage collector (`gc.freeze`), which would scan it over and over otherwise.",
    )
    report_dir: str | None = setting(
        None,
        read.optional_text,
        "Folder for the coverage report (JSON and text) that is written when the spider closes.",
        shown="`reports` beside the store's file; for a store on a server, in the project's `.scrapy` folder",
    )
    report_html: bool = setting(
        False,
        read.switch,
        "Write the report as one page of HTML too, beside the other forms. It reads every reference of the run once"
        " more: some seconds for a hundred thousand URLs, minutes for many millions.",
    )
    redact: RedactionRule = setting(
        RedactionRule(),
        RedactionRule.from_setting,
        "Parameters whose values are not shown in reports, exports and the package's log: a digest of the value stands"
        " in its place. A list of names, where `*` stands for anything, `default` for the shipped names, and"
        " `!name` is shown all the same. What is stored is not changed.",
        shown='`["default"]`; `[]` shows everything',
    )
    trusted_modules: tuple[str, ...] = setting(
        (),
        read.names,
        "Packages, besides the spider's own, whose item and data classes may be restored from stored requests.",
        shown="`[]`",
    )

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> FrontierSettings:
        """Read and check all settings. Raises `ConfigError` that names the setting and what it must be."""
        known = {setting_name(item): item for item in fields(cls)}
        for name in settings:
            if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
                raise ConfigError(_unknown(name, known))
        values = {
            item.name: _read(item, settings.get(name))
            for name, item in known.items()
            if settings.get(name) is not None
        }
        return cls(**values)


def setting_name(item: Field[Any]) -> str:
    """The name of a field of `FrontierSettings` as a Scrapy setting."""
    return PREFIX + item.name.removesuffix("_s").upper()


def _read(item: Field[Any], value: Any) -> Any:
    name = setting_name(item)
    try:
        return item.metadata["read"](value)
    except ConfigError as exc:
        raise ConfigError(f"{name}: {exc}") from exc
    except (ValueError, TypeError, OverflowError) as exc:
        raise ConfigError(f"{name} = {value!r}: {exc}") from exc


def _unknown(name: str, known: Mapping[str, object]) -> str:
    stems = {known_name.removeprefix(PREFIX): known_name for known_name in known}
    close = difflib.get_close_matches(name.removeprefix(PREFIX), stems, n=1)
    hint = (
        f"; did you mean {stems[close[0]]}?" if close else f"; known are {', '.join(sorted(known))}"
    )
    return f"{name} is not a setting of scrapy_frontier{hint}"


def store_url(settings: BaseSettings) -> str:
    """The store a crawl with these settings writes to, and the commands read by default."""
    configured = settings.get("FRONTIER_STORE")
    if configured:
        return read.text(configured)
    from scrapy.utils.project import data_path
    from sqlalchemy import URL

    if settings.get("JOBDIR"):
        path = str(Path(settings["JOBDIR"]) / "frontier.db")
    else:
        path = data_path("frontier.db", createdir=False)
    # A path may hold what means something in a URL: % and ?.
    return URL.create("sqlite", database=path).render_as_string()
