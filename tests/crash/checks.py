"""What must hold after a kill and in the end: the store against the server's log, the spider's notes and the plan."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .sessions import Session, Trial

RETRIED = frozenset({500, 502, 503, 504, 408, 429})

PAGES_AT_ONCE = 2
"""Leases held for each place on the wire: one fetches, others stand before the spider or in it."""

SLACK_S = 0.02
"""How much earlier than allowed a request may seem to arrive: the server's clock starts when it sees it."""


def look(store_url: str, run_name: str) -> dict[str, Any]:
    """What the store says of the run of that name, as plain data."""
    from sqlalchemy import text

    from scrapy_frontier.errors import StoreError
    from scrapy_frontier.report import coverage
    from scrapy_frontier.report.evidence import place_of
    from scrapy_frontier.report.verify import verify
    from scrapy_frontier.states import Disposition, Event, State
    from scrapy_frontier.store.artifacts import open_artifacts
    from scrapy_frontier.store.opening import open_store

    try:
        opened = open_store(store_url, read_only=True)
    except StoreError:
        return EMPTY  # killed before the store was there
    with opened as store:
        with store.reader() as connection:
            run_id = connection.scalar(
                text("SELECT max(run_id) FROM run WHERE name = :name"), {"name": run_name}
            )
            if run_id is None:
                return EMPTY
            account = coverage(connection, run_id)

            def rows(query: str) -> list[Any]:
                return [tuple(row) for row in connection.execute(text(query), {"run": run_id})]

            ends = rows(
                "SELECT i.url, c.state, c.disposition FROM identity AS i JOIN current AS c"
                " ON c.identity_id = i.identity_id WHERE i.run_id = :run"
            )
            attempts = rows(
                "SELECT i.url, coalesce(r.code, ''), count(*) FROM attempt AS a JOIN identity AS i"
                " ON i.identity_id = a.identity_id LEFT JOIN reason AS r ON r.reason_id = a.outcome_id"
                " WHERE i.run_id = :run GROUP BY i.url, r.code"
            )
            kept = rows(
                "SELECT i.url FROM identity AS i JOIN current AS c ON c.identity_id = i.identity_id"
                " JOIN attempt AS a ON a.attempt_id = c.attempt_id WHERE i.run_id = :run"
                f" AND c.state = {State.FETCHED:d} AND a.status < 500 AND a.status NOT IN (408, 429)"
            )
            taken_back = rows(
                "SELECT i.url, count(*) FROM transition AS t JOIN identity AS i"
                " ON i.identity_id = t.identity_id"
                f" WHERE i.run_id = :run AND t.event = {Event.RECLAIM:d} GROUP BY i.url"
            )
            granted = rows(
                "SELECT a.generation, a.attempt_id, a.identity_id, a.dispatched_ms FROM attempt AS a"
            )
            ledger = rows(
                "SELECT seq, identity_id, event, at_ms, attempt_id FROM transition ORDER BY seq"
            )
        with store.reader() as connection:
            place = place_of(connection)
        artifacts = open_artifacts(place, store.path) if place or store.path else None
        findings = [finding.text for finding in verify(store, artifacts=artifacts).findings]
    tried: Counter[str] = Counter()
    captured: Counter[str] = Counter()
    for url, code, n in attempts:
        tried[url] += n
        captured[url] += n * code.startswith(("http.", "evidence."))
    return {
        "state": account.run.state,
        "stop": account.stop.reason,
        "sessions": len(account.sessions),
        "reconciled": account.reconciled,
        "failed": [str(equation) for equation in account.failed_equations],
        "unresolved": dict(account.identities.unresolved),
        "deferred": dict(account.identities.deferred),
        "findings": findings,
        "ends": {url: Disposition(d).label if d else State(s).label for url, s, d in ends},
        "tried": tried,
        "captured": captured,
        "lost": dict(taken_back),
        "open": sum(n for url, code, n in attempts if not code and not _is_beside(url)),
        "kept": [url for (url,) in kept],
        "granted": granted,
        "ledger": ledger,
    }


EMPTY: dict[str, Any] = {
    "state": "none",
    "stop": None,
    "sessions": 0,
    "reconciled": True,
    "failed": [],
    "unresolved": {},
    "deferred": {},
    "findings": [],
    "ends": {},
    "tried": {},
    "captured": {},
    "lost": {},
    "open": 0,
    "kept": [],
    "granted": [],
    "ledger": [],
}


def interim(trial: Trial, session: Session, picture: dict[str, Any]) -> list[str]:
    """What must hold whenever a process has ended, however it did."""
    where = f"after session {len(trial.sessions) - 1} ({session.kill}, exit {session.status})"
    faults = [*sound(picture), *_granted_twice(trial, picture)]
    # Known before it happens: a dispatch before its request, a response before the spider.
    if not trial.has_lost:
        asked = Counter(hit["origin"] + hit["path"] for hit in trial.log())
        faults += _more("asked for than dispatched", asked, picture["tried"])
        faults += _more("delivered than captured", delivered(trial), picture["captured"])
    at_once = PAGES_AT_ONCE * trial.schedule.total_limit + len(trial.urls) + 2
    if picture["open"] > at_once:
        faults.append(f"{picture['open']} attempts are open, of {at_once} that can be under way")
    is_clean = session.status == 0 and not (session.kill and session.kill.signal == "TERMTERM")
    if is_clean and picture["open"]:
        faults.append(f"{picture['open']} attempts are open after a clean stop")
    if session.status not in (0, -9) and not (
        session.kill and session.kill.signal.startswith("TERM")
    ):
        faults.append(f"the crawl ended with status {session.status}")
    _remember(trial, picture)
    return [f"{where}: {fault}" for fault in faults]


def sound(picture: dict[str, Any]) -> list[str]:
    """What must hold of any store, whatever happened to it."""
    faults = [f"verify: {text}" for text in picture["findings"]]
    return faults + [f"does not add up: {text}" for text in picture["failed"]]


def is_prefix(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A power cut takes commits from the end, and nothing from between."""
    left = after["ledger"]
    if left == before["ledger"][: len(left)]:
        return []
    return [f"{len(left)} transitions are left, and they are not the first of those there were"]


def _granted_twice(trial: Trial, picture: dict[str, Any]) -> list[str]:
    """A generation stands for one lease for ever, also for one that a power cut has taken from the ledger."""
    faults = []
    for generation, *lease in picture["granted"]:
        if trial.granted.setdefault(generation, lease) != lease:
            faults.append(
                f"generation {generation} was granted for {trial.granted[generation]} and for {lease}"
            )
    return faults


def _remember(trial: Trial, picture: dict[str, Any]) -> None:
    """Which URLs had their end when this session was over: they must not be asked for again."""
    ended = {url for url, end in picture["ends"].items() if end not in UNENDED}
    if trial.schedule.keeps_bodies:
        # Processed from its evidence, without a second request; an answer that asks for one apart.
        ended.update(picture["kept"])
    trial.ended.append((trial.sessions[-1].ended_at, ended))


UNENDED = frozenset(
    {
        "discovered",
        "admitted",
        "scheduled",
        "fetching",
        "fetched",
        "retryable",
        "deferred",
        "suppressed",
    }
)


def final(trial: Trial, picture: dict[str, Any]) -> list[str]:
    """What must hold when the run is finished."""
    hits = trial.log()
    faults = []
    if picture["stop"] != "exhausted" or picture["unresolved"] or picture["deferred"]:
        faults.append(
            f"not exhausted: {picture['stop']}, {picture['unresolved']}, {picture['deferred']}"
        )
    faults += _compare(trial, picture["ends"])
    if not trial.has_lost:
        faults += _repeats(trial, picture, hits)
    faults += _manners(trial, hits)
    return faults


def _compare(trial: Trial, ends: dict[str, str]) -> list[str]:
    """Every URL that an independent walk reaches is in the store, with the right end, and no other."""
    expected = trial.schedule.site.walk(trial.urls, obeys=trial.schedule.obeys)
    faults = [
        f"{url} should be {end}, is {ends.get(url, 'lost')}"
        for url, end in expected.items()
        if ends.get(url) != end
    ]
    beside = {url for url in ends.keys() - expected.keys() if not _is_beside(url)}
    return faults + [f"{url} is in the store, and no page leads to it" for url in sorted(beside)]


def _is_beside(url: str) -> bool:
    """Whether a URL is fetched past the scheduler, and no link leads to it."""
    path = urlsplit(url).path
    return path.endswith("robots.txt") or path == "/direct"


def _repeats(trial: Trial, picture: dict[str, Any], hits: list[dict[str, Any]]) -> list[str]:
    """What had its end is not asked for again; all that is repeated failed, or was in flight at a kill."""
    faults = []
    asked: Counter[str] = Counter()
    for hit in hits:
        url = hit["origin"] + hit["path"]
        asked[url] += 1
        for ended_at, ended in trial.ended:
            if url in ended and hit["arrived_at"] > ended_at and not _is_beside(url):
                faults.append(
                    f"{url} had ended at {ended_at:.3f} and was asked for at {hit['arrived_at']:.3f}"
                )
    for url, count in asked.items():
        failed = sum(
            hit["status"] in RETRIED or hit["outcome"] in ("reset", "closed")
            for hit in hits
            if hit["origin"] + hit["path"] == url
        )
        allowed = max(1, failed + 1) + picture["lost"].get(url, 0)
        if count > allowed and not _is_beside(url):
            faults.append(f"{url} was asked for {count} times, {allowed} are accounted for")
    faults += _more("asked for than in the ledger", asked, picture["tried"])
    return faults


def _manners(trial: Trial, hits: list[dict[str, Any]]) -> list[str]:
    """The limit and the interval of each origin, over all sessions."""
    faults = []
    schedule = trial.schedule
    for name, origin in trial.urls.items():
        mine = [hit for hit in hits if hit["origin"] == origin]
        most = max((hit["concurrency"] for hit in mine), default=0)
        if most > schedule.limit:
            faults.append(f"{most} requests at once at {name}, of {schedule.limit} allowed")
        # With more at a time the interval counts between dispatches, which the server does not see.
        for earlier, later in pairwise(mine) if schedule.limit == 1 else ():
            gap = later["arrived_at"] - _free_from(earlier)
            if gap < schedule.delay_s - SLACK_S:
                faults.append(
                    f"{later['path']} came {gap:.3f} s after {earlier['path']} at {name}, not {schedule.delay_s} s"
                )
    most = _most_at_once(hits)
    if most > schedule.total_limit:
        faults.append(f"{most} requests at once, of {schedule.total_limit} allowed")
    return faults


def _free_from(hit: dict[str, Any]) -> float:
    """The instant from which the interval counts at the latest: the end of the answer, if it came to one."""
    return float(hit["departed_at"] if hit["outcome"] == "sent" else hit["arrived_at"])


def _most_at_once(hits: list[dict[str, Any]]) -> int:
    moments = sorted(
        [(hit["arrived_at"], 1) for hit in hits] + [(hit["departed_at"], -1) for hit in hits]
    )
    now = most = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most


def delivered(trial: Trial) -> Counter[str]:
    """How often each page reached the spider, by its own notes."""
    if not trial.notes.exists():
        return Counter()
    lines = trial.notes.read_text().splitlines()
    return Counter(line.split(" ")[3] for line in lines if line.split(" ")[2] == "got")


def _more(what: str, left: Counter[str], right: dict[str, int]) -> list[str]:
    return [
        f"{url}: more {what}: {n} > {right.get(url, 0)}"
        for url, n in left.items()
        if n > right.get(url, 0)
    ]
