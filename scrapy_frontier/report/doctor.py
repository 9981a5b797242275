"""What an installation, its settings and its store are in want of, and the cure of each."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.policy.robots import Rules, has_contact, read_agent
from scrapy_frontier.report.layout import counted, size
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.settings import FrontierSettings
from scrapy_frontier.store.location import locate
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.readers import readers_of
from scrapy_frontier.store.schema import SCHEMA_VERSION
from scrapy_frontier.store.sqlite import DRIVER, SqliteLibrary
from scrapy_frontier.store.standing import EmptyStore
from scrapy_frontier.store.vitals import log_bytes

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from scrapy_frontier.store.opening import Store

WAL_LIMIT: Final = 1_000_000_000
"""Bytes of write-ahead log above which something keeps it from being taken into the store."""

ROOM: Final = 1_000_000_000
"""Bytes free on the store's disk below which a warning is due."""

SCANT_ROOM: Final = 100_000_000
"""Bytes free below which the next crawl is likely to stop."""

_PACKAGES: Final = ("scrapy-frontier", "Scrapy", "Twisted", "SQLAlchemy")

_ASYNCIO: Final = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

_DEFAULT_AGENT: Final = "scrapy.org"


class Level(str, Enum):
    """How much a check asks of the operator: nothing, a look, or a cure before the next crawl."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at, what was seen, and the cure where there is something to cure."""

    name: str
    level: Level
    text: str
    cure: str | None = None


Liveness = Callable[["Store", int], bool | None]
"""Whether a process works on a run of a store."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the add-on would make of the settings: why it fails or stays off, and what it warns of."""

    error: str | None = None
    off: str | None = None
    warnings: tuple[str, ...] = ()


Rehearse = Callable[["BaseSettings"], "Rehearsal | None"]
"""Tries the add-on on settings; None where it is not among their add-ons."""


def examine(
    url: str, settings: BaseSettings, wanted: str | None, is_live: Liveness, rehearse: Rehearse
) -> tuple[Check, ...]:
    """Look at everything; nothing is changed. `wanted`: the run whose lock is of interest, or all."""
    return (
        _versions(),
        _library(),
        *_store(url, wanted, is_live),
        _own_settings(settings),
        *_wiring(settings, rehearse(settings)),
        _agent(settings),
        *_robots(settings),
    )


def _versions() -> Check:
    versions = [f"{name} {version(name)}" for name in _PACKAGES]
    return Check("versions", Level.OK, f"Python {platform.python_version()}, {', '.join(versions)}")


def _library() -> Check:
    connection = DRIVER.connect(":memory:")
    try:
        found = connection.execute("SELECT sqlite_version(), sqlite_source_id()").fetchone()
    finally:
        connection.close()
    library = SqliteLibrary(DRIVER.__name__.partition(".")[0], *found)
    named = f"{library}, source {library.source_id.partition(' ')[0]}"
    advice = library.advice()
    if advice is None:
        return Check("SQLite", Level.OK, f"{named}; without the WAL-reset fault")
    _, _, cure = advice.partition("Cure: ")
    text = f"{named}; it has the WAL-reset fault: only one process at a time may write to a store"
    return Check("SQLite", Level.WARN, text, cure)


def _store(url: str, wanted: str | None, is_live: Liveness) -> Iterator[Check]:
    try:
        location = locate(url)
        url_shown, path = location.url, location.path
        if path is not None and not path.exists():
            yield Check("store", Level.OK, f"{path} is not there yet: the first crawl makes it")
            return
        with open_store(url, read_only=True) as store:
            yield _contents(store)
            if store.path is not None:
                yield _room(store.path)
                yield _log(store.path)
            yield from _locks(store, wanted, is_live)
    except EmptyStore:
        yield Check("store", Level.OK, f"{url_shown} is empty: the first crawl makes the store")
    except FrontierError as error:
        yield Check("store", Level.FAIL, str(error))


def _contents(store: Store) -> Check:
    with store.reader() as connection:
        runs = connection.scalar(text("SELECT count(*) FROM run")) or 0
        held = size(store.database.size(connection))
    place = store.path or f"{store.url} on {store.library}"
    found = f"{place}: schema {SCHEMA_VERSION}, {held}, {counted(runs, 'run')}"
    return Check("store", Level.OK, found)


def _room(path: Path) -> Check:
    """Whether the disk has room for the store to go on growing."""
    free = shutil.disk_usage(path.parent).free
    text = f"{size(free)} free beside {path.name}"
    if free >= ROOM:
        return Check("disk", Level.OK, text)
    level = Level.FAIL if free < SCANT_ROOM else Level.WARN
    cure = "free some space, `scrapy frontier prune` old runs, or move the store to a larger disk"
    return Check("disk", level, f"{text}: a crawl stops when the disk is full", cure)


def _log(path: Path) -> Check:
    length = log_bytes(path)
    readers = readers_of(path)
    reading = f"; being read by {', '.join(map(str, readers))}" if readers else ""
    if length <= WAL_LIMIT:
        return Check("WAL", Level.OK, f"{size(length)}{reading}")
    return Check(
        "WAL",
        Level.WARN,
        f"{size(length)}: something has kept it from being taken into the store{reading}",
        "end long reads of the store (a backup, an open sqlite3 shell); the next crawl empties it",
    )


def _locks(store: Store, wanted: str | None, is_live: Liveness) -> Iterator[Check]:
    query = "SELECT run_id, name FROM run WHERE state = 'running' ORDER BY run_id"
    with store.reader() as connection:
        only = None if wanted is None else find_run(connection, wanted)
        open_runs = connection.execute(text(query)).all()
    words = {
        True: "a process works on it",
        False: "interrupted: no process works on it, and it can be resumed",
        None: "open; whether a process works on it cannot be told",
    }
    for run_id, name in open_runs:
        if only in (None, run_id):
            live = is_live(store, run_id)
            holder = f": {store.run_lock(run_id).holder()}" if live else ""
            yield Check("run", Level.OK, f"{run_id} ({name}): {words[live]}{holder}")


def _own_settings(settings: BaseSettings) -> Check:
    try:
        FrontierSettings.from_settings(settings)
    except FrontierError as error:
        return Check("settings", Level.FAIL, str(error))
    return Check("settings", Level.OK, "every FRONTIER_* setting is known and well-formed")


def _wiring(settings: BaseSettings, rehearsal: Rehearsal | None) -> Iterator[Check]:
    is_spelled_out = str(settings.get("SCHEDULER")).startswith("scrapy_frontier")
    reactor = settings.get("TWISTED_REACTOR")
    if rehearsal is None and not is_spelled_out:
        cure = 'ADDONS = {"scrapy_frontier.Addon": 500} in settings.py'
        text = "crawls of this project do not use the frontier"
        yield Check("wiring", Level.WARN, text, cure)
    elif rehearsal is not None and rehearsal.off:
        yield Check("wiring", Level.WARN, f"crawls do not use the frontier: {rehearsal.off}")
    elif rehearsal is not None and rehearsal.error:
        yield Check("wiring", Level.FAIL, f"crawls do not start: {rehearsal.error}")
    elif reactor != _ASYNCIO:
        text = f"TWISTED_REACTOR is {reactor!r}, and the frontier needs asyncio"
        yield Check("wiring", Level.FAIL, text, f'TWISTED_REACTOR = "{_ASYNCIO}"')
    else:
        yield Check("wiring", Level.OK, "crawls of this project use the frontier")
    for warning in rehearsal.warnings if rehearsal is not None else ():
        yield Check("wiring", Level.WARN, warning)


def _agent(settings: BaseSettings) -> Check:
    agent = str(settings.get("USER_AGENT") or "")
    if has_contact(agent):
        return Check("USER_AGENT", Level.OK, repr(agent))
    cure = 'USER_AGENT = "yourbot/1.0 (+https://your.site/bot)", or with a mail address'
    text = f"{agent!r} gives no page or address where the crawl's owner can be reached"
    if _DEFAULT_AGENT in agent:
        text = f"{agent!r} names Scrapy, and nobody who answers for the crawl"
    return Check("USER_AGENT", Level.WARN, text, cure)


def _robots(settings: BaseSettings) -> Iterator[Check]:
    """Whether robots.txt is obeyed, under which name, and whether rules of one's own are in force."""
    own = str(settings.get("FRONTIER_ROBOTS_RULES") or "")
    if not settings.getbool("ROBOTSTXT_OBEY"):
        ignored = ", and FRONTIER_ROBOTS_RULES is not applied" if own else ""
        text = f"ROBOTSTXT_OBEY is False: no robots.txt is asked for{ignored}"
        yield Check("robots.txt", Level.WARN, text, "ROBOTSTXT_OBEY = True")
        return
    agent = settings.get("USER_AGENT")
    try:
        read = read_agent(settings.get("ROBOTSTXT_USER_AGENT"), agent)
    except FrontierError as error:
        yield Check("robots.txt", Level.FAIL, str(error))
        return
    # That there is no contact, the check of USER_AGENT says.
    for warning in read.warnings if has_contact(agent or "") else read.warnings[1:]:
        yield Check("robots.txt", Level.WARN, warning)
    if own and not Rules.parse(own.encode()).for_agent(read.token).token:
        text = f"FRONTIER_ROBOTS_RULES has no group for {read.token} or *: it forbids nothing"
        cure = 'begin it with a line "User-agent: *"'
        yield Check("robots.txt", Level.WARN, text, cure)
    yield Check("robots.txt", Level.OK, f"obeyed, as {read.token} (from {read.setting})")
