"""Crawls in this process: a spider on the scripted server, and all that can be asked afterwards."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from sqlalchemy import text
from store_kinds import KINDS

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.report import Coverage, coverage
from scrapy_frontier.report.evidence import place_of
from scrapy_frontier.report.verify import verify
from scrapy_frontier.states import Disposition, State
from scrapy_frontier.store.artifacts import open_artifacts
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Origin, RequestLog, ScriptedServer

if TYPE_CHECKING:
    # typing.Self requires Python 3.11
    from typing_extensions import Self

PATIENCE_S = 15.0
"""How long a crawl may take; a hanging one fails its test instead of stopping all."""

BASE_SETTINGS: Mapping[str, Any] = {
    "ADDONS": {"scrapy_frontier.Addon": 500},
    "TELNETCONSOLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_TIMEOUT": 5,
    "CONCURRENT_ITEMS": 8,
    "FRONTIER_MAX_INTERVAL": 0.05,
    "FRONTIER_RETRY_DELAY": 0.05,
}


def _has_faulty_sqlite() -> bool:
    with open_store("sqlite://", create=True) as store:
        return store.library.has_wal_reset_fault


needs_two_writers = pytest.mark.skipif(
    _has_faulty_sqlite(),
    reason="an SQLite with the WAL-reset fault lets one process write at a time",
)


on_both_stores = pytest.mark.parametrize("lab", KINDS, indirect=True)
"""The test is made on each kind of database."""


class Follower(Spider):
    """Follows every link of every page; `seeds` are its start URLs."""

    name = "follower"

    def __init__(self, seeds: list[str] | tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = list(seeds)

    def parse(self, response: Any) -> Any:
        yield from response.follow_all(css="a")


@dataclass
class Fate:
    """Where one identity stands, in words."""

    state: str
    disposition: str | None
    reason: str
    attempts: int

    @property
    def end(self) -> str:
        """The disposition of a terminal identity, the state of any other."""
        return self.disposition or self.state


@dataclass
class Result:
    """What the store says after crawls, and the server's log of all of them."""

    store_url: str
    log: RequestLog
    run: int = 0

    @property
    def run_id(self) -> int:
        """The run that this speaks of: the latest of the store unless one was named."""
        return self.run or int(self.rows("SELECT max(run_id) FROM run")[0][0])

    @cached_property
    def coverage(self) -> Coverage:
        """The account of the run."""
        with open_store(self.store_url, read_only=True) as store, store.reader() as connection:
            return coverage(connection, self.run_id)

    @cached_property
    def findings(self) -> list[str]:
        """What an audit of the store finds; nothing, if all is well."""
        with open_store(self.store_url, read_only=True) as store:
            with store.reader() as connection:
                place = place_of(connection)
            artifacts = open_artifacts(place, store.path) if place or store.path else None
            return [finding.text for finding in verify(store, artifacts=artifacts).findings]

    @cached_property
    def fates(self) -> dict[str, Fate]:
        """Where each identity of the run stands, by URL; other methods than GET come before it."""
        found = self.rows(
            "SELECT i.method, i.url, c.state, c.disposition, coalesce(r.code, ''),"
            " (SELECT count(*) FROM attempt AS a WHERE a.identity_id = i.identity_id)"
            " FROM identity AS i JOIN current AS c USING (identity_id)"
            " LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
            f" WHERE i.run_id = {self.run_id} ORDER BY i.kind DESC"
        )
        return {
            (url if method == "GET" else f"{method} {url}"): Fate(
                State(state).label, Disposition(ended).label if ended else None, code, attempts
            )
            for method, url, state, ended, code, attempts in found
        }

    def fate(self, url: str) -> Fate:
        """Where the identity of this URL stands."""
        return self.fates[url]

    def ends(self) -> dict[str, int]:
        """How many identities ended how."""
        return dict(Counter(fate.end for fate in self.fates.values()))

    def history(self, url: str) -> list[str]:
        """The events in the life of an identity, oldest first."""
        from scrapy_frontier.states import Event

        found = self.rows(
            "SELECT t.event FROM transition AS t JOIN identity AS i USING (identity_id)"
            f" WHERE i.run_id = {self.run_id} AND i.url = '{url}' ORDER BY t.seq"
        )
        return [Event(row[0]).label for row in found]

    def wire_attempts(self) -> Counter[str]:
        """How often each URL was asked for over the network, as the ledger has it."""
        found = self.rows(
            "SELECT i.url, count(*) FROM attempt AS a JOIN identity AS i USING (identity_id)"
            " JOIN reason AS r ON r.reason_id = a.outcome_id"
            " WHERE r.code LIKE 'http.%' OR r.code LIKE 'download.%' GROUP BY i.url"
        )
        return Counter(dict(found))

    def lost_attempts(self) -> Counter[str]:
        """Attempts whose process ended before they did, by URL; some of them had reached the server."""
        found = self.rows(
            "SELECT i.url, count(*) FROM attempt AS a JOIN identity AS i USING (identity_id)"
            " JOIN reason AS r ON r.reason_id = a.outcome_id WHERE r.code = 'lease.lost' GROUP BY 1"
        )
        return Counter(dict(found))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The answer of the store to a query."""
        with open_store(self.store_url, read_only=True) as store, store.reader() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def assert_reconciled(self) -> Self:
        """The account adds up, and the audit finds nothing."""
        assert self.coverage.reconciled, self.coverage.failed_equations
        assert self.findings == []
        return self


@dataclass
class Crawl(Result):
    """What came of one crawl in this process."""

    crawler: Crawler = field(kw_only=True)
    spider: Any = None
    items: list[Any] = field(default_factory=list)
    failed: list[Any] = field(default_factory=list)

    @property
    def stats(self) -> dict[str, Any]:
        """Scrapy's stats at the end."""
        assert self.crawler.stats is not None
        return self.crawler.stats.get_stats()

    @property
    def reason(self) -> str:
        """Why Scrapy closed the spider."""
        return str(self.stats.get("finish_reason"))

    def assert_sound(self) -> Self:
        """The account adds up, the audit finds nothing, and nothing illegal was tried."""
        self.assert_reconciled()
        assert self.stats["frontier/refused"] == 0
        return self

    def assert_finished(self) -> Self:
        """The crawl ended by itself, with nothing left over."""
        self.assert_sound()
        assert self.reason == "finished", Frontier.of(self.crawler).error
        assert self.coverage.stop.reason == "exhausted"
        assert self.coverage.run.state == "finished"
        assert self.coverage.identities.unresolved == {}
        return self

    def assert_exhausted(self) -> Self:
        """It ended by itself, with nothing left over, and ledger and server agree."""
        self.assert_finished()
        booked, asked = self.wire_attempts(), self.log.hits_by_url()
        assert booked == asked, (
            f"only in the ledger: {booked - asked}, only asked: {asked - booked}"
        )
        return self


async def _finish(crawler: Crawler, patience_s: float, kwargs: Mapping[str, Any]) -> None:
    """Run the crawl; one that does not end is stopped, and fails with what it waits for."""
    crawling = asyncio.ensure_future(crawler.crawl_async(**kwargs))
    await asyncio.wait({crawling}, timeout=patience_s)
    if crawling.done():
        return crawling.result()
    state = f"{Frontier.of(crawler)!r}"
    await asyncio.wait({asyncio.ensure_future(crawler.stop_async())}, timeout=5)
    pytest.fail(f"the crawl did not end within {patience_s} s: {state}")


@dataclass
class Lab:
    """A server, a folder, and crawls on them."""

    server: ScriptedServer
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    store: str | None = None

    @property
    def main(self) -> Origin:
        """The first origin."""
        return self.server.origins["main"]

    @property
    def store_url(self) -> str:
        """The store of the crawls, unless their settings say otherwise."""
        return self.store or f"sqlite:///{self.folder / 'store.db'}"

    async def nobody_waits(self) -> bool:
        """Whether the first origin has no request in flight once it has heard of closed connections."""

        async def told() -> None:
            while self.main.in_flight:
                await asyncio.sleep(0.01)

        try:
            await deferred_from_coro(asyncio.wait_for(told(), 5))
        except asyncio.TimeoutError:
            return False
        return True

    def crawler(self, spider: type[Spider], settings: Mapping[str, Any] | None = None) -> Crawler:
        """A crawler that has not started."""
        return Crawler(
            spider,
            {
                **BASE_SETTINGS,
                "FRONTIER_STORE": self.store_url,
                "FRONTIER_RUN": "test",
                **self.settings,
                **(settings or {}),
            },
        )

    async def crawl(
        self,
        spider: type[Spider] = Follower,
        settings: Mapping[str, Any] | None = None,
        *,
        before: Callable[[Crawler], Any] | None = None,
        patience_s: float = PATIENCE_S,
        **kwargs: Any,
    ) -> Crawl:
        """Run a spider to its end. `before` sees the crawler first, to connect to its signals."""
        crawler = self.crawler(spider, settings)
        items: list[Any] = []
        failed: list[Any] = []
        crawler.signals.connect(lambda item: items.append(item), signals.item_scraped, weak=False)
        crawler.signals.connect(
            lambda failure: failed.append(failure), signals.spider_error, weak=False
        )
        if before is not None:
            before(crawler)
        await deferred_from_coro(_finish(crawler, patience_s, kwargs))
        return Crawl(
            str(crawler.settings["FRONTIER_STORE"]),
            self.server.log,
            Frontier.of(crawler).opened.run.run_id,
            crawler=crawler,
            spider=crawler.spider,
            items=items,
            failed=failed,
        )
