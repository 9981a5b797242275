"""Robots.txt in the reports: the records on hand, which line decides, who waits, and what is no page."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_ledger import START_MS, Ledger, account_of

from scrapy_frontier.cli import main
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.robots import (
    Hop,
    Judge,
    OperatorPolicy,
    RobotsFetch,
    RobotsPolicy,
    RobotsRecord,
    Rules,
    after_fetch,
    classify,
    dump,
)
from scrapy_frontier.report import layout, render_long
from scrapy_frontier.report.explain import explain
from scrapy_frontier.report.robots.answers import RecordAnswer, UrlAnswer
from scrapy_frontier.report.robots.records import entry_of, records_of
from scrapy_frontier.report.robots.render import render_record, render_records, render_url
from scrapy_frontier.report.robots.run_policy import RunPolicy
from scrapy_frontier.report.stops import stop_sentence
from scrapy_frontier.states import Event
from scrapy_frontier.store.messages import Reason, RobotsFetched, Tally, Verdict

AGENT = "ourbot/1.0 (+https://bot.example/)"
OURS = "User-agent: *\nDisallow: /cgi-bin/"
OBEY = {"ROBOTSTXT_OBEY": True, "USER_AGENT": AGENT}

NOW = 1_800_000_000.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
A = "http://a.example"
GOOD = RobotsFetch(200, b"User-agent: *\nCrawl-delay: 500\nDisallow: /p\n", etag='"1"')
GONE = RobotsFetch(404)
BAD = RobotsFetch(503)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A store on disk with one open run that obeys robots.txt."""
    monkeypatch.chdir(tmp_path)
    made = Ledger(tmp_path / "frontier.db")
    made.tamper("UPDATE policy SET text = :text", text=json.dumps(OBEY))
    yield made
    made.store.close()


def adopt(ledger: Ledger, **settings: Any) -> None:
    """Give the run another policy."""
    ledger.tamper("UPDATE policy SET text = :text", text=json.dumps({**OBEY, **settings}))


def learn(ledger: Ledger, *fetches: RobotsFetch, origin: str = A, at: float = NOW) -> RobotsRecord:
    """Take what came of a fetch, as a crawl does; several follow each other at once."""
    with ledger.read() as connection:
        record = records_of(connection, [origin]).get(origin, RobotsRecord(origin))
    policy = RobotsPolicy(jitter=0.0, max_tries=2)
    for fetch in fetches:
        outcome = classify(fetch, has_copy=record.has_copy)
        record = after_fetch(record, outcome, at, policy, random.Random(1))
        content = record.text or None
        ledger.send(RobotsFetched(origin, dump(record), record.digest, content, round(at * 1000)))
    return record


def answer(ledger: Ledger, origin: str = A, now: float = NOW) -> RecordAnswer:
    """The record of an origin."""
    with ledger.read() as connection:
        entry = entry_of(connection, origin)
        assert entry is not None
        return RecordAnswer.of(entry, RunPolicy.of(connection, ledger.run_id), now)


def policy_of(ledger: Ledger) -> RunPolicy:
    """How the run deals with robots.txt."""
    with ledger.read() as connection:
        return RunPolicy.of(connection, ledger.run_id)


def judged(ledger: Ledger, url: str, now: float = NOW) -> UrlAnswer:
    """What is said of a URL of A."""
    return UrlAnswer.of(url, answer(ledger, now=now), policy_of(ledger))


def test_the_table_has_a_line_for_each_origin(ledger: Ledger) -> None:
    """State, reason, age, expiry or the next try, failures, crawl-delay, size, digest."""
    record = learn(ledger, GOOD)
    learn(ledger, BAD, origin="http://b.example")
    learn(ledger, GONE, origin="http://c.example", at=NOW - 2 * DAY)
    learn(ledger, GOOD, BAD, origin="http://d.example")
    origins = [f"http://{name}.example" for name in "abcd"]

    told = render_records([answer(ledger, origin, NOW + 5) for origin in origins])

    rows = [re.split(r"\s{2,}", line.strip()) for line in told.splitlines()[1:]]
    digest = record.digest[:8]
    assert rows == [
        ["rules", "fetched", "5.0 s", "23 h", "0", "500 s", "44 B", digest, origins[0]],
        ["unreachable", "http.503", "5.0 s", "retry 10 s", "1", origins[1]],
        ["allows all", "http.404", "2 d", "expired", "0", origins[2]],
        ["old copy", "http.503", "5.0 s", "retry 10 s", "1", "500 s", "44 B", digest, origins[3]],
    ]


def test_an_origin_has_its_whole_record(ledger: Ledger) -> None:
    """Hops, trouble, validators, the agent and its group, what is kept of a Crawl-delay, the text."""
    adopt(ledger, ROBOTSTXT_USER_AGENT="other")
    hop = Hop(301, f"{A}/rules")
    learn(ledger, replace(GOOD, hops=(hop,)), BAD)

    told = render_record(answer(ledger, now=NOW + MINUTE), policy_of(ledger))

    for words in (
        "has rules (fetched): an old copy, which stands in for a newer one that cannot be had.",
        "Fetched 2027-01-15 08:00:00 UTC, 1 min 0 s ago.",
        "Expires 2027-01-16 08:00:00 UTC, in 23 h 59 min.",
        "http.503, 1 try in a row, since 2027-01-15 08:00:00 UTC.",
        "It may be asked for again at once.",
        f"301 to {hop.target}",
        'ETag: "1"',
        "other (from ROBOTSTXT_USER_AGENT of run 1): the group for * holds.",
        "Crawl-delay 500 s, line 2, of which 300 s are kept.",
        "\n\n   1  User-agent: *\n   2  Crawl-delay: 500\n   3  Disallow: /p\n",
    ):
        assert words in told


def test_a_long_text_is_cut_unless_it_is_wanted_whole(ledger: Ledger) -> None:
    """The note says how much is left out, and how it is had."""
    lines = ["User-agent: *", *(f"Disallow: /{n}{'x' * 200}" for n in range(150))]
    learn(ledger, RobotsFetch(200, "\n".join(lines).encode()))
    one, policy = answer(ledger), policy_of(ledger)
    told = render_record(one, policy)
    assert told.endswith("...  51 more lines: --full shows all of them.\n")
    assert max(map(len, told.splitlines())) <= layout.WIDTH
    assert render_record(one, policy, is_full=True).splitlines()[-1].split() == [
        "151",
        *lines[-1].split(),
    ]


def test_a_text_cannot_steer_the_terminal(ledger: Ledger) -> None:
    """What a server wrote is shown and not obeyed, in the text and in the line that decides."""
    learn(ledger, RobotsFetch(200, b"User-agent: *\nDisallow: /p # \x1b[2J\xff\n"))
    policy = policy_of(ledger)
    shown = render_record(answer(ledger), policy) + render_url(judged(ledger, f"{A}/p"), A, policy)
    assert "\x1b" not in shown
    assert shown.count("\\x1b[2J") == 2


def test_the_operator_stands_beside_the_protocol(ledger: Ledger) -> None:
    """Neither answer hides the other; what follows is the stricter one."""
    adopt(ledger, FRONTIER_ROBOTS_RULES="\nUser-agent: ourbot\nDisallow: /q\nDisallow: /p\n")
    learn(ledger, GOOD)
    both, own, none = (judged(ledger, f"{A}/{path}") for path in ("p", "q", "r"))
    assert (both.rule, both.protocol.rule, both.protocol.line) == (
        "robots.operator",
        "robots.disallow",
        3,
    )
    assert both.operator is not None
    assert (both.operator.line, both.operator.text) == (3, "Disallow: /p")
    assert (own.ruling, own.protocol.ruling) == ("forbidden", "allowed")
    assert (none.ruling, none.operator) == ("allowed", None)
    told = render_url(both, A, policy_of(ledger))
    assert 'robots.txt   forbidden by line 3 ("Disallow: /p", in the group for *)' in told
    assert 'forbidden by line 3 of FRONTIER_ROBOTS_RULES ("Disallow: /p")' in told


def test_a_run_that_does_not_obey_is_no_judge(ledger: Ledger) -> None:
    """What robots.txt says is shown, and that the run does not ask it, nor its own rules."""
    adopt(ledger, ROBOTSTXT_OBEY="False", FRONTIER_ROBOTS_RULES=OURS)
    learn(ledger, GOOD)
    said = judged(ledger, f"{A}/p")
    assert (said.ruling, said.rule, said.protocol.ruling) == (
        "allowed",
        "robots.waived",
        "forbidden",
    )
    assert "ROBOTSTXT_OBEY is off in run 1" in render_url(said, A, policy_of(ledger))
    ledger.seed(f"{A}/p")
    assert account_of(ledger).robots == ()


def test_an_expired_copy_still_says_something(ledger: Ledger) -> None:
    """The store of last week answers, and tells that it is of last week."""
    learn(ledger, GOOD, at=NOW - 7 * DAY)
    said = judged(ledger, f"{A}/p")
    assert (said.ruling, said.is_expired) == ("forbidden", True)
    assert "has expired, and a newer one may say otherwise" in " ".join(
        render_url(said, A, policy_of(ledger)).split()
    )


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE robots SET record = '{\"origin\": 5}'",
        "DELETE FROM robots_text",
        "UPDATE robots_text SET text = x'00'",
    ],
)
def test_a_record_that_cannot_be_read_is_no_end(ledger: Ledger, damage: str) -> None:
    """The others are told all the same, and so is the account; of this one that it is unreadable."""
    learn(ledger, GOOD)
    ledger.seed(f"{A}/p")
    ledger.tamper(damage)
    one, policy = answer(ledger), policy_of(ledger)
    assert "unreadable" in render_records([one])
    assert "State        unreadable: " in render_record(one, policy)
    assert judged(ledger, f"{A}/p").rule == "robots.pending"
    assert account_of(ledger).reconciled


# The command


@pytest.fixture
def ask(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `robots` on the ledger's store: exit status, output, errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["robots", *arguments, "--store", ledger.url])
        return status, *capsys.readouterr()

    return run


def test_nothing_on_record(ask: Any) -> None:
    """An empty list is fine; an origin or a URL that nothing is known of is the answer no."""
    assert ask() == (0, "No robots.txt on record.\n", "")
    assert ask("--format", "json")[1] == "[]\n"
    assert ask(A) == (1, f"No robots.txt of {A} in this store.\n", "")
    status, told, _ = ask(f"{A}/x")
    assert status == 1
    assert "So           it waits (robots.pending)." in told


@pytest.mark.parametrize("spelled", ["http://A.example:80", f"{A}/robots.txt", "a.example"])
def test_an_origin_may_be_spelled_in_several_ways(ask: Any, ledger: Ledger, spelled: str) -> None:
    """As an origin, by its robots.txt, or without its scheme where one record answers to it."""
    learn(ledger, GOOD, at=time.time())
    status, told, _ = ask(spelled)
    assert (status, told.splitlines()[0]) == (0, A)
    assert ask(f"{spelled}/p".replace("/robots.txt/p", "/p"))[0] == 1


def test_a_name_of_two_origins_is_bad_usage(ask: Any, ledger: Ledger) -> None:
    """Neither is silently preferred; and what has no robots.txt is no origin."""
    learn(ledger, GOOD)
    learn(ledger, GONE, origin="https://a.example")
    status, told, complaint = ask("a.example")
    assert (status, told) == (2, "")
    assert "may be https://a.example or http://a.example: name one" in complaint
    assert ask("ftp://a.example/")[0] == 2


def test_the_list_is_of_the_store_or_of_one_run(ask: Any, ledger: Ledger) -> None:
    """Records serve all runs; --run leaves those of its own origins."""
    learn(ledger, GOOD)
    learn(ledger, GONE, origin="http://b.example")
    ledger.seed(f"{A}/")
    assert [one["origin"] for one in json.loads(ask("--format", "json")[1])] == [
        A,
        "http://b.example",
    ]
    only = json.loads(ask("--format", "json", "--run", "nightly")[1])
    assert [one["origin"] for one in only] == [A]


def test_the_json_of_an_origin_has_its_text(ask: Any, ledger: Ledger) -> None:
    """Names that scripts rely on."""
    learn(ledger, GOOD, at=time.time())
    data = json.loads(ask(A, "--format", "json")[1])
    assert data["agent"]["token"] == "ourbot"
    assert (data["state"], data["reason"], data["status"], data["failures"]) == (
        "rules",
        "fetched",
        200,
        0,
    )
    assert (data["crawl_delay_s"], data["crawl_delay_line"], data["interval_floor_s"]) == (
        500.0,
        2,
        300.0,
    )
    assert data["lines"] == ["User-agent: *", "Crawl-delay: 500", "Disallow: /p"]
    assert data["is_in_force"] is True


# Gates and accounts


def waiting(ledger: Ledger, now: float, path: str = "p", *, is_live: bool = True) -> str:
    """The gate sentence of a URL of A."""
    with ledger.read() as connection:
        (one,) = explain(
            connection, ledger.run_id, f"{A}/{path}", now_ms=round(now * 1000), is_live=is_live
        ).identities
        return one.gate_sentence


def test_the_gate_of_a_living_run(ledger: Ledger) -> None:
    """Shut until it is read, or asked for again; closed for the run that has given up; else as ever."""
    at = START_MS / 1000 + DAY
    ledger.seed(f"{A}/p")
    assert "is shut until its robots.txt is read" in waiting(ledger, at)
    learn(ledger, BAD, at=at)
    assert waiting(ledger, at + 5) == (
        f"The gate of {A} is shut: its robots.txt cannot be had (http.503, 1 try in a row, since"
        " 2025-12-02 00:46:40 UTC); it is asked for again not before 2025-12-02 00:46:55 UTC"
        " (in 10 s)."
    )
    learn(ledger, BAD, at=at + 20)
    closed = waiting(ledger, at + 20)
    assert closed.startswith(f"The gate of {A} is closed for this run: its robots.txt could not")
    assert "2 tries in a row" in closed
    assert "A resumed run asks again not before 2025-12-02 00:47:30 UTC" in closed
    fetched = ledger.seed(f"{A}/done")
    ledger.fetch(fetched)
    ledger.finish()
    assert "robots.txt" not in waiting(ledger, at + 20, "done")
    learn(ledger, GOOD, at=at + 60)
    assert waiting(ledger, at + 60).startswith(f"The gate of {A} is open")
    assert "which expired 2025-12-03 00:47:40 UTC, is asked for again" in waiting(
        ledger, at + 2 * DAY
    )


def test_a_resumed_run_has_not_given_up(ledger: Ledger) -> None:
    """What an earlier session closed is tried again by the next one."""
    ledger.seed(f"{A}/p")
    learn(ledger, BAD, BAD, at=START_MS / 1000 + MINUTE)
    assert "is closed for this run" in waiting(ledger, NOW)
    ledger.tamper("UPDATE session SET started_ms = :at", at=START_MS + round(HOUR * 1000))
    sentence = waiting(ledger, NOW)
    assert "is closed" not in sentence
    assert sentence.endswith("it is asked for again at once.")


def test_the_gate_of_a_run_that_was_cut_off(ledger: Ledger) -> None:
    """What a resume does first."""
    ledger.seed(f"{A}/p")
    first = f"The run is interrupted: resumed, it asks for the robots.txt of {A} first."
    assert waiting(ledger, NOW, is_live=False) == first
    learn(ledger, GOOD)
    assert "it may send to" in waiting(ledger, NOW, is_live=False)
    assert waiting(ledger, NOW + 2 * DAY, is_live=False) == first


def test_the_parser_of_a_project_names_no_line(ledger: Ledger) -> None:
    """The copy is named all the same; and an exclusion without its inputs is just named."""
    record = learn(ledger, GOOD)
    decision = Judge(record).decide("ourbot", f"{A}/p", NOW).as_data()
    protocol = {
        name: value
        for name, value in dict(decision["protocol"]).items()  # type: ignore[call-overload]
        if name not in ("line", "text", "group")
    }
    for path, inputs in (("1", json.dumps({"protocol": protocol})), ("2", None)):
        verdict = Verdict(Event.EXCLUDE, Reason("robots.disallow", inputs))
        ledger.refer(f"{A}/{path}", verdict=verdict)
    with ledger.read() as connection:
        one, two = (
            explain(connection, 1, f"{A}/{path}", now_ms=START_MS).identities[0].state_sentence
            for path in "12"
        )
    assert "robots.txt (with no line on record) forbids it (the copy " in one
    assert two == "It is excluded by the rule robots.disallow."


def test_both_may_forbid(ledger: Ledger) -> None:
    """The operator's line decides, and robots.txt's is named beside it."""
    record = learn(ledger, GOOD)
    operator = OperatorPolicy(rules=Rules.parse(b"User-agent: *\nDisallow: /").for_agent("x"))
    decision = Judge(record).decide("ourbot", f"{A}/p", NOW, operator)
    reason = Reason(decision.rule, json.dumps(decision.as_data()))
    ledger.refer(f"{A}/p", verdict=Verdict(Event.EXCLUDE, reason))
    with ledger.read() as connection:
        (one,) = explain(connection, 1, f"{A}/p", now_ms=START_MS).identities
    assert (
        'line 2 of FRONTIER_ROBOTS_RULES ("Disallow: /") forbids it; line 3 of robots.txt'
        ' ("Disallow: /p", in the group for *) does, too (the copy'
    ) in one.state_sentence


def test_a_queue_of_its_own_has_no_robots_txt_of_its_own(ledger: Ledger) -> None:
    """A download slot makes another queue; the origin, and its robots.txt, stay the same."""
    learn(ledger, BAD, BAD)
    ledger.seed(f"{A}/1")
    ledger.tamper("UPDATE origin SET origin = origin || ' (mine)'")
    ledger.open_session()
    ledger.seed(f"{A}/p")
    learn(ledger, GOOD, origin="http://b.example")
    ledger.seed("http://b.example/p")
    ledger.close("stopped", "exhausted")

    account = account_of(ledger)

    assert [origin.origin for origin in account.origins][1:] == [f"{A} (mine)", "http://b.example"]
    assert [(one.origin, one.waiting) for one in account.robots] == [
        (A, 2),
        ("http://b.example", 0),
    ]
    assert "on 2 origins" in render_long(account)
    assert f"the robots.txt of {A} could not be had" in waiting(ledger, NOW, "1")


def test_waivers_belong_to_an_origin_where_there_is_only_one(ledger: Ledger) -> None:
    """The ledger counts them for the run; nothing is guessed."""
    learn(ledger, GOOD)
    ledger.seed(f"{A}/p")
    assert account_of(ledger).robots[0].waived == 0
    ledger.send(Tally("waiver", "dont_obey_robotstxt", 3, f"{A}/p"))
    assert account_of(ledger).robots[0].waived == 3
    ledger.seed("http://b.example/")
    assert account_of(ledger).robots[0].waived is None


def test_the_origins_left_over_are_counted(ledger: Ledger) -> None:
    """Several of them, each for a reason of its own; queues of one origin are one origin."""
    for name, fetch in (("a", BAD), ("b", RobotsFetch(failure="timeout"))):
        learn(ledger, fetch, fetch, origin=f"http://{name}.example")
        ledger.seed(f"http://{name}.example/")
    ledger.tamper("UPDATE origin SET origin = origin || ' (mine)'")
    ledger.open_session()
    ledger.seed("http://b.example/2")
    ledger.close("stopped", "exhausted")
    assert stop_sentence(account_of(ledger)) == (
        "Nothing more could be done now: 3 URLs of 2 origins stay scheduled, for their robots.txt"
        " could not be had (download.timeout, http.503). A resumed run tries again."
    )


def test_a_failed_robots_txt_is_no_dead_letter_of_the_client(ledger: Ledger) -> None:
    """Pages that failed for the same reason are counted and shown, with a page as the example."""
    for url, kind in (
        (f"{A}/robots.txt", ReferenceKind.ROBOTS),
        (f"{A}/p", ReferenceKind.LINK),
    ):
        ledger.give_up(ledger.dispatch(ledger.refer(url, kind=kind)))
    account = account_of(ledger)
    (cause,) = account.causes
    assert (cause.count, cause.robots_txt, cause.example) == (2, 1, f"{A}/p")
    assert [letter.is_robots_txt for letter in account.deadletters] == [True, False]
    told = render_long(account)
    assert re.search(rf"  failed +download.timeout +1  {A}/p\n", told)
    assert f"{A}/robots.txt" not in told
    assert "0 robots.txt fetched, 1 could not be had, in 1 attempt." in told
    assert account.identities.terminal == {"failed": 2}
