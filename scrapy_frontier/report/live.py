"""A run as it stands now, for who watches it: read in short snapshots, however large the run is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.account import OriginHealth
from scrapy_frontier.report.health import troubled_gates
from scrapy_frontier.report.names import Codes, label
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.report.situation import Situation
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.store.opening import Store

RANGE: Final = 50_000
"""Rows of the projection counted in one snapshot: some hundredths of a second."""

REST: Final = 20
"""After a count no other is begun before so many times what it took have passed: it costs 5 % of a core."""

LIVENESS_S: Final = 5.0
"""Between two looks at the lock of the run."""

TROUBLED_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Standings:
    """How many identities are in which state, how the terminal ones ended, and which rules hold the deferred ones.

    Each was looked at once, though not all at one instant.
    """

    counted_ms: int
    states: Mapping[str, int]
    dispositions: Mapping[str, int]
    deferred: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What there is to see of a run. `told`: what its process last said; None where none has said anything."""

    run: int
    name: str
    spider: str
    state: str
    is_live: bool | None
    stop_reason: str | None
    sessions: int
    started_ms: int
    finished_ms: int | None
    read_ms: int
    told: Situation | None
    standings: Standings | None
    troubled: Mapping[str, OriginHealth]
    troubled_total: int

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


_RUN: Final = (
    "SELECT r.name, r.spider, r.state, r.stop_reason, r.finished_ms,"
    " (SELECT count(*) FROM session AS s WHERE s.run_id = r.run_id),"
    " (SELECT max(s.started_ms) FROM session AS s WHERE s.run_id = r.run_id)"
    " FROM run AS r WHERE r.run_id = :run"
)
_TOLD: Final = "SELECT record FROM situation WHERE run_id = :run"
_LAST: Final = "SELECT coalesce(max(identity_id), 0) FROM current"
_COUNT: Final = (
    "SELECT state, disposition, rule, count(*) FROM (SELECT state, disposition,"
    f" CASE WHEN state = {State.DEFERRED.value} THEN reason_id ELSE 0 END AS rule FROM current"
    " WHERE run_id = :run AND identity_id > :after AND identity_id <= :until) AS found"
    " GROUP BY state, disposition, rule"
)


class View:
    """Looks at a run of a store again and again; `wanted` names it, None is whatever run is the latest.

    `is_live` tells whether a process works on a run.
    """

    def __init__(
        self,
        store: Store,
        wanted: str | None,
        is_live: Callable[[int], bool | None],
        clock: Callable[[], float] = time.monotonic,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._is_live = is_live
        self._clock = clock
        self._rest = rest
        self._run_id = 0
        self._live: bool | None = None
        self._looked_at = 0.0
        self._standings: Standings | None = None
        self._count_at = 0.0

    def frame(self) -> Frame:
        """The run now. Raises `RunNotFound`."""
        with self._store.reader() as connection:
            run_id = find_run(connection, self._wanted)
        if run_id != self._run_id:
            self._run_id, self._looked_at, self._count_at, self._standings = run_id, 0.0, 0.0, None
        self._look()
        self._count()
        with self._store.reader() as connection:
            return self._read(connection)

    def _look(self) -> None:
        now = self._clock()
        if not self._looked_at or now - self._looked_at >= LIVENESS_S:
            self._live = self._is_live(self._run_id)
            self._looked_at = now

    def _count(self) -> None:
        if self._standings is not None and self._clock() < self._count_at:
            return
        began = self._clock()
        self._standings = count_standings(self._store, self._run_id, self._clock, self._rest)
        ended = self._clock()
        self._count_at = ended + REST * (ended - began)

    def _read(self, connection: Connection) -> Frame:
        run = {"run": self._run_id}
        name, spider, state, stop, finished_ms, sessions, started_ms = connection.execute(
            text(_RUN), run
        ).one()
        total, troubled = troubled_gates(connection, self._run_id, TROUBLED_SHOWN)
        return Frame(
            run=self._run_id,
            name=name,
            spider=spider,
            state=state,
            is_live=self._live if state == "running" else False,
            stop_reason=stop,
            sessions=sessions,
            started_ms=started_ms or 0,
            finished_ms=finished_ms,
            read_ms=int(time.time() * 1000),
            told=_told(connection.scalar(text(_TOLD), run)),
            standings=self._standings,
            troubled=troubled,
            troubled_total=total,
        )


def _told(record: str | None) -> Situation | None:
    """What the process of another version says may mean something else: then nothing is shown of it."""
    try:
        return None if record is None else Situation.from_text(record)
    except ValueError:
        return None


def count_standings(
    store: Store,
    run_id: int,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[float], None] = time.sleep,
) -> Standings:
    """Count the identities of a run, range by range, each in a snapshot of its own and with a rest after it."""
    states: Counter[str] = Counter()
    dispositions: Counter[str] = Counter()
    rules: Counter[int] = Counter()
    with store.reader() as connection:
        last = int(connection.scalar(text(_LAST)) or 0)
    for after in range(0, last, RANGE):
        began = clock()
        with store.reader() as connection:
            found = connection.execute(
                text(_COUNT), {"run": run_id, "after": after, "until": min(after + RANGE, last)}
            ).all()
        for state, disposition, rule, count in found:
            states[label(State, state)] += count
            if disposition:
                dispositions[label(Disposition, disposition)] += count
            if rule:
                rules[rule] += count
        if after + RANGE < last:
            rest(clock() - began)
    with store.reader() as connection:
        codes = Codes.of(connection)
    deferred = {codes[rule]: count for rule, count in rules.items()}
    return Standings(int(time.time() * 1000), dict(states), dict(dispositions), deferred)
