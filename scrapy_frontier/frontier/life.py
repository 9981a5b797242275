"""The life of a run: opened before any request, recovered where it was cut off, closed with its account."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro

from scrapy_frontier import failpoints, logs, seams
from scrapy_frontier.clock import milliseconds
from scrapy_frontier.connections import watch_connections
from scrapy_frontier.errors import ArtifactError, ConfigError, IdentityError
from scrapy_frontier.frontier import (
    families_resume,
    judging,
    politeness,
    recovery,
    reports,
    retries,
    robots_setup,
    runs,
)
from scrapy_frontier.frontier.admission import Admission, Limits, budgets_of
from scrapy_frontier.frontier.cut_off import CutOff, cut_off
from scrapy_frontier.frontier.direct import Turns
from scrapy_frontier.frontier.dispatch import Dispatch
from scrapy_frontier.frontier.evidence import Evidence
from scrapy_frontier.frontier.families import Families
from scrapy_frontier.frontier.intake import Intake
from scrapy_frontier.frontier.leases import Leases, warn_of_short_lease
from scrapy_frontier.frontier.reparse import OFFLINE, Earlier, Reparse
from scrapy_frontier.frontier.replays import Replays
from scrapy_frontier.frontier.requests import RequestCodec
from scrapy_frontier.frontier.robots import Robots
from scrapy_frontier.frontier.seeds import sift_start_urls
from scrapy_frontier.frontier.spending import Allowance, Spending
from scrapy_frontier.frontier.wall_time import carry_on
from scrapy_frontier.frontier.wire import Wire
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.leases import LeasePolicy
from scrapy_frontier.policy.priority import Priorities
from scrapy_frontier.policy.scope import DomainScope
from scrapy_frontier.resolver import warn_of_unused
from scrapy_frontier.resolver.literals import resolve_literals
from scrapy_frontier.scheduling import BandTable, Schedule
from scrapy_frontier.settings import FrontierSettings, store_url
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.artifacts import open_artifacts
from scrapy_frontier.store.artifacts.references import claim
from scrapy_frontier.store.location import locate
from scrapy_frontier.store.locks import RunLock
from scrapy_frontier.store.messages import Committed, Head, Reason, Transit
from scrapy_frontier.store.opening import Store, open_store
from scrapy_frontier.store.redaction import keep as keep_redaction
from scrapy_frontier.store.redaction import redaction_in
from scrapy_frontier.store.rows import cursor_of
from scrapy_frontier.store.writer import Writer

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from scrapy_frontier.frontier.attempts import Attempt
    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.policy.redaction import Redaction

logger = get_logger(__name__)

UNRESTORABLE: Final = "request.unrestorable"


@dataclass(slots=True)
class Open:
    """The parts of an open run."""

    frontier: Frontier
    store: Store
    lock: RunLock
    run: runs.OpenRun
    writer: Writer
    dispatch: Dispatch
    admission: Admission
    intake: Intake
    codec: RequestCodec
    waker: seams.Waker
    loop: asyncio.AbstractEventLoop
    wire: Wire
    leases: Leases
    retries: retries.Retries
    spending: Spending
    families: Families
    redaction: Redaction
    robots: Robots | None = None
    turns: Turns = field(default_factory=Turns)
    is_closing: bool = False
    answered: int = 0
    failed: int = 0
    evidence: Evidence | None = None
    replays: Replays = field(default_factory=Replays)
    reparse: Reparse | None = None

    def restore(self, head: Head) -> Request:
        """The live request of a head. Raises `IdentityError` for one that cannot be made again."""
        if isinstance(head.payload, Request):
            return head.payload
        if head.record is None:
            raise IdentityError(f"the request for {head.url} lived in memory only and is gone")
        return self.codec.load(head.url, head.record)

    def cancel(self, head: Head, error: IdentityError) -> None:
        """Give up a URL whose request cannot be made again, by name."""
        logger.error("Cancelled %s: %s", head.url, error, extra={"action": "request_unrestorable"})
        self.writer.send(
            Transit(
                [head.identity_id],
                Event.CANCEL,
                Reason(UNRESTORABLE, reports.as_json({"error": str(error)})),
                milliseconds(self.frontier.clock.now()),
                Disposition.CANCELLED,
            )
        )

    def fetches_robots(self, request: Request) -> bool:
        """Whether a request is one for robots.txt that the frontier issued itself."""
        return self.robots is not None and self.robots.fetcher.is_own(request)

    def start(self) -> None:
        """Begin with what goes on by itself while the run is open."""
        self.leases.start()
        if self.reparse is not None:
            self.reparse.start()

    @property
    def has_replays(self) -> bool:
        """Whether requests are still to be answered from evidence."""
        return self.replays.is_pending or (self.reparse is not None and self.reparse.is_pending)

    def evidence_of(self, attempt: Attempt) -> Evidence:
        """The keeper of the response that answers an attempt. Raises `ArtifactError` where there is none."""
        if self.evidence is None:
            raise ArtifactError(
                f"there is no place for evidence that {attempt!r} could be answered from"
            )
        return self.evidence

    def close_spider(self, reason: str) -> None:
        """Have the engine close the spider, once."""
        if self.is_closing:
            return
        self.is_closing = True
        engine = seams.engine_of(self.frontier.crawler)
        closing = deferred_from_coro(engine.close_spider_async(reason=reason))
        closing.addErrback(
            lambda failure: logger.debug(
                "The spider was closing already: %s", failure, extra={"action": "spider_closing"}
            )
        )


async def open_frontier(frontier: Frontier, spider: Spider) -> Open:
    """Open the store and the run of `spider`, and let the frontier see what the engine does."""
    settings, scrapy_settings = frontier.settings, frontier.crawler.settings
    loop = seams.running_loop(frontier.crawler)
    engine = seams.engine_of(frontier.crawler)
    # What settings can get wrong comes before there is anything to undo.
    warn_of_unused(scrapy_settings)
    warn_of_short_lease(settings.lease_s, scrapy_settings)
    rules = politeness.rules(scrapy_settings, spider)
    health_rules = politeness.health_rules(settings, scrapy_settings)
    limits = Limits.from_settings(scrapy_settings)
    # Without a request there is nothing that a robots.txt could forbid.
    robots_rules = robots_setup.rules(settings, scrapy_settings) if not settings.reparse else None
    retry_rules = retries.rules(settings, scrapy_settings)
    retry_lists = retries.Lists.from_settings(scrapy_settings)
    if settings.reparse:
        retry_lists = dataclasses.replace(retry_lists, is_enabled=False)
    url = store_url(scrapy_settings)
    _make_directory(scrapy_settings, url)
    with ExitStack() as undo:
        store = open_store(url, create=True, synchronous=settings.synchronous)
        undo.callback(store.close)
        earlier = Earlier.find(store, settings.reparse, spider.name) if settings.reparse else None
        lock, run = _open_run(store, settings, spider, scrapy_settings, earlier)
        undo.callback(lock.release)
        redaction = _begin_redaction(store, settings)
        undo.callback(logs.end, redaction)
        carry_on(frontier.clock, store, run)
        lease_policy = LeasePolicy(settings.lease_s, settings.lease_expiries)
        applier = Applier(
            run.run_id,
            run.context_id,
            run.session_id,
            lease_policy,
            max_pending=settings.max_pending,
            freshness=settings.priority_weights.freshness,
        )
        domains = judging.domains_of(spider)
        priorities = Priorities(settings.priority_rules, settings.priority_weights)
        admission = Admission(settings.scope, domains, limits, budgets_of(settings), priorities)
        spending = Spending(Allowance.of(settings), frontier.close_spider)
        with store.reader() as connection:
            spending.resume(cursor_of(connection), run.run_id, run.session_id)
        room = judging.room(admission, lambda origin: spending.breach(origin) is not None)
        evidence = _open_evidence(frontier, store)
        replays = _recover(
            frontier, store, applier, run, domains, cut_off(rules, robots_rules), evidence, room
        )
        writer = Writer(
            store,
            applier,
            post=lambda function: _post(loop, function),
            deliver=lambda committed: _deliver(frontier, committed),
            failed=frontier.fail,
        )
        waker = seams.Waker(engine, loop)
        schedule = Schedule(
            BandTable(shares=settings.band_shares),
            max_hot_origins=settings.hot_origins,
            window=settings.window,
            longest_hold_s=max(
                settings.retry_after_cap_s * 1.1,
                settings.retry_max_delay_s,
                health_rules.ceiling_s if health_rules else 0.0,
            ),
        )
        dispatch = Dispatch(
            schedule,
            rules,
            writer,
            frontier.clock,
            waker,
            run.run_id,
            random.Random(),
            spending,
            settings.max_pending,
            health_rules,
            settings.priority_weights.links,
        )
        dispatch.on_forbidden = frontier.drop
        families = dispatch.families = Families(settings, writer, frontier.clock)
        with store.reader() as connection:
            dispatch.resume(connection)
            if run.is_resumed:
                families_resume.resume(families, cursor_of(connection), run.run_id)
        codec = RequestCodec(spider, settings.trusted_modules)
        intake = Intake(
            settings,
            admission,
            codec,
            writer,
            frontier.clock,
            dispatch.keep_volatile,
            dispatch.promotion,
            families,
        )
        wire = Wire(limits.in_flight)
        opened = Open(
            frontier,
            store,
            lock,
            run,
            writer,
            dispatch,
            admission,
            intake,
            codec,
            waker,
            loop,
            wire,
            Leases(frontier, settings.lease_s),
            retries.Retries(
                retry_rules, retry_lists, dispatch, frontier.clock, spider.name, random.Random()
            ),
            spending,
            families,
            redaction,
        )
        opened.robots = dispatch.robots.robots = robots_setup.make(
            frontier, robots_rules, writer, dispatch.robots
        )
        opened.evidence, opened.replays = evidence, replays
        if earlier is not None:
            admission.hold = OFFLINE
            opened.reparse = Reparse(frontier, earlier)
        writer.start()
        undo.pop_all()
    seams.end_with_status(frontier.crawler, frontier)
    seams.forbid_hidden_repeats(engine)
    watch_connections(engine)
    resolve_literals()
    seams.watch_downloads(engine, frontier)
    seams.watch_transfers(engine, frontier)
    seams.watch_pages(engine, frontier)
    _reject_seeds(opened, spider, limits.url_length)
    # The engine can close the spider only once it has opened it.
    loop.call_soon(spending.start, loop)
    _log_opening(opened)
    if settings.gc_freeze and not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
    return opened


def _reject_seeds(opened: Open, spider: Spider, max_length: int) -> None:
    for rejection in sift_start_urls(spider, max_length):
        logger.error(
            "Start URL %r is not requested: %s %s",
            rejection.observed,
            rejection.rule,
            rejection.detail,
            extra={"action": "seed_rejected"},
        )
        opened.intake.reject_seed(rejection)


def _log_opening(opened: Open) -> None:
    library = opened.store.library
    logger.info(
        "Run %s in %s, policy %s, %s",
        opened.run.name,
        opened.store.url,
        opened.run.policy,
        library,
        extra={"action": "run_opened"},
    )
    if library.has_wal_reset_fault:
        logger.warning("%s", library.advice(), extra={"action": "sqlite_fault"})
    if opened.dispatch.is_pending:
        logger.info(
            "%d URLs are scheduled and %d wait for a time",
            opened.dispatch.scheduled,
            opened.dispatch.timed,
            extra={"action": "run_pending"},
        )


def _post(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(function)


def _deliver(frontier: Frontier, committed: Committed) -> None:
    """On the loop, after a commit: answer who waited, schedule what may be fetched now, wake the engine."""
    try:
        frontier.opened.dispatch.take(committed)
        for answer, value in committed.answers:
            answer(value)
        failpoints.reach("ack.after")
    except Exception as error:
        frontier.fail(error)
    frontier.opened.waker.wake()


def _make_directory(settings: BaseSettings, url: str) -> None:
    """The folder of a store whose place was not chosen by FRONTIER_STORE: `.scrapy`, or a new JOBDIR."""
    path = None if settings.get("FRONTIER_STORE") else locate(url).path
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(
            f"the folder of the store {url} cannot be made: {exc}; set FRONTIER_STORE to a place"
            " that can be written"
        ) from exc


def _open_run(
    store: Store,
    settings: FrontierSettings,
    spider: Spider,
    scrapy_settings: Any,
    earlier: Earlier | None,
) -> tuple[RunLock, runs.OpenRun]:
    name, job = settings.run, scrapy_settings.get("JOBDIR")
    is_own = False
    if name is None and job:
        name = str(Path(job).resolve())
        # A job's folder may have been moved, with its store in it.
        is_own = store.path is not None and store.path.parent == Path(job).resolve()
    if earlier is not None:
        name, run_id = settings.run or earlier.new_name, None
    else:
        run_id = runs.find_unfinished(store, spider.name, name, is_own=is_own)
    policy = reports.policy(settings, scrapy_settings, spider)
    versions = {name: version(name) for name in ("scrapy", "twisted", "scrapy-frontier")}
    versions[store.library.name] = store.library.version
    if settings.artifacts is not None:
        # So that a command finds it; the place beside the store moves with the store.
        versions["artifacts"] = open_artifacts(settings.artifacts, None).url
    if earlier is not None:
        versions[runs.REPARSE_OF] = str(earlier.run_id)
    lock = RunLock(store, run_id) if run_id is not None else None
    if lock is not None:
        lock.acquire()
    try:
        # The session is the epoch of the leases it grants: one that a power cut took back would be given again.
        with store.durably(), runs.transaction(store, "opening a run") as connection:
            run = runs.open_run(
                connection,
                run_id,
                spider=spider.name,
                name=name,
                policy=policy,
                versions=versions,
            )
            keep_redaction(connection, settings.redact)
            if lock is None:
                lock = RunLock(store, run.run_id)
                lock.acquire()
        failpoints.reach("open.run_committed")
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return lock, run


def _begin_redaction(store: Store, settings: FrontierSettings) -> Redaction:
    """What the log does not show, from now on."""
    with store.reader() as connection:
        redaction = redaction_in(connection, settings.redact)
    logs.begin(redaction)
    return redaction


def _recover(
    frontier: Frontier,
    store: Store,
    applier: Applier,
    run: runs.OpenRun,
    domains: Callable[[], DomainScope],
    cut_off: CutOff,
    evidence: Evidence | None,
    room: recovery.Room,
) -> Replays:
    """Take back what was under way; what can be answered from evidence comes back as replays."""
    with runs.transaction(store, "opening a run") as connection:
        applier.load(cursor_of(connection))
    if not run.is_resumed:
        return Replays()
    now_ms = milliseconds(frontier.clock.now())
    judge = judging.judge(frontier.settings.scope, domains) if run.has_new_policy else None
    step = recovery.Recovery(store, applier, run.run_id, now_ms, cut_off, evidence)
    recovered = step.run(judge, room if run.has_new_policy else None)
    logger.info(
        "Resumed run %s: %d URLs that were under way are fetched again, %d are processed from their evidence, %d may"
        " not be sent twice and are given up, %d wait for a request that could not be stored",
        run.name,
        recovered.reclaimed,
        len(recovered.replays),
        recovered.unsafe,
        recovered.unserialisable,
        extra={"action": "run_resumed"},
    )
    if run.has_new_policy:
        logger.info(
            "The policy has changed: %d waiting URLs are excluded now, %d excluded ones are admitted, %d that a budget"
            " held back are let in",
            recovered.excluded,
            recovered.readmitted,
            recovered.let_in,
            extra={"action": "policy_changed"},
        )
    return Replays(recovered.replays)


def _open_evidence(frontier: Frontier, store: Store) -> Evidence | None:
    """The keeper of evidence, also where none is wanted now: an earlier session may have kept some."""
    settings = frontier.settings
    if settings.evidence == "none" and settings.artifacts is None and store.path is None:
        return None
    artifacts = open_artifacts(settings.artifacts, store.path)
    if settings.evidence != "none":
        claim(store, artifacts)
    return Evidence(artifacts, settings, frontier.clock)
