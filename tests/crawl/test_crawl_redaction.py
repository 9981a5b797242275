"""A secret that stands in URLs is in the store, and in nothing that is shown of it."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from typing import Any

import pytest
from crawls import Follower, Lab

from scrapy_frontier.cli import main
from scrapy_frontier.commands.serving.pages import Pages
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import page, redirect, text

SECRET = "s3cr3t0wl"
SUBJECTS = ("transitions", "identities", "attempts", "edges", "references", "rejections")


def told(url: str) -> str:
    """The URL with the secret, as a parameter."""
    return f"{url}{'&' if '?' in url else '?'}page=1&access_token={SECRET}"


def tell(lab: Lab) -> list[str]:
    """A site with a secret in every kind of URL that ends in a way of its own; its seeds."""
    main = lab.main
    other = lab.server.origins.get("other") or lab.server.origin("other")
    links = [told(f"/{name}") for name in ("a", "gone", "down", "bad", "moved", "out", "private/x")]
    links += [f"/p;jsessionid={SECRET}/q", f"/a#id_token={SECRET}", f"/go?to=%2Fx%3Fsid%3D{SECRET}"]
    links += [f"http://u:{SECRET}@z.example/", f"ftp://z.example/?password={SECRET}"]
    links += [told(f"/many?n={number}") for number in range(6)]
    main.on("/", page("", links))
    main.on("/robots.txt", text("User-agent: *\nDisallow: /private/\n"))
    for name, status in (("gone", 410), ("down", 500)):
        main.on(told(f"/{name}"), text(name, status))
    main.on(told("/moved"), redirect(told("/a2")))
    main.on(told("/out"), redirect(told(f"{other.url}/landing")))
    main.otherwise = page("any", [told("/b")])
    other.otherwise = text("other")
    return [main / "", told(main / "seed"), f"http://z.example:99999/?token={SECRET}"]


class Motley(Follower):
    """Raises on one page, with the URL in what it says."""

    def parse(self, response: Any) -> Any:
        if "/bad?" in response.url:
            raise RuntimeError(f"a fault of the callback at {response.url}")
        yield from response.follow_all(css="a")


SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "RETRY_TIMES": 0,
    "FRONTIER_MAX_QUERIES_PER_PATH": 3,
    "FRONTIER_LINK_INVENTORY": True,
    "FRONTIER_REPORT_HTML": True,
    "FRONTIER_EVIDENCE": "headers",
}


def ask(lab: Lab, *words: str) -> str:
    """What a command writes, to both streams."""
    binary, errors = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(binary, "utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        main([*words, "--store", lab.store_url])
    return binary.getvalue().decode("utf-8", "replace") + errors.getvalue()


def asked(lab: Lab, *further: str) -> dict[str, str]:
    """What every command that speaks of URLs writes, in every form."""
    down = told(lab.main / "down")
    commands: list[tuple[str, ...]] = [
        ("report", "--format", form) for form in ("text", "json", "html")
    ]
    commands += [("top", "--once"), ("top", "--format", "json")]
    for form in ("text", "json"):
        commands += [(name, "--format", form) for name in ("families", "deadletters", "quarantine")]
        commands += [(name, "--format", form) for name in ("verify", "robots")]
        commands += [
            (name, url, "--format", form)
            for name in ("explain", "history", "robots")
            for url in (down, told(lab.main / "moved"), told(lab.main / "never"))
        ]
    for form in ("jsonl", "csv"):
        commands += [("export", subject, "--format", form) for subject in SUBJECTS]
    commands += [("requeue", down), ("release", told(lab.main / "many?n=5"))]
    return {" ".join(words): ask(lab, *words, *further) for words in commands}


async def crawl(lab: Lab, **settings: Any) -> Any:
    """One run of the site."""
    return (await lab.crawl(Motley, {**SETTINGS, **settings}, seeds=tell(lab))).assert_sound()


async def test_no_output_shows_a_secret(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """Not the files of the report, not the log, no command and no export."""
    with caplog.at_level(logging.DEBUG, "scrapy_frontier"):
        await crawl(lab)
    own = [one for one in caplog.records if one.name.startswith("scrapy_frontier")]
    formatter = logging.Formatter("%(message)s")
    assert [line for line in map(formatter.format, own) if SECRET in line] == []
    files = sorted((lab.folder / "reports").iterdir())
    assert {path.suffix for path in files} == {".json", ".txt", ".html"}
    assert [path.name for path in files if SECRET in path.read_text("utf-8")] == []
    outputs = asked(lab)
    assert [words for words, output in outputs.items() if SECRET in output] == []
    assert [words for words, output in outputs.items() if "Traceback" in output] == []
    with open_store(lab.store_url, read_only=True) as store:
        pages = Pages(store, None)
        assert SECRET not in pages.page() + pages.data() + pages.frame_text() + pages.frame_data()
    parquet = lab.folder / "rows.parquet"
    ask(lab, "export", "transitions", "--format", "parquet", "-o", str(parquet))
    import pyarrow.parquet

    assert SECRET not in str(pyarrow.parquet.read_table(parquet).to_pylist())


async def test_what_is_hidden_is_in_the_store_and_can_be_shown(lab: Lab) -> None:
    """`--no-redact` shows URLs whole, and so does a crawl that hides nothing."""
    await crawl(lab)
    whole = asked(lab, "--no-redact")
    for words in (
        "report --format json",
        "export identities --format jsonl",
        "deadletters --format text",
    ):
        assert SECRET in whole[words]
    await crawl(lab, FRONTIER_REDACT=[], FRONTIER_RUN="open")
    assert SECRET in ask(lab, "report", "--format", "json")
    assert SECRET not in ask(lab, "report", "--format", "json", "-s", "FRONTIER_REDACT=default")


async def test_rows_stay_what_they_are(lab: Lab) -> None:
    """As many different URLs and keys as without redaction; the report of close is that of the command."""
    await crawl(lab)

    def rows(*further: str) -> list[dict[str, Any]]:
        lines = ask(lab, "export", "identities", *further).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    shown, whole = rows(), rows("--no-redact")
    for name in ("url", "key"):
        assert len({row[name] for row in shown}) == len({row[name] for row in whole})
    for one, other in zip(shown, whole, strict=True):
        assert (one["key"] != other["key"]) == (one["url"] != other["url"])
        assert len(one["key"]) == len(other["key"])
    told_at_close = json.loads(next((lab.folder / "reports").glob("*.json")).read_text("utf-8"))
    told_now = json.loads(ask(lab, "report", "--format", "json"))
    assert {letter["url"] for letter in told_now["deadletters"]} == {
        letter["url"] for letter in told_at_close["deadletters"]
    }


async def test_commands_outside_the_project_hide_what_the_crawl_hid(lab: Lab) -> None:
    """The rule of the latest crawl stands in the store; one that is given says otherwise."""
    await crawl(lab, FRONTIER_REDACT=["n"])
    report = ask(lab, "export", "identities")
    assert "n=~" in report
    assert SECRET in report
    assert "n=5" in ask(lab, "export", "identities", "-s", "FRONTIER_REDACT=default")


@pytest.mark.parametrize("command", ["explain", "history", "release", "requeue"])
async def test_a_url_that_was_copied_from_a_report_is_explained(lab: Lab, command: str) -> None:
    """It is no URL that the run knows: the answer says what to give instead."""
    lab.main.on("/", page("", ["/a?token=1"]))
    await lab.crawl(Follower, seeds=[lab.main / ""])
    listed = json.loads(ask(lab, "export", "identities").splitlines()[1])
    assert "stands for a value that is hidden" in ask(lab, command, listed["url"])
    assert "is hidden" not in ask(lab, command, lab.main / "a?token=2")


@pytest.mark.parametrize("command", ["report", "runs"])
async def test_a_bad_rule_is_refused_by_name(lab: Lab, command: str) -> None:
    """By each command, as by a crawl."""
    await lab.crawl(Follower, seeds=[])
    answer = ask(lab, command, "-s", "FRONTIER_REDACT=a=b")
    assert (
        "FRONTIER_REDACT: 'a=b' is more than a name: write the name of a parameter alone" in answer
    )
