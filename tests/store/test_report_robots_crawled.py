"""Robots.txt in the reports of a real crawl: which line decides, who waits, and what is no page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scrapy_frontier.cli import main
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report import Coverage, coverage, layout, render_long, render_short
from scrapy_frontier.report.explain import IdentityExplained, explain
from scrapy_frontier.report.stops import stop_sentence
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import Answer, ScriptedServer, page, redirect, text

AGENT = "ourbot/1.0 (+https://bot.example/)"
OURS = "User-agent: *\nDisallow: /cgi-bin/"
OBEY = {"ROBOTSTXT_OBEY": True, "USER_AGENT": AGENT}

SPIDER = """
import scrapy

class Follower(scrapy.Spider):
    name = "follower"

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [seed]

    def parse(self, response):
        yield from response.follow_all(css="a")
"""


@dataclass
class Crawled:
    """A store that a crawl has written, the origins it crawled, and its log."""

    url: str
    log: str
    a: str
    b: str
    c: str
    d: str

    @property
    def account(self) -> Coverage:
        """The account of the run."""
        with open_store(self.url, read_only=True) as store, store.reader() as connection:
            return coverage(connection, 1)

    def explained(self, url: str) -> IdentityExplained:
        """What `explain` says of a URL that has one identity."""
        with open_store(self.url, read_only=True) as store, store.reader() as connection:
            (one,) = explain(connection, 1, url, now_ms=int(time.time() * 1000)).identities
            return one


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A is crawled with rules, B never gives its robots.txt, C has none, D's lies at A."""
    folder = tmp_path_factory.mktemp("crawl")
    with ScriptedServer() as server:
        a, b, c, d = (server.origin(name, f"127.0.0.{n}") for n, name in enumerate("abcd", 1))
        a.on("/robots.txt", text("# ours\nUser-agent: *\nAllow: /\nDisallow: /private/\n"))
        links = ["/1", "/missing", "/private/x", "/private/y", "/cgi-bin/x"]
        a.on("/", page("", [*links, b / "x", b / "y", c / "z", d / "v", d / "w"]))
        a.on("/elsewhere", text("User-agent: *\nDisallow: /w\n"))
        b.on("/robots.txt", Answer(status=503))
        d.on("/robots.txt", redirect(a / "elsewhere"))
        a.on("/1", page(""))
        c.on("/z", page(""))
        d.on("/v", page(""))
        log = run_crawl(folder, a / "")
        yield Crawled(f"sqlite:///{folder}/store.db", log, a.url, b.url, c.url, d.url)


def run_crawl(folder: Path, seed: str) -> str:
    """Crawl in a process of its own; its log."""
    (folder / "spider.py").write_text(SPIDER)
    settings = {
        **OBEY,
        "ADDONS": '{"scrapy_frontier.Addon": 500}',
        "FRONTIER_STORE": f"sqlite:///{folder}/store.db",
        "FRONTIER_ROBOTS_MAX_TRIES": 2,
        "FRONTIER_ROBOTS_BACKOFF": 0.1,
        "FRONTIER_ROBOTS_RULES": OURS,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
    }
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-a", f"seed={seed}"]
    for name, value in settings.items():
        command += ["-s", f"{name}={value}"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr


def test_the_account_tells_each_origin_apart(crawled: Crawled) -> None:
    """What is in force, what it excludes, and who waits for one that cannot be had."""
    found = {one.origin: one for one in crawled.account.robots}

    a, b, c, d = (found[origin] for origin in (crawled.a, crawled.b, crawled.c, crawled.d))
    assert (a.state, a.reason, a.status) == ("rules", "fetched", 200)
    assert (a.excluded, a.suppressed, a.waiting, a.waived) == (2, 3, 0, 0)
    assert a.by_rule == {"robots.disallow": 2, "robots.operator": 1}
    assert (b.state, b.trouble, b.failures, b.is_closed) == ("disallow_all", "http.503", 2, True)
    assert (b.rule, b.waiting, b.suppressed) == ("robots.closed", 2, 0)
    assert (c.state, c.reason, c.suppressed) == ("allow_all", "http.404", 0)
    assert (d.rule, d.excluded, d.example) == ("robots.disallow", 1, f"{crawled.d}/w")
    assert crawled.account.robots[0].origin == crawled.b


def test_a_robots_txt_is_no_page_of_the_report(crawled: Crawled) -> None:
    """What the client reads are his URLs; how they come to the numbers of the account is said."""
    account = crawled.account
    summary = " ".join(render_long(account).partition("\nWhat became")[0].split())

    assert account.robots_txt.identities == 5
    assert account.identities.discovered == 16
    assert "Asked 11 references to 11 different URLs on 4 origins." in summary
    assert "Covered 4 of 7 admitted (57.1 %), in 5 attempts." in summary
    assert "Not covered 4 excluded by rules, 1 gone." in summary
    assert "Unresolved 2 scheduled. 2 URLs wait for a robots.txt that cannot be had." in summary
    assert (
        "Robots.txt 3 robots.txt fetched, 1 led to another URL, 1 could not be had, in 6 attempts."
        " They are left out above. The account has them too: 11 + 5 = 16 identities,"
        " 5 + 6 = 11 attempts, 11 + 6 = 17 references."
    ) in summary
    assert account.attempts.total == 11
    assert account.references.total == 17
    assert account.reconciled


def test_the_tables_leave_a_robots_txt_out_too(crawled: Crawled) -> None:
    """It is not "not covered", no redirect of the site's, and no URL of its origin."""
    told = render_long(crawled.account)
    uncovered = told.partition("Not covered, and why")[2].partition("\n\n")[0]
    assert "http.503" not in uncovered
    assert "robots.txt" not in uncovered
    assert re.search(r"  gone +http.404 +1  \S+/missing\n", uncovered)
    assert re.search(r"^  all +11 +100 %$", told, re.MULTILINE)
    assert re.search(rf"^  {crawled.b} +2 +2 +2 ", told, re.MULTILINE)
    assert "\nRedirects\n" not in told
    assert max(map(len, told.splitlines())) <= layout.WIDTH


def test_a_run_that_must_wait_does_not_call_itself_done(crawled: Crawled) -> None:
    """How many URLs stay, where, why, and that a resumed run tries again: in the report and in the log."""
    account = crawled.account
    assert (account.run.state, account.stop.reason) == ("stopped", "exhausted")
    sentence = (
        f"Nothing more could be done now: 2 URLs of {crawled.b} stay scheduled, for its robots.txt"
        " could not be had (http.503). A resumed run tries again."
    )
    assert stop_sentence(account) == sentence
    assert sentence in " ".join(render_long(account).split())
    assert sentence in crawled.log
    assert "11 found = 7 admitted + 4 excluded" in crawled.log
    assert "3 robots.txt fetched, 1 led to another URL, 1 could not be had" in crawled.log
    assert len(render_short(account).splitlines()) <= 12


def test_explain_names_the_line_and_the_copy(crawled: Crawled) -> None:
    """The line's number and text, the group, the digest of the copy, and when it was fetched."""
    sentence = crawled.explained(f"{crawled.a}/private/x").state_sentence
    found = {one.origin: one for one in crawled.account.robots}[crawled.a]
    fetched = (found.fetched_at or "")[:19].replace("T", " ")
    assert sentence == (
        'It is excluded by the rule robots.disallow: line 4 of robots.txt ("Disallow: /private/",'
        f" in the group for *) forbids it (the copy {(found.digest or '')[:16]},"
        f" fetched {fetched} UTC)."
    )


def test_explain_shows_the_operator_beside_the_protocol(crawled: Crawled) -> None:
    """Whose rule it was that excluded the URL, and what robots.txt said of it."""
    sentence = crawled.explained(f"{crawled.a}/cgi-bin/x").state_sentence
    assert sentence.startswith(
        "It is excluded by the rule robots.operator: line 2 of FRONTIER_ROBOTS_RULES"
        ' ("Disallow: /cgi-bin/") forbids it; line 3 of robots.txt ("Allow: /", in the group for *)'
        " allows it (the copy "
    )


def test_explain_says_what_a_url_waits_for(crawled: Crawled) -> None:
    """Why its robots.txt could not be had, and that a resumed run asks again."""
    sentence = crawled.explained(f"{crawled.b}/x").gate_sentence
    assert sentence.startswith(
        f"The run is stopped: the robots.txt of {crawled.b} could not be had (http.503,"
        " 2 tries in a row, since "
    )
    assert "Resumed, it asks again" in sentence
    assert "may send" in crawled.explained(f"{crawled.a}/1").gate_sentence


def test_the_command_rules_as_the_crawl_did(
    crawled: Crawled, capsys: pytest.CaptureFixture[str]
) -> None:
    """For every URL of the crawl: the same rule, and exit status 1 unless it may be fetched."""
    with open_store(crawled.url, read_only=True) as store, store.reader() as connection:
        found = connection.exec_driver_sql(
            "SELECT i.url, c.state, coalesce(r.code, '') FROM identity AS i"
            " JOIN current AS c USING (identity_id) LEFT JOIN reason AS r USING (reason_id)"
            f" WHERE i.kind <> {ReferenceKind.ROBOTS:d}"
        ).all()
    assert len(found) == 11
    for url, state, code in found:
        status = main(["robots", url, "--store", crawled.url, "--format", "json"])
        said = json.loads(capsys.readouterr().out)
        ruling = {9: "forbidden", 3: "waiting"}.get(state, "allowed")
        assert (said["ruling"], status) == (ruling, 0 if ruling == "allowed" else 1)
        if state == 9:
            assert said["rule"] == code
