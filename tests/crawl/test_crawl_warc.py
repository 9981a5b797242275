"""A run's evidence as WARC, read back by another library."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest
from crawls import Lab
from test_crawl_evidence import BINARY, LIMIT, PAGE, crawl, killed_at

from scrapy_frontier.cli import main

archives = pytest.importorskip("warcio.archiveiterator")


def export(lab: Lab, name: str = "run.warc.gz") -> Any:
    """The path of a new export."""
    path = lab.folder / name
    arguments = ["export", "--format", "warc", "--store", lab.store_url, "--output", str(path)]
    assert main(arguments) == 0
    return path


def records(path: Any) -> list[tuple[Any, bytes]]:
    """All records with their contents as they lie in the file; a wrong digest raises."""
    with path.open("rb") as file:
        return [
            (record, record.raw_stream.read())
            for record in archives.ArchiveIterator(file, check_digests="raise")
        ]


def header(record: Any, name: str) -> str:
    return str(record.rec_headers.get_header(name))


async def test_everything_that_was_received_is_in_the_archive(lab: Lab) -> None:
    await crawl(lab, "body")
    found = records(export(lab))
    assert found[0][0].rec_type == "warcinfo"
    responses = {
        (header(record, "WARC-Target-URI"), record.http_headers.get_statuscode()): content
        for record, content in found
        if record.rec_type == "response"
    }
    assert len(responses) == len(lab.server.log)
    assert gzip.decompress(responses[lab.main / "zipped", "200"]) == PAGE.body.encode()  # type: ignore[union-attr]
    assert responses[lab.main / "binary", "200"] == BINARY
    assert responses[lab.main / "moved", "302"] == b""
    assert responses[lab.main / "empty", "200"] == b""
    assert responses[lab.main / "same", "304"] == b""
    assert responses[lab.main / "gone", "410"] == b"gone"


async def test_request_and_metadata_stand_beside_their_response(lab: Lab) -> None:
    await crawl(lab, "body")
    found = records(export(lab))
    ids = {header(one, "WARC-Record-ID"): one for one, _ in found if one.rec_type == "response"}
    for kind in ("request", "metadata"):
        joined = [one for one, _ in found if one.rec_type == kind]
        assert {header(one, "WARC-Concurrent-To") for one in joined} == set(ids)
        for one in joined:
            response = ids[header(one, "WARC-Concurrent-To")]
            for name in ("WARC-Target-URI", "WARC-Date"):
                assert header(one, name) == header(response, name)
    ((posted, body),) = [
        (one, content)
        for one, content in found
        if one.rec_type == "request" and one.http_headers.protocol == "POST"
    ]
    assert body == b"a=1"
    assert posted.http_headers.statusline == "/post HTTP/1.1"
    assert posted.http_headers.get_header("Host") in lab.main.url
    assert posted.http_headers.get_header("Authorization") is None
    moved = [one for one in ids.values() if one.http_headers.get_statuscode() == "302"]
    assert [one.http_headers.get_header("Location") for one in moved] == ["/plain"]


async def test_a_body_that_was_not_kept_is_marked(lab: Lab) -> None:
    await crawl(lab, "body")
    for record, content in records(export(lab)):
        if record.rec_type == "response":
            is_huge = header(record, "WARC-Target-URI") == lab.main / "huge"
            assert (record.rec_headers.get_header("WARC-Truncated") == "length") == is_huge
            assert not (is_huge and content)
        elif record.rec_type == "metadata" and header(record, "WARC-Target-URI").endswith("/huge"):
            assert b"body-size: %d\r\n" % (LIMIT + 1) in content


async def test_two_exports_of_one_run_hold_the_same_records(lab: Lab) -> None:
    await crawl(lab, "headers")
    one, other = records(export(lab)), records(export(lab, "again.warc.gz"))
    assert [header(r, "WARC-Record-ID") for r, _ in one[1:]] == [
        header(r, "WARC-Record-ID") for r, _ in other[1:]
    ]
    assert [content for _, content in one[1:]] == [content for _, content in other[1:]]


async def test_an_export_to_a_pipe_is_an_archive_too(
    lab: Lab, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await crawl(lab, "body")
    capfdbinary.readouterr()
    assert main(["export", "--format", "warc", "--store", lab.store_url]) == 0
    archive = io.BytesIO(capfdbinary.readouterr().out)
    kinds = [one.rec_type for one in archives.ArchiveIterator(archive, check_digests="raise")]
    assert kinds.count("response") == len(lab.server.log)


async def test_an_archive_with_a_hole_is_not_written(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    await crawl(lab, "body")
    for path in (lab.folder / "store.db.artifacts").rglob("*.gz"):
        path.unlink()
    target = lab.folder / "run.warc.gz"
    arguments = ["export", "--format", "warc", "--store", lab.store_url, "--output", str(target)]
    assert main(arguments) == 2
    assert "no such file" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.slow
def test_what_was_answered_from_evidence_is_archived_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at(lab, monkeypatch, "respond.committed:2", "body")
    responses = [one for one, _ in records(export(lab)) if one.rec_type == "response"]
    assert len(responses) == len(lab.server.log)
