"""`scrapy frontier` and `scrapy-frontier`: usage, exit status, and what they load."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.cmdline import execute

from scrapy_frontier.cli import main
from scrapy_frontier.store.opening import open_store

Command = Callable[[list[str]], int]


def scrapy_command(arguments: list[str]) -> int:
    """`scrapy frontier ...`; returns the exit status."""
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "frontier", *arguments])
    return int(ended.value.code or 0)


def script(arguments: list[str]) -> int:
    """`scrapy-frontier ...`; returns the exit status."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


both = pytest.mark.parametrize("command", [scrapy_command, script])


@pytest.fixture(autouse=True)
def _outside_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_scrapy_lists_the_command_without_loading_a_database() -> None:
    """Every `scrapy` command imports this one; it must cost nothing and need nothing."""
    code = (
        "import sys; from scrapy_frontier.commands import Command; Command();"
        " heavy = {'sqlalchemy', 'scrapy_frontier.store', 'scrapy_frontier.report'};"
        " sys.exit(1 if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@both
@pytest.mark.parametrize("before", [True, False])
def test_settings_are_taken_before_and_after_the_subcommand(
    command: Command, before: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`scrapy` takes its options in front, people write them at the end."""
    if before and command is script:
        pytest.skip("the script has no options in front of its subcommands")
    open_store(f"sqlite:///{tmp_path}/store.db", create=True).close()
    setting = ["-s", f"FRONTIER_STORE=sqlite:///{tmp_path}/store.db"]
    assert command([*setting, "runs"] if before else ["runs", *setting]) == 0
    assert capsys.readouterr() == ("No runs yet.\n", "")


@both
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["runs", "--nonsense"],
        ["runs", "extra"],
        ["explain"],
        ["runs", "-s", "no equals sign"],
        ["runs", "--format", "xml"],
    ],
)
def test_bad_usage_ends_with_status_2(
    command: Command, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The usage or the argument at fault is shown, and no traceback."""
    assert command(arguments) == 2
    out, err = capsys.readouterr()
    assert "usage" in (out + err).lower()
    assert "Traceback" not in err


@both
def test_help_names_every_subcommand_and_the_exit_status(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first thing that a new user reads."""
    assert command(["-h"]) == 0
    out = capsys.readouterr().out
    for name in ("runs", "report", "explain", "history", "robots", "verify", "doctor"):
        assert f"    {name} " in out
    assert "exit status: 0 fine, 1 the answer is no" in " ".join(out.lower().split())
    assert command(["explain", "-h"]) == 0
    assert "--run RUN" in capsys.readouterr().out
    assert command(["robots", "-h"]) == 0
    assert "1 the origin is unknown, or the URL may not be fetched" in " ".join(
        capsys.readouterr().out.split()
    )


@both
def test_the_default_store_is_the_one_that_a_crawl_would_write(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is none yet, the message says where it would be."""
    assert command(["runs"]) == 2
    assert ".scrapy/frontier.db" in capsys.readouterr().err


CONTACT = "ourbot/1.0 (+https://bot.example/)"
OBEYED = {"ROBOTSTXT_OBEY": "True", "USER_AGENT": CONTACT}


@both
@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({}, "ok", "obeyed, as ourbot (from USER_AGENT)"),
        ({"ROBOTSTXT_USER_AGENT": "other"}, "ok", "obeyed, as other (from ROBOTSTXT_USER_AGENT)"),
        ({"ROBOTSTXT_OBEY": "False"}, "warn", "no robots.txt is asked for"),
        (
            {"ROBOTSTXT_OBEY": "False", "FRONTIER_ROBOTS_RULES": "User-agent: *"},
            "warn",
            "FRONTIER_ROBOTS_RULES is not applied",
        ),
        ({"FRONTIER_ROBOTS_RULES": "Disallow: /x"}, "warn", "it forbids nothing"),
        ({"USER_AGENT": "our2bot (+https://bot.example/)"}, "warn", "is called 'our'"),
        ({"USER_AGENT": "our2bot"}, "warn", "is called 'our'"),
        ({"ROBOTSTXT_USER_AGENT": "007"}, "FAIL", "names no robot"),
    ],
)
def test_doctor_looks_at_robots_txt(
    command: Command,
    settings: dict[str, str],
    level: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whether it is obeyed, under which name, and whether rules of one's own do what they say."""
    given = [f"{name}={value}" for name, value in {**OBEYED, **settings}.items()]
    options = [part for setting in given for part in ("-s", setting)]
    assert command(["doctor", "--format", "json", *options]) == (1 if level == "FAIL" else 0)
    checks = [one for one in json.loads(capsys.readouterr().out) if one["name"] == "robots.txt"]
    assert [one["level"] for one in checks if words in one["text"]] == [level]
    assert not any("tells nobody how to reach you" in one["text"] for one in checks)


@pytest.mark.parametrize(
    ("agent", "level"),
    [
        (CONTACT, "ok"),
        ("ourbot (bot@bot.example)", "ok"),
        ("ourbot/1.0", "warn"),
        ("Scrapy/2.19.0 (+https://scrapy.org)", "warn"),
        ("ourbot@home", "warn"),
        ("", "warn"),
    ],
)
def test_doctor_asks_for_a_contact(
    agent: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever is crawled must be able to reach somebody: by a URL or by mail."""
    assert script(["doctor", "--format", "json", "-s", f"USER_AGENT={agent}"]) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert checks["USER_AGENT"]["level"] == level
    assert (checks["USER_AGENT"]["cure"] is None) == (level == "ok")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`scrapy-frontier ... | head` ends in silence."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "frontier", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({}, "ok", "use the frontier"),
        ({"SCHEDULER": "scrapy_redis.scheduler.Scheduler"}, "FAIL", "keeps the frontier out"),
        ({"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}, "warn", "is not used"),
        ({"FRONTIER_ENABLED": "False"}, "warn", "FRONTIER_ENABLED is False"),
        ({"ADDONS": "{}"}, "warn", "do not use the frontier"),
    ],
)
def test_doctor_tries_the_wiring(
    settings: dict[str, str], level: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What would keep a crawl from starting, or what it would warn of, is said before one is started."""
    given = {"ADDONS": '{"scrapy_frontier.Addon": 500}', **settings}
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    assert script(["doctor", "--format", "json", *options]) == (1 if level == "FAIL" else 0)
    found = [one for one in json.loads(capsys.readouterr().out) if one["name"] == "wiring"]
    assert level in {one["level"] for one in found}
    assert any(words in one["text"] for one in found)
