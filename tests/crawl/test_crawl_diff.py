"""`frontier diff`: a site changes between two crawls, and each change is told by its kind, with its reason."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from typing import Any

import pytest
from crawls import Follower, Lab, on_both_stores

from scrapy_frontier.cli import main
from scrapy_frontier.report.diff import Side, differences
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Answer, Origin, page, redirect, text

WORDS = "The harbour was quiet, and the boats lay side by side until the evening came. " * 8


def article(stamp: str) -> Answer:
    """The same main text, in other bytes."""
    body = f"<html><head><meta name=nonce content={stamp}></head><body><p>{WORDS}</p></body></html>"
    return Answer(body.encode(), headers=(("Content-Type", "text/html"),))


def before(site: Origin) -> None:
    """The site at the first crawl."""
    names = ("same", "left", "gone", "other", "nonce", "moved", "led", "back", "fails", "mended")
    site.on("/", page("", [*names, "shut", "open/a", "private/a"]))
    for name in ("same", "left", "gone", "other", "moved", "fails", "shut"):
        site.on(f"/{name}", text(name))
    site.on("/nonce", article("1"))
    site.on("/led", redirect("/same"))
    site.on("/back", redirect("/same"))
    site.on("/mended", text("down", 500))
    site.otherwise = text("any")


def after(site: Origin) -> None:
    """The site at the second one."""
    names = ("same", "gone", "other", "nonce", "moved", "led", "back", "fails", "mended", "fresh")
    site.on("/", page("", [*names, "shut", "open/a", "private/a"]))
    site.on("/gone", text("gone", 410))
    site.on("/other", text("something else"))
    site.on("/nonce", article("2"))
    site.on("/moved", redirect("/same"))
    site.on("/led", redirect("/other"))
    site.on("/back", text("an answer"))
    site.on("/fails", text("down", 503))
    site.on("/mended", text("up"))


FIRST = {"FRONTIER_SCOPE": {"exclude": ["*/open"]}, "FRONTIER_RUN": "first", "RETRY_ENABLED": False}
SECOND = {**FIRST, "FRONTIER_SCOPE": {"exclude": ["*/shut"]}, "FRONTIER_RUN": "second"}

EXPECTED = {
    "/": "changed",
    "/left": "gone",
    "/gone": "gone",
    "/other": "changed",
    "/nonce": "changed",
    "/moved": "moved",
    "/led": "moved",
    "/back": "moved",
    "/fails": "failing",
    "/mended": "recovered",
    "/fresh": "new",
    "/shut": "suppressed",
    "/open/a": "allowed",
}


async def crawl_twice(lab: Lab, **settings: Any) -> None:
    """Two runs of one store, with the change between them."""
    before(lab.main)
    (await lab.crawl(Follower, FIRST, seeds=[lab.main / ""])).assert_sound()
    after(lab.main)
    (await lab.crawl(Follower, {**SECOND, **settings}, seeds=[lab.main / ""])).assert_sound()


def ask(lab: Lab, *words: str) -> tuple[int, str, str]:
    """Exit status, and both streams."""
    out, errors = io.StringIO(newline=""), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(["diff", *words, "--store", lab.store_url])
    return status, out.getvalue(), errors.getvalue()


def data(lab: Lab, *words: str) -> dict[str, Any]:
    """The answer as JSON."""
    found: dict[str, Any] = json.loads(ask(lab, *words, "--format", "json")[1])
    return found


@on_both_stores
async def test_each_change_is_told_by_its_kind(lab: Lab) -> None:
    """New, gone, changed, moved, failing, recovered, allowed and suppressed, each with what was and what is."""
    await crawl_twice(lab)
    status, _, _ = ask(lab, "first", "second")
    assert status == 1
    told = data(lab, "first", "second")
    base = lab.main.url
    found = {one["url"].removeprefix(base): one for one in told["differences"]}
    assert {path: one["kind"] for path, one in found.items()} == EXPECTED
    assert sum(told["counts"].values()) == len(EXPECTED)
    assert [found[path]["same_text"] for path in ("/nonce", "/moved")] == [True, None]
    assert told["same_text"] == 1
    assert found["/fails"]["now"]["reason"] == "http.503"
    assert found["/gone"]["now"]["reason"] == "http.410"
    assert found["/shut"]["now"]["reason"] == found["/open/a"]["was"]["reason"] == "scope.path"
    assert [found["/led"][side]["target"] for side in ("was", "now")] == [
        f"{base}/same",
        f"{base}/other",
    ]
    assert found["/left"]["now"] is None
    assert found["/fresh"]["was"] is None
    assert "different policies" in told["notes"][0]


async def test_the_forms_tell_the_same(lab: Lab) -> None:
    """Text counts each kind and lists the first, CSV has a row for each, and the way back is the mirror."""
    await crawl_twice(lab)
    _, text_form, _ = ask(lab, "first", "second", "--limit", "1")
    assert "changed: 3 URLs, 1 with the same main text" in text_form
    assert "... and 2 more: --limit, or --format csv" in text_form
    assert "13 differences: 1 new, 2 gone, 3 changed, 3 moved" in text_form
    rows = list(csv.DictReader(io.StringIO(ask(lab, "first", "second", "--format", "csv")[1])))
    assert {row["url"].removeprefix(lab.main.url): row["kind"] for row in rows} == EXPECTED
    back = data(lab, "second", "first")["counts"]
    kinds = ("new", "failing", "recovered", "allowed", "suppressed")
    assert [back[kind] for kind in kinds] == [1, 1, 2, 1, 1]


async def test_a_run_is_not_different_from_itself(lab: Lab) -> None:
    """Exit status 0; what is not there is trouble, 2, not a difference."""
    await crawl_twice(lab)
    assert ask(lab, "first", "first")[:2] == (
        0,
        "From run 1 (first) to run 1 (first)\nNo difference.\n",
    )
    assert data(lab, "first", "first")["differences"] == []
    status, _, said = ask(lab, "first", "third")
    assert (status, "no run 'third' in this store" in said) == (2, True)
    assert ask(lab, "first", "second", "--run", "first")[0] == 2


async def test_pages_of_any_size_tell_the_same(lab: Lab) -> None:
    """The merge holds a page of each run: where pages end changes nothing."""
    await crawl_twice(lab)
    with open_store(lab.store_url, read_only=True) as store:
        sides = Side(store, 1), Side(store, 2)
        whole = list(differences(*sides))
        for size in (1, 2, 3, 7):
            assert list(differences(*sides, page=size)) == whole
    assert len(whole) == len(EXPECTED)


async def test_runs_of_two_stores_are_compared(lab: Lab) -> None:
    """By their fetch keys, which are the same in every store."""
    other = f"sqlite:///{lab.folder / 'other.db'}"
    await crawl_twice(lab, FRONTIER_STORE=other)
    told = data(lab, "first", "second", "--other-store", other)
    found = {one["url"].removeprefix(lab.main.url): one["kind"] for one in told["differences"]}
    assert found == EXPECTED


async def test_what_is_not_finished_is_said(lab: Lab) -> None:
    """A run that was stopped has not found all: the answer says so, and tells what is open as open."""
    before(lab.main)
    await lab.crawl(Follower, FIRST, seeds=[lab.main / ""])
    stopping = {**FIRST, "FRONTIER_RUN": "second", "CLOSESPIDER_PAGECOUNT": 3}
    await lab.crawl(Follower, {**stopping, "CONCURRENT_REQUESTS": 1}, seeds=[lab.main / ""])
    told = data(lab, "first", "second")
    assert "Run 2 is not finished" in told["notes"][0]
    assert set(told["counts"]) == {"open"}


@pytest.mark.parametrize("form", ["text", "json", "csv"])
async def test_secrets_are_not_shown(lab: Lab, form: str) -> None:
    """Values that are hidden elsewhere are hidden here, and tell two URLs apart all the same."""
    lab.main.on("/", page("", ["/a?token=s3cr3t", "/a?token=0ther"]))
    for name in ("first", "second"):
        lab.main.otherwise = text(name)
        await lab.crawl(Follower, {"FRONTIER_RUN": name}, seeds=[lab.main / ""])
    _, shown, _ = ask(lab, "first", "second", "--format", form)
    assert "s3cr3t" not in shown
    assert shown.count("token=~") == 2
    assert "s3cr3t" in ask(lab, "first", "second", "--no-redact", "--format", form)[1]
