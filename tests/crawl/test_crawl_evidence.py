"""Evidence of real crawls: what is kept in each mode, and that a kept response needs no second request."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab, Result
from processes import CrawlProcess
from scrapy import Request
from scrapy.http import TextResponse
from sqlalchemy import text

from scrapy_frontier.errors import ArtifactError
from scrapy_frontier.states import Event
from scrapy_frontier.store.artifacts import Artifacts, ResponseRecord, digest_of, open_artifacts
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Answer, page, redirect

BINARY = bytes(range(256)) * 40
PAGE = page("Zipped", ["/plain"], "as the spider sees it")
LIMIT = 60_000


def artifacts_of(result: Result) -> Artifacts:
    """The evidence beside the store."""
    return open_artifacts(None, Path(result.store_url.removeprefix("sqlite:///")))


def evidence(result: Result, url: str, event: Event = Event.RESPOND) -> list[ResponseRecord]:
    """The records that the transitions of one event of a URL name, oldest first."""
    with open_store(result.store_url, read_only=True) as store, store.reader() as connection:
        digests = connection.scalars(
            text(
                "SELECT t.evidence FROM transition AS t JOIN identity AS i USING (identity_id)"
                " WHERE i.url = :url AND t.event = :event AND t.evidence IS NOT NULL ORDER BY t.seq"
            ),
            {"url": url, "event": int(event)},
        ).all()
    artifacts = artifacts_of(result)
    return [ResponseRecord.load(artifacts.get(bytes(digest))) for digest in digests]


def body_of(result: Result, record: ResponseRecord) -> bytes:
    return artifacts_of(result).get(bytes.fromhex(record.body.digest))


class Everything(Follower):
    """Follows links, and asks for a page with HEAD, POST, and a condition."""

    handle_httpstatus_list = [304]

    async def start(self) -> Any:
        for url in self.start_urls:
            yield Request(url)
            yield Request(f"{url}head", method="HEAD")
            yield Request(
                f"{url}post", method="POST", body=b"a=1", headers={"Authorization": "Basic eA=="}
            )
            yield Request(f"{url}same", headers={"If-None-Match": '"1"'})

    def parse(self, response: Any) -> Any:
        if isinstance(response, TextResponse):
            yield from response.follow_all(css="a")
        yield {"url": response.url, "body": response.body}


def script(lab: Lab) -> None:
    origin = lab.main
    links = ["/zipped", "/moved", "/binary", "/empty", "/huge", "/twin", "/gone"]
    origin.on("/", page("Start", links))
    origin.on("/zipped", Answer(PAGE.body, is_gzipped=True, is_chunked=True))
    origin.on("/moved", redirect("/plain"))
    origin.on("/plain", page("Plain"))
    origin.on("/twin", page("Plain"))
    origin.on("/binary", Answer(BINARY, content_type="application/octet-stream"))
    origin.on("/empty", Answer(b""))
    origin.on("/huge", Answer(b"x" * (LIMIT + 1), content_type="text/plain"))
    origin.on("/head", Answer(b"not sent"))
    origin.on("/post", page("Posted"))
    origin.on("/same", Answer(status=304, headers=(("ETag", '"1"'),)))
    origin.on("/gone", Answer(b"gone", status=410))


async def crawl(lab: Lab, mode: str) -> Crawl:
    script(lab)
    settings = {"FRONTIER_EVIDENCE": mode, "FRONTIER_EVIDENCE_MAX_BODY": LIMIT}
    result = await lab.crawl(Everything, settings, seeds=[lab.main / ""])
    result.assert_exhausted()
    return result


async def test_mode_none_keeps_nothing(lab: Lab) -> None:
    result = await crawl(lab, "none")
    assert result.rows("SELECT count(*) FROM transition WHERE evidence IS NOT NULL") == [(0,)]
    assert not Path(artifacts_of(result).url).exists()


async def test_mode_headers_keeps_status_headers_and_the_digest_of_the_body(lab: Lab) -> None:
    result = await crawl(lab, "headers")
    (record,) = evidence(result, lab.main / "zipped")
    assert (record.form, record.status, record.protocol) == ("wire", 200, "HTTP/1.1")
    assert ("Content-Encoding", "gzip") in record.headers
    assert not record.body.is_kept
    sent = gzip.compress(PAGE.body.encode(), mtime=0)  # type: ignore[union-attr]
    assert record.body.digest == digest_of(sent).hex()
    with pytest.raises(ArtifactError):
        body_of(result, record)
    assert evidence(result, lab.main / "zipped", Event.PROCESS) == []


async def test_mode_body_keeps_what_the_wire_sent_and_what_the_spider_saw(lab: Lab) -> None:
    result = await crawl(lab, "body")
    seen = {item["url"]: item["body"] for item in result.items}
    (wire,) = evidence(result, lab.main / "zipped")
    (shown,) = evidence(result, lab.main / "zipped", Event.PROCESS)
    assert gzip.decompress(body_of(result, wire)) == body_of(result, shown)
    assert body_of(result, shown) == seen[lab.main / "zipped"] == PAGE.body.encode()  # type: ignore[union-attr]
    assert (wire.form, shown.form) == ("wire", "seen")
    (binary,) = evidence(result, lab.main / "binary")
    assert body_of(result, binary) == BINARY
    assert evidence(result, lab.main / "binary", Event.PROCESS) == [], "kept twice"
    (moved,) = evidence(result, lab.main / "moved")
    assert (moved.status, dict(moved.headers)["Location"]) == (302, "/plain")
    (gone,) = evidence(result, lab.main / "gone")
    assert body_of(result, gone) == b"gone"


async def test_bodies_that_are_empty_absent_or_too_large(lab: Lab) -> None:
    result = await crawl(lab, "body")
    for path, status in (("empty", 200), ("head", 200), ("same", 304)):
        (record,) = evidence(result, lab.main / path)
        assert (record.status, record.body.size, record.body.is_kept) == (status, 0, True)
    (huge,) = evidence(result, lab.main / "huge")
    assert (huge.body.size, huge.body.is_kept) == (LIMIT + 1, False)
    assert huge.body.digest == digest_of(b"x" * (LIMIT + 1)).hex()


async def test_equal_bodies_of_two_pages_are_one_artifact(lab: Lab) -> None:
    result = await crawl(lab, "body")
    (one,), (other,) = evidence(result, lab.main / "plain"), evidence(result, lab.main / "twin")
    assert one.body == other.body
    assert one.url != other.url


async def test_evidence_is_written_beside_the_event_loop(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, threads = Artifacts.put, set()

    def watched(self: Artifacts, content: bytes, digest: bytes | None = None) -> bytes:
        threads.add(threading.current_thread().name.rpartition("_")[0])
        return put(self, content, digest)

    monkeypatch.setattr(Artifacts, "put", watched)
    result = await crawl(lab, "body")
    assert threads == {"frontier-evidence"}
    assert result.stats["frontier/evidence/kept"] == len(lab.server.log)


async def test_the_request_is_kept_without_its_secrets(lab: Lab) -> None:
    result = await crawl(lab, "body")
    (record,) = evidence(result, lab.main / "post")
    assert record.request is not None
    assert (record.request.method, record.request.url) == ("POST", lab.main / "post")
    assert artifacts_of(result).get(bytes.fromhex(record.request.body.digest)) == b"a=1"
    assert dict(record.request.headers)["Authorization"] == "(withheld)"


@pytest.mark.parametrize("mode", ["headers", "body"])
async def test_evidence_that_cannot_be_written_stops_the_crawl_and_loses_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """The disk is full for a while: a clear error, a clean stop, and the resumed run does the rest."""
    script(lab)
    put, puts = Artifacts.put, 0

    def full(self: Artifacts, content: bytes, digest: bytes | None = None) -> bytes:
        nonlocal puts
        puts += 1
        if puts > 5:
            raise ArtifactError("writing evidence: No space left on device")
        return put(self, content, digest)

    monkeypatch.setattr(Artifacts, "put", full)
    settings = {"FRONTIER_EVIDENCE": mode}
    first = await lab.crawl(Everything, settings, seeds=[lab.main / ""])
    first.assert_sound()
    assert first.reason == "frontier_error"
    assert first.coverage.stop.reason == "error"
    assert "No space left" in str(first.rows("SELECT stop_detail FROM run"))
    monkeypatch.undo()
    second = await lab.crawl(Everything, settings, seeds=[lab.main / ""])
    second.assert_finished()
    assert len(evidence(second, lab.main / "gone")) == 1


SPIDER = """
import scrapy


class Follower(scrapy.Spider):
    name = "follower"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [seed]

    def parse(self, response):
        self.logger.info("SEEN %s", response.url)
        yield from response.follow_all(css="a")
        yield {"url": response.url}
"""

ONE_AT_A_TIME = {"CONCURRENT_REQUESTS": 1, "ROBOTSTXT_OBEY": False}


def killed_at(lab: Lab, monkeypatch: pytest.MonkeyPatch, point: str, mode: str) -> Result:
    """A small site crawled by a process that is killed at a point, and by one that resumes its run."""
    lab.main.on("/", page("Start", ["/a", "/z", "/r"]))
    lab.main.on("/a", page("A", ["/b"]))
    lab.main.on("/b", page("B"))
    lab.main.on("/c", page("C"))
    lab.main.on("/r", redirect("/c"))
    lab.main.on("/z", Answer(PAGE.body, is_gzipped=True))
    lab.main.on("/plain", page("Plain"))
    settings = {**ONE_AT_A_TIME, "FRONTIER_EVIDENCE": mode}
    monkeypatch.setenv("FRONTIER_FAILPOINT", point)
    with CrawlProcess(lab.folder, lab.main / "", settings, SPIDER) as process:
        process.process.wait(30)
    monkeypatch.delenv("FRONTIER_FAILPOINT")
    with CrawlProcess(lab.folder, lab.main / "", settings, SPIDER) as process:
        output = process.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished", output
    assert set(result.ends()) == {"succeeded", "redirected"}
    return result


def replayed(result: Result) -> list[str]:
    """The URLs of attempts that were answered from evidence."""
    found = result.rows(
        "SELECT i.url FROM attempt AS a JOIN identity AS i USING (identity_id) JOIN reason AS r"
        " ON r.reason_id = a.outcome_id WHERE r.code = 'evidence.replayed' ORDER BY a.attempt_id"
    )
    return [url for (url,) in found]


@pytest.mark.slow
@pytest.mark.parametrize("hit", [2, 4])
def test_a_response_that_was_not_processed_is_so_from_its_evidence(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, hit: int
) -> None:
    """The server sees one request for each page, and the history tells what happened."""
    result = killed_at(lab, monkeypatch, f"respond.committed:{hit}", "body")
    assert lab.server.log.hits_by_url() == result.wire_attempts()
    assert set(lab.server.log.hits_by_url().values()) == {1}
    (url,) = replayed(result)
    events = result.history(url)
    assert events[-6:-1] == ["dispatch", "respond", "reclaim", "dispatch", "respond"]
    assert result.coverage.attempts.by_outcome["evidence.replayed"] == 1


@pytest.mark.slow
def test_without_the_body_a_response_is_asked_for_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = killed_at(lab, monkeypatch, "respond.committed:2", "headers")
    assert replayed(result) == []
    assert sorted(lab.server.log.hits_by_url().values())[-2:] == [1, 2]


@pytest.mark.slow
def test_a_response_killed_before_its_commit_leaves_an_orphan_and_is_asked_for_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = killed_at(lab, monkeypatch, "artifact.kept:2", "body")
    assert replayed(result) == []
    assert sorted(lab.server.log.hits_by_url().values())[-2:] == [1, 2]
    named = {
        bytes(row[0]) for row in result.rows("SELECT evidence FROM transition WHERE evidence <> ''")
    }
    orphans = [
        digest
        for digest, _ in artifacts_of(result).listing()
        if digest not in named and b'"form"' in artifacts_of(result).get(digest)
    ]
    assert len(orphans) == 1


@pytest.mark.slow
def test_killed_while_it_is_answered_from_evidence_it_is_so_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two crashes in a row: the dispatch of the replay names the evidence as well."""
    lab.main.on("/", page("Start"))
    settings = {**ONE_AT_A_TIME, "FRONTIER_EVIDENCE": "body"}
    for point in ("respond.committed", "recover.done", "respond.before", "respond.committed"):
        monkeypatch.setenv("FRONTIER_FAILPOINT", point)
        with CrawlProcess(lab.folder, lab.main / "", settings, SPIDER) as process:
            process.process.wait(30)
            assert process.process.returncode == -9
    monkeypatch.delenv("FRONTIER_FAILPOINT")
    with CrawlProcess(lab.folder, lab.main / "", settings, SPIDER) as process:
        assert "SEEN" in process.wait()
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished"
    assert len(lab.server.log) == 1


@pytest.mark.slow
def test_evidence_that_was_altered_meanwhile_is_not_used(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.main.on("/", page("Start"))
    settings = {**ONE_AT_A_TIME, "FRONTIER_EVIDENCE": "body"}
    monkeypatch.setenv("FRONTIER_FAILPOINT", "respond.committed")
    with CrawlProcess(lab.folder, lab.main / "", settings, SPIDER) as process:
        process.process.wait(30)
    monkeypatch.delenv("FRONTIER_FAILPOINT")
    for path in (lab.folder / "store.db.artifacts").rglob("*.gz"):
        os.truncate(path, 20)
    with CrawlProcess(lab.folder, lab.main / "", settings, SPIDER) as process:
        assert "asked for again" in process.wait()
    result = Result(lab.store_url, lab.server.log)
    assert result.coverage.run.state == "finished"
    assert len(lab.server.log) == 2
