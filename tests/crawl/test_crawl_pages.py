"""A page ends only after all that its callback yielded is in the ledger, whatever the callback does (invariant 4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from crawls import Follower, Lab, Result, on_both_stores
from scrapy import Request
from scrapy.exceptions import CloseSpider, IgnoreRequest

from scrapy_frontier.states import Event
from scrapy_frontier.testing import Answer, page

CHILDREN = 30


class Parent(Follower):
    """Yields children from `/parent` as the subclass's `parse` says."""

    def child(self, response: Any, number: int) -> Request:
        return Request(response.urljoin(f"/child{number}"), self.parse_child)

    def parse_child(self, response: Any) -> None:
        """Nothing to do."""


class SyncGenerator(Parent):
    def parse(self, response: Any) -> Any:
        for number in range(CHILDREN):
            yield self.child(response, number)


class AsyncGenerator(Parent):
    async def parse(self, response: Any) -> Any:
        for number in range(CHILDREN):
            if number % 10 == 0:
                await asyncio.sleep(0.01)
            yield self.child(response, number)


class Coroutine(Parent):
    async def parse(self, response: Any) -> Any:
        await asyncio.sleep(0.02)
        return [self.child(response, number) for number in range(CHILDREN)]


class PlainList(Parent):
    def parse(self, response: Any) -> Any:
        return [self.child(response, number) for number in range(CHILDREN)]


class RaisesHalfWay(Parent):
    def parse(self, response: Any) -> Any:
        for number in range(CHILDREN):
            if number == 20:
                raise RuntimeError("half way")
            yield self.child(response, number)


class RaisesHalfWayAsync(Parent):
    async def parse(self, response: Any) -> Any:
        for number in range(CHILDREN):
            if number == 20:
                await asyncio.sleep(0.01)
                raise RuntimeError("half way")
            yield self.child(response, number)


class RaisesAtOnce(Parent):
    def parse(self, response: Any) -> Any:
        raise RuntimeError("at once")


class YieldsNothing(Parent):
    def parse(self, response: Any) -> Any:
        return None


class Errback(Parent):
    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url, self.parse, errback=self.failed)

    def failed(self, failure: Any) -> Any:
        for number in range(CHILDREN):
            yield Request(failure.request.url.replace("parent", f"child{number}"), self.parse_child)


class RaisingErrback(Errback):
    def failed(self, failure: Any) -> Any:
        yield from list(super().failed(failure))[:20]
        raise RuntimeError("in the errback")


def ends_after_its_children(result: Result, parent: str) -> None:
    """No child was discovered, in the order of the ledger, after its parent had ended."""
    found = result.rows(
        "SELECT i.url, i.source_id, t.identity_id, t.seq, t.event FROM transition AS t"
        " JOIN identity AS i USING (identity_id) ORDER BY t.seq"
    )
    parent_id = next(row[2] for row in found if row[0] == parent)
    end = max(row[3] for row in found if row[2] == parent_id)
    children = [row[3] for row in found if row[1] == parent_id and row[4] == Event.DISCOVER]
    assert all(seq < end for seq in children)


@pytest.mark.parametrize(
    ("spider", "children", "end"),
    [
        (SyncGenerator, CHILDREN, "succeeded"),
        (AsyncGenerator, CHILDREN, "succeeded"),
        (Coroutine, CHILDREN, "succeeded"),
        (PlainList, CHILDREN, "succeeded"),
        (RaisesHalfWay, 20, "callback_error"),
        (RaisesHalfWayAsync, 20, "callback_error"),
        (RaisesAtOnce, 0, "callback_error"),
        (YieldsNothing, 0, "succeeded"),
    ],
)
async def test_page_ends_after_its_children(
    lab: Lab, spider: type[Parent], children: int, end: str
) -> None:
    """All that a callback yielded is in the ledger before its page ends, also when it raised."""
    lab.main.otherwise = page("any")
    parent = lab.main / "parent"
    result = await lab.crawl(spider, seeds=[parent])
    result.assert_exhausted()
    assert result.fate(parent).end == end
    assert result.ends().get("succeeded", 0) == children + (end == "succeeded")
    ends_after_its_children(result, parent)


@pytest.mark.parametrize(("spider", "children"), [(Errback, CHILDREN), (RaisingErrback, 20)])
@pytest.mark.parametrize(
    ("answer", "end", "reason"),
    [
        (Answer(status=404), "gone", "http.404"),
        (Answer(status=500), "http_error", "http.500"),
        (Answer(fault="reset"), "failed", "download.reset"),
    ],
    ids=["404", "500", "reset"],
)
async def test_page_ends_after_its_errback(
    lab: Lab, spider: type[Parent], children: int, answer: Answer, end: str, reason: str
) -> None:
    """What an errback yields is a reference of the page that failed; the page ends as it failed."""
    lab.main.otherwise = page("any")
    lab.main.on("/parent", answer)
    parent = lab.main / "parent"
    result = await lab.crawl(spider, {"RETRY_ENABLED": False}, seeds=[parent])
    result.assert_exhausted()
    assert result.ends()["succeeded"] == children
    assert result.coverage.references.by_kind["errback"].total == children
    ends_after_its_children(result, parent)
    fate = result.fate(parent)
    if spider is Errback:
        assert (fate.end, fate.reason) == (end, reason)
    else:
        assert fate.end in {end, "callback_error"}


async def test_page_ends_after_a_slow_pipeline(lab: Lab) -> None:
    """Items belong to the page: it has not ended while a pipeline works on one."""
    seen: list[list[str]] = []

    class Slow:
        async def process_item(self, item: Any) -> Any:
            await asyncio.sleep(0.1)
            seen.append([*histories()])
            return item

    class Items(Parent):
        def parse(self, response: Any) -> Any:
            yield {"url": response.url}
            yield self.child(response, 1)

    def histories() -> list[str]:
        from sqlalchemy import text

        from scrapy_frontier.store.opening import open_store

        with open_store(lab.store_url, read_only=True) as store, store.reader() as connection:
            found = connection.execute(
                text(
                    "SELECT t.event FROM transition AS t JOIN identity AS i USING (identity_id)"
                    f" WHERE i.url = '{lab.main / 'parent'}' ORDER BY t.seq"
                )
            )
            return [Event(row[0]).label for row in found]

    lab.main.otherwise = page("any")
    result = await lab.crawl(Items, {"ITEM_PIPELINES": {Slow: 1}}, seeds=[lab.main / "parent"])
    result.assert_exhausted()
    assert len(result.items) == 1
    assert seen[0][-1] == "respond"
    assert result.history(lab.main / "parent")[-1] == "process"


@on_both_stores
async def test_response_reaches_the_spider_after_its_commit(lab: Lab) -> None:
    """Dispatch and response are on disk before a callback sees the page (invariant 5)."""

    class Looks(Parent):
        def parse(self, response: Any) -> Any:
            from sqlalchemy import text

            from scrapy_frontier.store.opening import open_store

            with open_store(lab.store_url, read_only=True) as store, store.reader() as connection:
                found = connection.execute(text("SELECT event FROM transition ORDER BY seq"))
                self.seen = [Event(row[0]).label for row in found]

    lab.main.otherwise = page("any")
    result = await lab.crawl(Looks, seeds=[lab.main / "parent"])
    result.assert_exhausted()
    assert result.spider.seen == ["discover", "admit", "enqueue", "dispatch", "respond"]


async def test_close_spider_in_a_callback_ends_the_page_and_stops_the_run(lab: Lab) -> None:
    """The page that asked for the end has ended; what waits is left for a resumption."""

    class Closes(Parent):
        def parse(self, response: Any) -> Any:
            for number in range(CHILDREN):
                yield self.child(response, number)
            raise CloseSpider("enough_of_it")

        def parse_child(self, response: Any) -> None:
            """Nothing to do."""

    lab.main.otherwise = page("any")
    parent = lab.main / "parent"
    stopped = await lab.crawl(Closes, seeds=[parent])
    stopped.assert_sound()
    assert stopped.reason == "enough_of_it"
    assert (stopped.coverage.run.state, stopped.coverage.stop.reason) == ("stopped", "operator")
    assert stopped.coverage.identities.discovered == CHILDREN + 1
    assert stopped.fate(parent).end == "succeeded"

    resumed = await lab.crawl(Closes, seeds=[parent])
    resumed.assert_exhausted()
    assert resumed.log.hits_by_path() == {
        "/parent": 1,
        **{f"/child{number}": 1 for number in range(CHILDREN)},
    }


async def test_ignored_in_a_callback_is_an_error_of_the_callback(lab: Lab) -> None:
    """Whatever a callback raises, its page has an end and a reason."""

    class Ignores(Parent):
        def parse(self, response: Any) -> Any:
            yield self.child(response, 1)
            raise IgnoreRequest("no good")

    lab.main.otherwise = page("any")
    result = await lab.crawl(Ignores, seeds=[lab.main / "parent"])
    result.assert_exhausted()
    assert result.fate(lab.main / "parent").attempts == 1


@on_both_stores
async def test_pages_link_their_own_children_while_many_are_open(lab: Lab) -> None:
    """Callbacks that run at the same time do not take each other's references."""

    class Mixed(Follower):
        async def parse(self, response: Any) -> Any:
            name = response.url.rpartition("/")[2]
            if name.startswith("p"):
                for number in range(5):
                    await asyncio.sleep(0.001)
                    yield Request(response.urljoin(f"/c{name}-{number}"))

    lab.main.otherwise = page("any")
    seeds = [f"{lab.main.url}/p{number}" for number in range(12)]
    result = await lab.crawl(Mixed, seeds=seeds)
    result.assert_exhausted()
    found = result.rows(
        "SELECT child.url, parent.url FROM identity AS child"
        " JOIN identity AS parent ON parent.identity_id = child.source_id"
    )
    assert len(found) == 60
    assert all(
        child.partition("/c")[2].partition("-")[0]
        == parent[-len(child.partition("/c")[2].partition("-")[0]) :]
        for child, parent in found
    )
