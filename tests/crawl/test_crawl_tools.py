"""Backups and exports of a store that a crawl is writing to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawls import Lab, Result
from processes import CrawlProcess, make_web
from test_crawl_processes import SETTINGS, wait_for_hits

from scrapy_frontier.cli import main
from scrapy_frontier.report.exports.export import Export
from scrapy_frontier.report.exports.formats import FORMATS
from scrapy_frontier.report.exports.subjects import SUBJECTS
from scrapy_frontier.states import State
from scrapy_frontier.store.opening import open_store

pytestmark = pytest.mark.slow


def written(export: Export, path: Path) -> list[dict[str, Any]]:
    """The rows of an export, by way of a file."""
    with path.open("wb") as file:
        FORMATS["jsonl"].write(export, file)
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def fold(transitions: list[dict[str, Any]]) -> dict[int, tuple[str, str | None, int]]:
    """Where the ledger leaves each identity; each transition begins where the last one ended."""
    standing: dict[int, tuple[str, str | None, int]] = {}
    for row in transitions:
        state, _, seq = standing.get(row["identity"], (State.ABSENT.label, None, None))
        assert (row["from"], row["previous"]) == (state, seq)
        standing[row["identity"]] = (row["to"], row["disposition"], row["seq"])
    return standing


def test_exports_of_a_running_crawl_reconcile(lab: Lab, tmp_path: Path) -> None:
    """Ledger, identities, attempts and edges of one moment agree, while the crawl writes on."""
    make_web(lab.main, 160, delay_s=0.02)
    with CrawlProcess(lab.folder, lab.main / "p0", SETTINGS) as process:
        wait_for_hits(lab, process, 40)
        with open_store(lab.store_url, read_only=True) as store:
            moment = Export.begin(store, SUBJECTS["transitions"], 1).moment
            wait_for_hits(lab, process, 80)
            exports = [Export(store, subject, moment) for subject in SUBJECTS.values()]
            rows = {one.subject.name: written(one, tmp_path / "rows") for one in exports}
        assert process.process.poll() is None, "the crawl ended before the export was made"
        process.wait()

    standing = fold(rows["transitions"])
    assert max(row["seq"] for row in rows["transitions"]) == moment.seq
    assert standing == {
        row["identity"]: (row["state"], row["disposition"], row["last_seq"])
        for row in rows["identities"]
    }
    dispatched = Counter(
        row["attempt"] for row in rows["transitions"] if row["event"] == "dispatch"
    )
    assert dispatched == Counter(row["attempt"] for row in rows["attempts"])
    under_way = {row["attempt"] for row in rows["attempts"] if row["outcome"] is None}
    fetching = {
        row["attempt"] for row in rows["identities"] if row["state"] == State.FETCHING.label
    }
    assert under_way == fetching
    known = {row["identity"] for row in rows["identities"]}
    assert {row["target"] for row in rows["edges"]} == known
    result = Result(lab.store_url, lab.server.log).assert_reconciled()
    assert result.rows("SELECT max(seq) FROM transition")[0][0] > moment.seq


def test_a_backup_of_a_running_crawl_is_a_store_to_go_on_from(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The copy is sound, gives its report again after a restore, and its run can be resumed."""
    paths = make_web(lab.main, 120, delay_s=0.02)
    copy, again = tmp_path / "copy.db", f"sqlite:///{tmp_path / 'again.db'}"
    with CrawlProcess(lab.folder, lab.main / "p0", SETTINGS) as process:
        wait_for_hits(lab, process, 40)
        assert main(["backup", str(copy), "--store", lab.store_url]) == 0
        assert process.process.poll() is None, "the crawl ended before the backup was made"
        process.wait()
    Result(lab.store_url, lab.server.log).assert_reconciled()

    assert main(["verify", "--store", f"sqlite:///{copy}"]) == 0
    assert main(["backup", str(copy), "--restore", "--store", again]) == 0
    told = []
    for url in (f"sqlite:///{copy}", again):
        capsys.readouterr()
        assert main(["report", "--format", "json", "--store", url]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert json.loads(told[0])["stop"]["reason"] == "interrupted"

    with CrawlProcess(
        lab.folder, lab.main / "p0", {**SETTINGS, "FRONTIER_STORE": again}
    ) as process:
        output = process.wait()
    resumed = Result(again, lab.server.log).assert_reconciled()
    assert resumed.coverage.run.state == "finished", output
    assert len(resumed.fates) == len(paths)
