"""What follows a failure: when, how often, by which rule; and that the ledger says so (cases FC33, FC35 and FC36)."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

import pytest
from crawls import Crawl, Lab
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.retry import get_retry_request

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.policy.retry import recorded, weigh
from scrapy_frontier.testing import Answer, page
from scrapy_frontier.testing.raw import RawPort


class Asker(Spider):
    """Asks for each of `requests`, and yields what came of each."""

    name = "asker"

    def __init__(self, requests: list[Request], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.requests = requests

    async def start(self) -> Any:
        for request in self.requests:
            yield request.replace(callback=self.parse, errback=self.told)

    def parse(self, response: Any) -> Any:
        yield {"url": response.url, "times": response.meta.get("retry_times", 0)}

    def told(self, failure: Any) -> Any:
        yield {"error": type(failure.value).__name__}


async def ask(lab: Lab, *requests: Request | str, **settings: Any) -> Crawl:
    made = [one if isinstance(one, Request) else Request(one) for one in requests]
    return await lab.crawl(Asker, {"RETRY_TIMES": 2, **settings}, requests=made)


def arrivals(result: Crawl, path: str) -> list[float]:
    return [hit.arrived_at for hit in result.log.hits if hit.path == path]


def details(result: Crawl, code: str) -> list[dict[str, Any]]:
    """The details of the transitions with this reason."""
    found = result.rows(
        "SELECT t.detail FROM transition AS t JOIN reason AS r USING (reason_id)"
        f" WHERE r.code = '{code}' ORDER BY t.seq"
    )
    return [json.loads(row[0]) for row in found]


@pytest.mark.parametrize("status", [429, 503])
async def test_FC33_retry_after_is_obeyed_by_the_whole_origin(lab: Lab, status: int) -> None:
    """The URL and its neighbours wait, other origins do not, and the wait costs none of `RETRY_TIMES`."""
    other = lab.server.origin("other")
    other.otherwise = page("other")
    lab.main.otherwise = page("any")
    asked = Answer("", status=status, headers=[("Retry-After", "1")])
    lab.main.on("/ra", [asked, page("there")])
    result = await ask(
        lab,
        Request(lab.main / "ra", priority=1),
        lab.main / "other",
        *(other / f"{number}" for number in range(3)),
        CONCURRENT_REQUESTS_PER_DOMAIN=1,
    )
    result.assert_exhausted()
    first, second = arrivals(result, "/ra")
    assert second - first >= 1
    assert arrivals(result, "/other")[0] - first >= 1
    assert max(hit.arrived_at for hit in result.log.hits if hit.origin == other.url) - first < 1
    assert {"url": lab.main / "ra", "times": 0} in result.items
    (detail,) = details(result, f"retry.http.{status}")
    assert detail["decision"]["retry_after"] == "seconds"
    assert detail["decision"]["counts"] == "hold"


async def test_FC35_waits_grow_without_a_time(lab: Lab) -> None:
    """A server that goes on saying 429 is asked ever more seldom, and in the end not at all."""
    lab.main.on("/no", Answer("", status=429))
    result = await ask(lab, lab.main / "no", FRONTIER_RETRY_DELAY=0.3)
    result.assert_exhausted()
    asked = arrivals(result, "/no")
    assert len(asked) == 1 + 2 * 2, "twice RETRY_TIMES"
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert all(gap >= 0.75 * 0.3 * 2**number for number, gap in enumerate(gaps))
    assert result.fate(lab.main / "no").end == "http_error"


async def test_FC35_without_retries_the_gate_is_shut_all_the_same(lab: Lab) -> None:
    """`RETRY_TIMES = 0`: each page is asked once, with the waits that the server asks for between them."""
    lab.main.otherwise = Answer("", status=429, headers=[("Retry-After", "1")])
    result = await ask(
        lab,
        *(lab.main / f"{number}" for number in range(3)),
        RETRY_TIMES=0,
        CONCURRENT_REQUESTS_PER_DOMAIN=1,
    )
    result.assert_exhausted()
    at = sorted(hit.arrived_at for hit in result.log.hits)
    assert min(after - before for before, after in itertools.pairwise(at)) >= 1
    assert set(result.ends()) == {"http_error"}


async def test_the_wait_and_the_shut_gate_outlive_the_process(lab: Lab) -> None:
    """A resumed run neither asks early nor forgets what the origin was promised."""
    asked = Answer("", status=503, headers=[("Retry-After", "3")])
    lab.main.on("/ra", [asked, page("there")])
    lab.main.otherwise = page("any")

    def stop(crawler: Any) -> None:
        def left(request: Request) -> None:
            Frontier.of(crawler).opened.loop.call_later(
                0.3, Frontier.of(crawler).opened.close_spider, "stopped"
            )

        from scrapy import signals

        crawler.signals.connect(left, signals.request_left_downloader, weak=False)

    first = await lab.crawl(Asker, before=stop, requests=[Request(lab.main / "ra")])
    assert first.fate(lab.main / "ra").state == "retryable"
    began = arrivals(first, "/ra")[0]
    requests = [Request(lab.main / "ra"), Request(lab.main / "new")]
    second = await lab.crawl(Asker, requests=requests)
    second.assert_exhausted()
    assert arrivals(second, "/new")[0] - began >= 3
    assert arrivals(second, "/ra")[1] - began >= 3


async def test_FC36_a_post_that_may_have_been_acted_on_is_sent_once(lab: Lab) -> None:
    """RFC 9110, section 9.2.2: one POST on the wire, and the errback is told."""
    lab.main.on("/order", Answer(fault="close"))
    order = Request(lab.main / "order", method="POST", body=b"order=1")
    result = await ask(lab, order)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/order": 1}
    assert result.items == [{"error": "DownloadFailedError"}]
    (detail,) = details(result, "download.reset")
    assert detail["decision"]["why_not"] == "not_idempotent"
    assert detail["inputs"]["is_sent"] is True
    wished = order.replace(meta={"frontier_idempotent": True})
    again = await ask(lab, wished, FRONTIER_RUN="2")
    assert again.log.hits_by_path() == {"/order": 4}


async def test_FC36_a_post_that_never_went_out_is_sent_again(lab: Lab) -> None:
    with RawPort(lambda connection: None) as port:
        url = f"http://127.0.0.1:{port.number}/order"
    result = await ask(lab, Request(url, method="POST", body=b"order=1"))
    assert result.fate(f"POST {url}").attempts == 3


async def test_every_decision_of_a_crawl_can_be_made_again_from_the_ledger(lab: Lab) -> None:
    """Rule, inputs and time stand in the transition: the same answer comes of them, by the settings and without."""
    statuses = [500, 404, 403, 408, 503, 429]
    for status in statuses:
        lab.main.on(f"/{status}", [Answer("", status=status), page("there")])
    lab.main.on("/never", Answer("", status=502))
    lab.main.on("/reset", Answer(fault="reset"))
    lab.main.on("/short", Answer("hello", content_length=99))
    result = await ask(
        lab,
        *(lab.main / f"{status}" for status in statuses),
        *(lab.main / name for name in ("never", "reset", "short")),
        Request(lab.main / "reset", method="POST"),
        FRONTIER_RETRY_RULES={"patience": {"status": 403, "retry": True, "times": 1}},
    )
    result.assert_exhausted()
    rules = Frontier.of(result.crawler).opened.retries.rules
    found = result.rows("SELECT detail FROM transition WHERE detail LIKE '%\"terms\"%'")
    decisions = [recorded(row[0]) for row in found]
    assert len(decisions) >= 15
    for decision in decisions:
        assert decision is not None
        question, terms, said = decision
        assert weigh(question, terms).to_json() == said
        assert rules.terms(question) == terms
    assert {said["rule"] for _, _, said in decisions if said} >= {"patience", "http.502"}  # type: ignore[misc]


async def test_earlier_failures_stay_after_a_success(lab: Lab) -> None:
    failing = Answer("", status=500, headers=[("Connection", "close")])
    lab.main.on("/page", [failing, Answer(fault="reset"), page("there")])
    result = await ask(lab, lab.main / "page")
    result.assert_exhausted()
    assert result.history(lab.main / "page") == [
        *("discover", "admit", "enqueue"),
        *("dispatch", "respond", "fail", "become_due"),
        *("dispatch", "fail", "become_due"),
        *("dispatch", "respond", "process"),
    ]
    codes = result.rows(
        "SELECT r.code FROM attempt AS a JOIN reason AS r ON r.reason_id = a.outcome_id"
        " ORDER BY a.attempt_id"
    )
    assert codes == [("http.500",), ("download.reset",), ("http.200",)]


async def test_lists_of_the_project_keep_their_meaning(lab: Lab) -> None:
    """`RETRY_HTTP_CODES` and `RETRY_EXCEPTIONS` that are set say what is tried again, and what is not."""
    lab.main.on("/404", Answer("", status=404))
    lab.main.on("/500", Answer("", status=500))
    lab.main.on("/reset", Answer(fault="reset"))
    result = await ask(
        lab,
        *(lab.main / name for name in ("404", "500", "reset")),
        RETRY_HTTP_CODES=[404],
        RETRY_EXCEPTIONS=["scrapy.exceptions.DownloadTimeoutError"],
    )
    assert result.assert_exhausted().log.hits_by_path() == {"/404": 3, "/500": 1, "/reset": 1}


class Wisher(Asker):
    """Finds its first answer wanting, by `get_retry_request` or by an exception."""

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}
        if response.url.endswith("raises") and b"there" not in response.body:
            raise LookupError("not there")
        if b"there" not in response.body:
            yield get_retry_request(response.request, spider=self, reason="empty")


async def test_a_wish_of_the_callback_is_a_retry_of_its_page(lab: Lab) -> None:
    """`get_retry_request` in a callback: the response itself asks for a retry (design, section 3)."""
    lab.main.on("/page", [page("empty"), page("there")])
    result = await lab.crawl(Wisher, requests=[Request(lab.main / "page")])
    result.assert_exhausted()
    assert result.history(lab.main / "page")[3:] == [
        *("dispatch", "respond", "fail", "become_due"),
        *("dispatch", "respond", "process"),
    ]
    (detail,) = details(result, "retry.http.200")
    assert detail["rule"] == "retry.asked"


async def test_an_exception_of_the_callback_is_no_reason_unless_a_rule_says_so(lab: Lab) -> None:
    lab.main.on("/raises", [page("empty"), page("there")])
    once = await lab.crawl(Wisher, requests=[Request(lab.main / "raises")])
    assert once.fate(lab.main / "raises").end == "callback_error"
    (detail,) = details(once, "callback.exception")
    assert (detail["rule"], detail["decision"]["why_not"]) == (
        "callback.exception",
        "not_transient",
    )
    lab.main.on("/raises", [page("empty"), page("there")])
    rules = {"flaky": {"exception": "LookupError", "retry": True}}
    twice = await lab.crawl(
        Wisher,
        {"FRONTIER_RUN": "2", "FRONTIER_RETRY_RULES": rules},
        requests=[Request(lab.main / "raises")],
    )
    assert twice.fate(lab.main / "raises").end == "succeeded"


def html(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Outage(Spider):
    """Its first callback takes the server down for a second."""

    name = "outage"

    def __init__(self, port: RawPort, talk: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.port, self.talk = port, talk
        self.start_urls = [f"http://127.0.0.1:{port.number}/"]

    def parse(self, response: Any) -> Any:
        self.port.__exit__(None, None, None)
        threading.Timer(1.0, self.reopen).start()
        for number in range(6):
            yield response.follow(f"/{number}", self.parse_page)

    def reopen(self) -> None:
        self.port = RawPort(self.talk, number=self.port.number)
        self.port.__enter__()

    def parse_page(self, response: Any) -> Any:
        yield {"times": response.meta.get("retry_times", 0)}


async def test_an_outage_does_not_burn_the_attempts_of_what_is_in_flight(lab: Lab) -> None:
    """What cannot be reached, at an origin that has answered, waits: no URL loses an attempt, none is lost."""

    def talk(connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(html(b"<p>here</p>"))

    with RawPort(talk) as port:
        settings = {"RETRY_TIMES": 2, "FRONTIER_RETRY_DELAY": 0.3}
        result = await lab.crawl(Outage, settings, port=port, talk=talk)
    result.spider.port.__exit__(None, None, None)
    result.assert_finished()
    assert result.items == [{"times": 0}] * 6
    assert set(result.ends()) == {"succeeded"}


async def test_waits_are_not_inherited_by_other_requests(lab: Lab) -> None:
    """Meta is copied from page to page; how often a request has waited is its own affair."""
    asked = Answer("", status=429, headers=[("Retry-After", "1")])
    lab.main.on("/first", [asked, page("there")])
    lab.main.on("/second", page("there"))

    class Copies(Spider):
        name = "copies"

        async def start(self) -> Any:
            yield Request(lab.main / "first")

        def parse(self, response: Any) -> Any:
            yield {"holds": response.meta.get("frontier_holds", 0)}
            if response.url.endswith("first"):
                yield Request(lab.main / "second", meta=response.meta)

    result = await lab.crawl(Copies)
    assert result.assert_exhausted().items == [{"holds": 1}, {"holds": 0}]
