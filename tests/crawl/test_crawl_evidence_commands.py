"""What the commands make of a crawl's evidence: shown, written out, verified, swept."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from crawls import Crawl, Follower, Lab

from scrapy_frontier.cli import main
from scrapy_frontier.store.artifacts import Artifacts, digest_of, open_artifacts
from scrapy_frontier.testing import Answer, page

BODY = b"\x00\x01 not text \xff"


async def crawl(lab: Lab, **settings: Any) -> Crawl:
    lab.main.on("/", page("Start", ["/binary", "/empty"]))
    lab.main.on("/binary", Answer(BODY, content_type="application/octet-stream"))
    lab.main.on("/empty", Answer(b""))
    result = await lab.crawl(
        Binary, {"FRONTIER_EVIDENCE": "body", **settings}, seeds=[lab.main / ""]
    )
    return result.assert_finished()


class Binary(Follower):
    def parse(self, response: Any) -> Any:
        if response.url.endswith("/"):
            yield from response.follow_all(css="a")


def evidence_of(lab: Lab, url: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The digest that `history` shows for the response of a URL."""
    assert main(["history", url, "--store", lab.store_url, "--format", "json"]) == 0
    (identity,) = json.loads(capsys.readouterr().out)["identities"]
    (digest,) = [step["evidence"] for step in identity["transitions"] if step["evidence"]]
    return str(digest)


def kept(lab: Lab) -> Artifacts:
    return open_artifacts(None, lab.folder / "store.db")


async def test_history_shows_the_evidence_and_artifact_writes_it(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    await crawl(lab)
    digest = evidence_of(lab, lab.main / "binary", capsys)
    main(["history", lab.main / "binary", "--store", lab.store_url])
    assert f"evidence {digest}" in capsys.readouterr().out
    out = lab.folder / "out"
    ask = ["artifact", digest, "--store", lab.store_url]
    assert main([*ask, "--body", "--output", str(out)]) == 0
    assert out.read_bytes() == BODY
    assert main([*ask, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["body"]["digest"]) == (200, digest_of(BODY).hex())
    empty = evidence_of(lab, lab.main / "empty", capsys)
    ask = ["artifact", empty, "--store", lab.store_url, "--body", "--output", str(out)]
    assert main(ask) == 0
    assert out.read_bytes() == b""


async def test_artifact_says_what_it_cannot_give(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    await crawl(lab, FRONTIER_EVIDENCE_MAX_BODY=1)
    digest = evidence_of(lab, lab.main / "binary", capsys)
    assert main(["artifact", digest, "--body", "--store", lab.store_url]) == 1
    assert "not kept" in capsys.readouterr().err
    assert main(["artifact", "00" * 32, "--store", lab.store_url]) == 1
    assert main(["artifact", "zz", "--store", lab.store_url]) == 2


async def test_evidence_in_another_place_is_found_without_being_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    await crawl(lab, FRONTIER_ARTIFACTS=str(lab.folder / "elsewhere"))
    digest = evidence_of(lab, lab.main / "binary", capsys)
    assert main(["artifact", digest, "--store", lab.store_url, "--format", "json"]) == 0
    assert main(["verify", "--store", lab.store_url]) == 0
    assert not Path(kept(lab).url).exists()
    # An operator's session keeps no evidence, and names no place.
    for command in (["requeue", lab.main / "binary"], ["release", "--origin", lab.main.url]):
        main([*command, "--store", lab.store_url])
        assert main(["artifact", digest, "--store", lab.store_url, "--format", "json"]) == 0


async def test_a_crawl_keeps_its_evidence_in_an_object_store(lab: Lab) -> None:
    place = f"memory://evidence{lab.folder}"
    result = await crawl(lab, FRONTIER_ARTIFACTS=place)
    assert open_artifacts(place, None).get(digest_of(BODY)) == BODY
    assert result.rows("SELECT count(*) FROM transition WHERE evidence <> ''") == [(3,)]


async def test_a_place_that_cannot_be_written_ends_the_crawl_before_any_request(lab: Lab) -> None:
    (lab.folder / "file").write_text("in the way")
    with pytest.raises(Exception, match="FRONTIER_ARTIFACTS"):
        await crawl(lab, FRONTIER_ARTIFACTS=str(lab.folder / "file" / "evidence"))
    assert len(lab.server.log) == 0


@pytest.mark.parametrize("harm", ["missing", "cut", "exchanged"])
async def test_verify_finds_evidence_that_is_not_whole(
    lab: Lab, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await crawl(lab)
    verify = ["verify", "--store", lab.store_url]
    assert main(verify) == 0
    folder = Path(kept(lab).url)
    name = digest_of(BODY).hex()
    path = folder / name[:2] / f"{name}.gz"
    match harm:
        case "missing":
            path.unlink()
        case "cut":
            os.truncate(path, 15)
        case _:
            other = kept(lab).put(b"something else").hex()
            path.write_bytes((folder / other[:2] / f"{other}.gz").read_bytes())
    capsys.readouterr()
    assert main(verify) == 1
    said = capsys.readouterr().out
    assert "invariant 5" in said
    assert name in said
    assert lab.main / "binary" in said


async def test_sweep_takes_what_nothing_names_and_leaves_what_is_named(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    await crawl(lab)
    orphan = kept(lab).put(b"of a crawl that was killed before its commit")
    sweep = ["sweep", "--store", lab.store_url, "--format", "json"]
    assert main(sweep) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 0
    long_ago = time.time() - 3 * 24 * 3600
    for path in Path(kept(lab).url).rglob("*.gz"):
        os.utime(path, (long_ago, long_ago))
    assert main([*sweep, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 1
    assert main(sweep) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 1
    assert orphan not in {digest for digest, _ in kept(lab).listing()}
    assert main(["verify", "--store", lab.store_url]) == 0


async def test_nothing_is_swept_where_another_store_keeps_its_evidence(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(lab.folder / "shared")
    await crawl(lab, FRONTIER_ARTIFACTS=place)
    other = f"sqlite:///{lab.folder / 'other.db'}"
    await crawl(lab, FRONTIER_ARTIFACTS=place, FRONTIER_STORE=other)
    assert main(["sweep", "--store", lab.store_url]) == 2
    assert "other stores" in capsys.readouterr().err
