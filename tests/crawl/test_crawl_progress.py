"""Progress of a crawl: one live line at a terminal, lines in the log elsewhere."""

from __future__ import annotations

import io
import logging
import re
import sys
from typing import Any

import pytest
from crawls import Follower, Lab
from processes import CrawlProcess, make_web
from terminals import AtTerminal

from scrapy_frontier.extensions.terminal import Above, LiveLine, fit
from scrapy_frontier.report.situation import Pace, Situation, Spent, parts

SPIDER = """
import logging
import scrapy


class Follower(scrapy.Spider):
    name = "follower"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [seed]

    def parse(self, response):
        print("printed", response.url.rpartition("/")[2])
        logging.getLogger("mine").info("logged once\\nlogged twice")
        yield {"item": response.url.rpartition("/")[2]}
        yield from response.follow_all(css="a")
"""

QUIET = "\n".join(line for line in SPIDER.splitlines() if "print(" not in line)
"""It writes to no stream, which would raise once the terminal has gone."""

SLOW = {
    "DOWNLOAD_DELAY": 0.2,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "FRONTIER_HEALTH": False,
    "FRONTIER_RUN": "test",
    "FRONTIER_MAX_DURATION": 3600,
    "FRONTIER_MAX_URLS": 50,
}

LINE = re.compile(r"^follower \d+\.\d/s \| \d+ in flight \| ")


def command(lab: Lab, settings: dict[str, Any], spider: str = SPIDER) -> list[str]:
    """What crawls the lab's web."""
    script = lab.folder / "spider.py"
    script.write_text(spider)
    given = {
        "ADDONS": '{"scrapy_frontier.Addon": 500}',
        "FRONTIER_STORE": lab.store_url,
        "TELNETCONSOLE_ENABLED": False,
        **SLOW,
        **settings,
    }
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    seed = ["-a", f"seed={lab.main / 'p0'}"]
    return [sys.executable, "-m", "scrapy", "runspider", str(script), *seed, *options]


@pytest.mark.slow
def test_a_terminal_shows_one_line_below_the_log(lab: Lab) -> None:
    """The line changes in place, log and prints stand above it whole, and nothing of it is left at the end."""
    make_web(lab.main, 9)
    program = AtTerminal([*command(lab, {}), "-o", "-:jsonl"], lab.folder)
    try:
        assert not program.read_until()
        assert program.process.returncode == 0, program.written
    finally:
        program.close()
    lines = [line for line in program.screen.shown if LINE.match(line)]
    assert len(set(lines)) > 1
    assert any("59 min 5" in line and "of the URLs" in line for line in lines)
    assert any(re.search(r"\d+ queued", line) for line in lines)
    assert all(len(line) < 120 for line in lines)
    rows = program.screen.text
    assert [row for row in rows if "/s | " in row] == []
    assert rows.count("logged twice") == 9
    assert sum(row.endswith("INFO: logged once") for row in rows) == 9
    assert sorted(row for row in rows if row.startswith("printed p")) == sorted(
        f"printed p{number}" for number in range(9)
    )
    assert sum(row.startswith('{"item": "p') and row.endswith('"}') for row in rows) == 9
    assert "Progress:" not in program.written


@pytest.mark.slow
def test_long_commands_show_how_far_they_are(lab: Lab) -> None:
    """At a terminal on standard error, which is left clean; what they answer is whole."""
    make_web(lab.main, 3)
    with CrawlProcess(lab, lab.main / "p0", {}) as process:
        process.wait()
    program = "import sys; from scrapy_frontier.cli import main; sys.exit(main())"
    for words, step in (
        (["report"], "Adding up the account: "),
        (["verify"], "Reading table transition"),
        (["backup", "copy.db"], "Copying"),
        (["export", "edges", "-o", "edges.jsonl"], ":"),
    ):
        command = [sys.executable, "-c", program, *words, "--store", lab.store_url]
        shown = AtTerminal(command, lab.folder)
        try:
            assert not shown.read_until()
            assert shown.process.returncode == 0, shown.written
        finally:
            shown.close()
        assert any(step in row for row in shown.screen.shown), (words, shown.screen.shown)
        assert not any(row.startswith(step) for row in shown.screen.text)


@pytest.mark.slow
def test_a_terminal_that_goes_away_ends_no_crawl(lab: Lab) -> None:
    """The line is dropped; what the crawl has to do it does."""
    paths = make_web(lab.main, 9)
    given = {"LOG_FILE": "crawl.log", "FRONTIER_PROGRESS_INTERVAL": 1}
    program = AtTerminal(command(lab, given, QUIET), lab.folder)
    try:
        assert program.read_until("in flight")
        program.hang_up()
        program.process.wait(30)
    finally:
        program.close()
    log = (lab.folder / "crawl.log").read_text()
    assert "Spider closed (finished)" in log
    assert "Unhandled" not in log
    assert len(lab.server.log.hits_by_url()) == len(paths)
    # The log is a file: who reads it does not see the terminal.
    assert "Progress: " in log


@pytest.mark.slow
def test_elsewhere_the_log_has_a_line_now_and_then(lab: Lab) -> None:
    """One line each interval, and nothing that moves."""
    make_web(lab.main, 9)
    with CrawlProcess(lab, lab.main / "p0", {**SLOW, "FRONTIER_PROGRESS_INTERVAL": 1}, SPIDER) as p:
        log = p.wait()
    lines = [line for line in log.splitlines() if "Progress: " in line]
    assert 1 <= len(lines) <= 5
    assert re.search(
        r"INFO: Progress: \d+\.\d responses/s, \d+ in flight, \d+ queued, 59 min 5", lines[0]
    )
    assert "\r" not in log


@pytest.mark.parametrize(("interval_s", "count"), [(0, 0), (0.5, 1)])
async def test_progress_has_an_action_and_can_be_switched_off(
    lab: Lab, caplog: pytest.LogCaptureFixture, interval_s: float, count: int
) -> None:
    """0 means no line; each line can be found by its action."""
    make_web(lab.main, 8)
    lab.settings["FRONTIER_PROGRESS_INTERVAL"] = interval_s
    lab.settings["DOWNLOAD_DELAY"] = 0.2
    caplog.set_level(logging.INFO)
    crawl = await lab.crawl(Follower, seeds=[lab.main / "p0"])
    crawl.assert_exhausted()
    found = [r for r in caplog.records if getattr(r, "action", "") == "progress"]
    assert bool(found) == bool(count)
    assert crawl.stats["frontier/answered"] == crawl.coverage.attempts.total


SITUATION = Situation(
    at_ms=1_000_000,
    answered=1234,
    failed=2,
    rate=12.34,
    in_flight=8,
    scheduled=1200,
    timed=34,
    held_back=0,
    await_robots=5,
    closed=0,
    gates={"open": 3, "backoff": 2},
    cold=7,
    budgets=(Spent("budget.urls", 400, 1000), Spent("budget.bytes", 5, 10)),
    ends_ms=1_720_000,
    lag_s=2.5,
)


def test_the_words_of_a_situation() -> None:
    """The rate first, what waits by its reason, trouble, and what is left of time and budgets."""
    assert parts(SITUATION, 1_000_000) == [
        "12.3 responses/s",
        "8 in flight",
        "1,200 queued",
        "34 timed",
        "5 for robots.txt",
        "2 origins backing off",
        "store 2.5 s behind",
        "12 min 0 s left",
        "40.0 % of the URLs",
        "50.0 % of the bytes",
        "12 origins with work",
        "1,234 responses",
    ]


def test_a_situation_survives_its_way_through_the_store() -> None:
    """What is read is what was written; what is none is refused by name."""
    assert Situation.from_text(SITUATION.to_text()) == SITUATION
    for wrong in ("{}", "[]", '{"budgets": [], "x": 1}', "nonsense"):
        with pytest.raises(ValueError, match=r"not a situation|Expecting"):
            Situation.from_text(wrong)


def test_parts_that_do_not_fit_are_left_out_whole() -> None:
    """A narrow terminal shows the first ones; wide characters count twice; never the last column."""
    assert fit(["a 1/s", "2 in flight", "3 queued"], 20) == "a 1/s | 2 in flight"
    assert fit(["a 1/s", "2 in flight"], 19) == "a 1/s"
    assert fit(["蜘蛛 1/s", "2"], 12) == "蜘蛛 1/s"
    assert fit(["a very long name"], 6) == "a ver"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    """Not of all the crawl."""
    pace = Pace()
    assert pace.rate(0.0, 5) == 0.0
    assert pace.rate(1.0, 15) == 10.0
    assert pace.rate(20.0, 15) == 0.0
    assert pace.rate(21.0, 35) == pytest.approx(20 / 20)
    assert pace.rate(31.0, 35) == 0.0


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self) -> bool:
        return True


def test_two_crawls_of_a_process_share_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The streams are given back when the last line has gone, and a prompt without an end of line is seen."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    first, second = LiveLine(sys.stderr), LiveLine(sys.stderr)
    first.show(["one"])
    second.show(["two"])
    assert isinstance(sys.stdout, Above)
    first.close()
    print("a line", end="")
    assert "a line" not in terminal.getvalue()
    print(" and its end")
    assert "a line and its end\n" in terminal.getvalue()
    print("(Pdb) ", end="", flush=True)
    assert terminal.getvalue().endswith("(Pdb) ")
    second.close()
    assert sys.stderr is terminal
    assert sys.stdout is terminal
