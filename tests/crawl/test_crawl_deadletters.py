"""Dead letters: listed with their history, and asked for once more, in the account."""

from __future__ import annotations

import json
from typing import Any

import pytest
from crawls import Follower, Lab

from scrapy_frontier.cli import main
from scrapy_frontier.testing import Answer, page

JOB = {"RETRY_TIMES": 1}


async def crawl(lab: Lab) -> Any:
    return await lab.crawl(Follower, JOB, seeds=[lab.main / ""])


def run(capsys: pytest.CaptureFixture[str], lab: Lab, *words: str) -> tuple[int, str]:
    status = main([*words, "--store", lab.store_url])
    return status, capsys.readouterr().out


@pytest.fixture
def site(lab: Lab) -> Lab:
    lab.main.on("/", page("home", ["/fine", "/busy", "/cut", "/gone", "/forbidden"]))
    lab.main.on("/fine", page("fine"))
    lab.main.on("/busy", Answer("", status=502))
    lab.main.on("/cut", Answer(fault="reset"))
    lab.main.on("/gone", Answer("", status=404))
    lab.main.on("/forbidden", Answer("", status=403))
    return lab


async def test_dead_letters_are_listed_and_filtered(
    site: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    result = await crawl(site)
    urls = [site.main / name for name in ("busy", "cut", "forbidden")]
    assert sorted(letter.url for letter in result.coverage.deadletters) == urls
    status, text = run(capsys, site, "deadletters")
    assert status == 0
    assert "exhausted" in text
    assert "3 dead letters of run 1" in text
    status, text = run(capsys, site, "deadletters", "--rule", "http.502", "--format", "json")
    (letter,) = json.loads(text)["deadletters"]
    assert (letter["url"], letter["attempts"]) == (site.main / "busy", 2)
    assert (letter["rule"], letter["why_not"]) == ("http.502", "exhausted")
    status, text = run(capsys, site, "deadletters", "--origin", "http://other.example")
    assert status == 1
    status, text = run(capsys, site, "deadletters", "--disposition", "failed", "--format", "json")
    assert [one["url"] for one in json.loads(text)["deadletters"]] == [site.main / "cut"]


async def test_dead_letters_of_a_family(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """The shape is the one that `frontier families` prints."""
    days = [f"/day/2026-01-{day:02}" for day in range(1, 5)]
    lab.main.on("/", page("home", [*days, "/other"]))
    lab.main.otherwise = Answer("", status=502)
    await crawl(lab)
    _, text = run(capsys, lab, "families", "--format", "json")
    shapes = {one["family"] for one in json.loads(text)["families"]}
    (shape,) = (one for one in shapes if one.startswith("/day/"))
    _, text = run(capsys, lab, "deadletters", "--family", shape, "--format", "json")
    assert {one["url"] for one in json.loads(text)["deadletters"]} == {lab.main / d for d in days}
    status, _ = run(capsys, lab, "deadletters", "--family", "/nothing/{number}")
    assert status == 1
    status, text = run(capsys, lab, "requeue", "--family", shape)
    assert (status, "4 URLs of run 1 are scheduled again" in text) == (0, True)


async def test_a_requeued_url_gets_all_its_attempts_anew(
    site: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """The new attempt is an event in the ledger by an operator; the run, finished before, goes on with it."""
    await crawl(site)
    status, text = run(capsys, site, "requeue", "--rule", "http.502")
    assert (status, "1 URLs of run 1 are scheduled again" in text) == (0, True)
    site.main.on("/busy", [Answer("", status=502), page("there")])
    result = await crawl(site)
    result.assert_finished()
    assert result.run_id == 1
    fate = result.fate(site.main / "busy")
    assert (fate.end, fate.attempts) == ("succeeded", 4)
    assert "revisit" in result.history(site.main / "busy")
    (detail,) = result.rows(
        "SELECT t.detail FROM transition AS t JOIN reason AS r USING (reason_id)"
        " WHERE r.code = 'operator.requeue'"
    )
    assert json.loads(detail[0]) == {"was": "http.502", "by_rule": "http.502"}
    assert result.log.hits_by_path()["/fine"] == 1


async def test_requeue_of_a_url_and_of_all(site: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    await crawl(site)
    status, _ = run(capsys, site, "requeue", site.main / "gone")
    assert status == 0
    status, text = run(capsys, site, "requeue", site.main / "gone")
    assert status == 1
    assert "it is scheduled" in text
    status, text = run(capsys, site, "requeue", "--all", "--format", "json")
    assert len(json.loads(text)["requeued"]) == 3
    status, _ = run(capsys, site, "requeue", "http://nowhere.example/")
    assert status == 1
    assert run(capsys, site, "requeue")[0] == 2
    assert run(capsys, site, "requeue", "--all", "--rule", "x")[0] == 2


async def test_requeue_is_refused_while_the_run_is_crawled(
    site: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[int, str]] = []

    class Asks(Follower):
        def parse(self, response: Any) -> Any:
            status = main(["requeue", "--all", "--store", site.store_url])
            seen.append((status, capsys.readouterr().err))
            return ()

    result = await site.crawl(Asks, JOB, seeds=[site.main / ""])
    result.assert_finished()
    ((status, said),) = seen
    assert status == 2
    assert "is being" in said
