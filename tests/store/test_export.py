"""An export speaks of one moment, in every format, and holds nobody up."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_ledger import Ledger, crawl
from sqlalchemy import text

from scrapy_frontier.cli import main
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.exports import formats, parquet
from scrapy_frontier.report.exports.export import Export
from scrapy_frontier.report.exports.subjects import SUBJECTS
from scrapy_frontier.states import State
from scrapy_frontier.store.messages import Lease, Source


@pytest.fixture
def ledger(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A store with one run in which everything has happened."""
    monkeypatch.chdir(tmp_path)
    made = Ledger(store_url)
    crawl(made)
    yield made
    made.store.close()


def rows_of(export: Export) -> list[dict[str, Any]]:
    names = [column.name for column in export.columns]
    return [dict(zip(names, row, strict=True)) for rows in export.pages() for row in rows]


def begin(ledger: Ledger, subject: str) -> Export:
    return Export.begin(ledger.store, SUBJECTS[subject], ledger.run_id)


def in_format(ledger: Ledger, subject: str, name: str) -> bytes:
    file = io.BytesIO()
    count = formats.FORMATS[name].write(begin(ledger, subject), file)
    assert count == sum(len(rows) for rows in begin(ledger, subject).pages())
    return file.getvalue()


def standing(ledger: Ledger) -> dict[int, tuple[str, int]]:
    """Where the projection says that identities of the run stand now."""
    query = f"SELECT identity_id, state, last_seq FROM current WHERE run_id = {ledger.run_id}"
    with ledger.read() as connection:
        return {row[0]: (State(row[1]).label, row[2]) for row in connection.execute(text(query))}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["refer", "dispatch", "respond", "process", "retry", "fail", "visit"]),
        st.integers(0, 4),
    ),
    max_size=30,
)


def walk(ledger: Ledger, leases: dict[int, Lease], steps: list[tuple[str, int]]) -> None:
    for step, number in steps:
        lease = leases.get(number)
        if step in ("refer", "visit"):
            page = Source(lease.identity_id, lease.attempt_id) if lease else Source()
            ledger.refer(f"http://a.example/{number}", page=page, is_visit=step == "visit")
        elif step == "dispatch":
            leases[number] = ledger.dispatch(ledger.refer(f"http://a.example/{number}"))
        elif lease is None or not lease.generation:
            continue
        elif step == "respond":
            ledger.respond(lease)
        elif step == "process":
            ledger.process(leases.pop(number))
        elif step == "retry":
            ledger.retry(lease)
        else:
            ledger.give_up(lease)


@settings(max_examples=40, deadline=None)
@given(STEPS, STEPS)
def test_what_comes_after_the_moment_is_not_in_it(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    """Whatever a crawl does while the pages are read, they say what they would have said at once."""
    ledger = Ledger()
    leases: dict[int, Lease] = {}
    try:
        walk(ledger, leases, before)
        at_once = {name: rows_of(begin(ledger, name)) for name in SUBJECTS}
        expected = standing(ledger)
        exports = {name: begin(ledger, name) for name in SUBJECTS}
        walk(ledger, leases, after)
        assert {name: rows_of(export) for name, export in exports.items()} == at_once
        found = {row["identity"]: (row["state"], row["last_seq"]) for row in at_once["identities"]}
        assert found == expected
    finally:
        ledger.store.close()


def test_an_attempt_has_brought_what_was_on_record_at_the_moment(ledger: Ledger) -> None:
    """Under way: nothing yet. Fetched: its response, and nothing of what its page made of it."""
    lease = ledger.dispatch(ledger.refer("http://a.example/slow"))
    under_way, expected = begin(ledger, "attempts"), rows_of(begin(ledger, "attempts"))
    assert expected[-1]["attempt"] == lease.attempt_id
    assert [expected[-1][name] for name in ("finished_at", "status", "outcome")] == [None] * 3
    ledger.respond(lease, 200)
    fetched, answered = begin(ledger, "attempts"), rows_of(begin(ledger, "attempts"))
    assert (answered[-1]["status"], answered[-1]["outcome"]) == (200, "http.200")
    ledger.process(lease)
    assert rows_of(under_way) == expected
    assert rows_of(fetched) == answered


def test_transitions_carry_what_the_design_names(ledger: Ledger) -> None:
    """Run, key, attempt, move, time, policy version, reason with its inputs, worker, generation."""
    rows = rows_of(begin(ledger, "transitions"))
    last = rows[-1]
    assert (last["event"], last["from"], last["to"]) == ("give_up", "fetching", "terminal")
    assert (last["disposition"], last["reason"]) == ("failed", "download.timeout")
    assert json.loads(last["detail"]) == {"times": 2}
    assert (last["worker"], last["policy_version"]) == ("host:101", "p1digest")
    assert last["generation"] >> 32 == last["session"] == 1
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)


def test_edges_and_rejections_say_who_referred_to_what(ledger: Ledger) -> None:
    """Every reference of a page, duplicates too, and those that a rule refused."""
    home = [
        (row["source_url"], row["target_url"])
        for row in rows_of(begin(ledger, "edges"))
        if row["source_url"] == "http://a.example/"
    ]
    assert home.count(("http://a.example/", "http://a.example/moved")) == 3
    assert ("http://a.example/", "http://b.example/") in home
    refused = rows_of(begin(ledger, "rejections"))
    assert [(row["rule"], row["observed"]) for row in refused] == [
        ("scheme.unsupported", "mailto:x@y"),
        ("scheme.unsupported", "tel:1"),
    ]


def test_references_are_told_as_their_page_spelled_them(ledger: Ledger) -> None:
    """Also with a spelling that UTF-8 cannot carry."""
    page = ledger.fetch(ledger.seed("http://a.example/again"))
    ledger.emit(page, observations=((1, '["/#\\ud800",1,"\\ud800","a","","Home"]'),))
    (row,) = [json.loads(line) for line in in_format(ledger, "references", "jsonl").splitlines()]
    assert (row["observed"], row["tag"], row["text"]) == ("/#\ud800", "a", "Home")
    assert (row["source_url"], row["target_url"]) == ("http://a.example/again", "http://a.example/")
    assert b"\\ud800" in in_format(ledger, "references", "csv")
    assert in_format(ledger, "references", "parquet")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_format_says_the_same(ledger: Ledger, subject: str) -> None:
    """JSON Lines, CSV and Parquet hold the same rows in the same order."""
    import pyarrow.parquet

    lines = [json.loads(line) for line in in_format(ledger, subject, "jsonl").splitlines()]
    comma = list(csv.DictReader(io.StringIO(in_format(ledger, subject, "csv").decode())))
    table = pyarrow.parquet.read_table(io.BytesIO(in_format(ledger, subject, "parquet")))
    assert list(table.column_names) == [column.name for column in SUBJECTS[subject].columns]
    assert table.schema.metadata[b"scrapy_frontier.subject"] == subject.encode()
    assert len(lines) == len(comma) == table.num_rows
    id_name = SUBJECTS[subject].columns[0].name
    numbers = [row[id_name] for row in lines]
    assert numbers == [int(row[id_name]) for row in comma] == table[id_name].to_pylist()
    for row in comma:
        assert None not in row.values()


def test_a_run_is_exported_without_its_neighbours(ledger: Ledger) -> None:
    """Pages go by ids of all runs, and only rows of the one that was asked for come out."""
    first = {name: rows_of(begin(ledger, name)) for name in SUBJECTS}
    run_id = ledger.run_id
    ledger.begin("second")
    crawl(ledger)
    for name, rows in first.items():
        assert rows_of(Export.begin(ledger.store, SUBJECTS[name], run_id)) == rows
        assert {row["run"] for row in rows_of(begin(ledger, name))} <= {ledger.run_id}


def test_no_page_holds_the_checkpoint_back(ledger: Ledger) -> None:
    """Between two pages the write-ahead log can be taken in and emptied."""
    with ledger.store.writer_connection().begin():
        ledger.store.writer_connection().exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
            " INSERT INTO rejection SELECT i, 1, 0, 2, 1, 'mailto:' || i FROM n"
        )
    pages = begin(ledger, "rejections").pages()
    assert len(next(pages)) == SUBJECTS["rejections"].page
    ledger.seed("http://a.example/meanwhile")
    held_up, frames, _ = ledger.store.checkpoint("TRUNCATE")
    assert (held_up, max(frames, 0)) == (0, 0)
    assert sum(map(len, pages)) > 0


def run(*arguments: str) -> int:
    return main(["export", *arguments])


def test_the_command_writes_a_file_whole_or_not_at_all(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is there is left alone unless its end is asked for; the moment is told."""
    store, output = ["--store", ledger.url], tmp_path / "rows.jsonl"
    output.write_text("mine")
    assert run("identities", "-o", str(output), *store) == 2
    assert "is there already; name another file, or say --overwrite" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert run("identities", "-o", str(output), "--overwrite", *store) == 0
    assert "5 rows of identities of run 1 as of seq" in capsys.readouterr().err
    assert len(output.read_text().splitlines()) == 5
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_the_command_writes_to_standard_output(
    ledger: Ledger, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Rows alone; what is said besides goes to standard error."""
    assert run("transitions", "--store", ledger.url) == 0
    out, _ = capfdbinary.readouterr()
    assert out == in_format(ledger, "transitions", "jsonl")
    assert run("attempts", "--format", "csv", "--store", ledger.url) == 0
    assert capfdbinary.readouterr()[0] == in_format(ledger, "attempts", "csv")


def test_parquet_needs_a_file_and_its_library(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are told before anything is written."""
    assert run("edges", "--format", "parquet", "--store", ledger.url) == 2
    assert "cannot be written to a pipe: name an --output" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install 'scrapy-frontier\[parquet\]'"):
        parquet.write(begin(ledger, "edges"), io.BytesIO())
