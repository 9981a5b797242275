"""The report as text fits a terminal, says the main things first, and hides nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_ledger import Ledger, account_of, crawl

from scrapy_frontier.report import layout, render_long, render_short
from scrapy_frontier.report.render import stop_sentence


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """An empty store with one open run."""
    made = Ledger()
    yield made
    made.store.close()


def test_the_first_lines_tell_the_whole_story(ledger: Ledger) -> None:
    """What was asked, what was covered, what not, what is open, and whether it adds up."""
    crawl(ledger)
    ledger.close()

    lines = render_long(account_of(ledger)).splitlines()

    assert lines[0] == "Run 1 (nightly) of spider docs"
    assert lines[2] == "Finished: all that was admitted is done, and 1 URL is held back."
    assert lines[3].startswith("From 2025-12-01 00:46:41 to 00:46:59 UTC, 18 s, 1 session,")
    assert lines[5:11] == [
        "Asked        13 references to 5 different URLs on 2 origins.",
        "Covered      2 of 3 admitted (66.7 %), in 4 attempts.",
        "Not covered  1 excluded by rules, 1 held back, 1 failed.",
        "             2 references could not be requested at all.",
        "Unresolved   None.",
        "Account      It adds up: all 12 equations hold.",
    ]


def test_a_failed_equation_is_shown_in_all_forms(ledger: Ledger) -> None:
    """The numbers at fault stand in the first lines, in the list, and in the log."""
    crawl(ledger)
    ledger.tamper("DELETE FROM attempt WHERE attempt_id = 1")
    account = account_of(ledger)

    equation = "3 attempts = 4 dispatch events"
    assert f"Account      IT DOES NOT ADD UP:\n             {equation}" in render_long(account)
    assert f"  FAILS  {equation}" in render_long(account)
    assert equation in render_short(account)


def test_every_rule_of_an_exclusion_is_named(ledger: Ledger) -> None:
    """The table of what was not covered has a line for each rule."""
    crawl(ledger)
    text = render_long(account_of(ledger))
    for rule in ("scope.origin", "not_before", "download.timeout", "scheme.unsupported"):
        assert rule in text
    assert "page.processed" not in text


def test_the_short_form_has_twelve_lines_at_most(ledger: Ledger) -> None:
    """It closes a log, which others write to."""
    crawl(ledger)
    ledger.tamper("DELETE FROM transition WHERE event <> 1")
    assert len(render_short(account_of(ledger)).splitlines()) <= 12


def test_no_line_is_wider_than_the_terminal(ledger: Ledger) -> None:
    """Long URLs are cut in the middle, where the least is lost."""
    page = ledger.fetch(ledger.seed("http://a.example/" + "x" * 500))
    ledger.exclude("http://b.example/" + "y" * 500 + "/end", "scope.path", page=page)
    ledger.emit(page, rejected=(("url.malformed", "http://" + "z" * 300),))
    ledger.give_up(ledger.dispatch(ledger.seed("http://" + "h" * 60 + ".example/")))

    text = render_long(account_of(ledger))

    assert max(map(len, text.splitlines())) <= layout.WIDTH
    assert "yyy/end" in text


def test_an_empty_run_has_a_report(ledger: Ledger) -> None:
    """Nothing was crawled: no empty tables, no division by zero."""
    text = render_long(account_of(ledger))
    assert "0 references to 0 different URLs on 0 origins" in text
    assert "Origins" not in text


@pytest.mark.parametrize(
    ("state", "reason", "sentence"),
    [
        ("finished", "exhausted", "Finished: nothing was left to do."),
        ("stopped", "operator", "Stopped by the operator; it can be resumed."),
        ("stopped", "deadline", "Stopped at its deadline; it can be resumed."),
        ("stopped", "budget:pages", "Stopped by the budget pages; it can be resumed."),
        ("stopped", "error", "Stopped by an error; it can be resumed."),
        ("stopped", "closespider_itemcount", "Ended: closespider_itemcount."),
    ],
)
def test_the_stop_is_a_sentence(ledger: Ledger, state: str, reason: str, sentence: str) -> None:
    """Each stop reason of the design, and an unknown one as it is."""
    ledger.close(state, reason)
    assert stop_sentence(account_of(ledger)) == sentence


def test_an_open_run_is_not_called_dead_without_proof(ledger: Ledger) -> None:
    """Running where a process holds it, interrupted where none does, else both are said."""
    assert stop_sentence(account_of(ledger, is_live=True)) == "Running."
    assert stop_sentence(account_of(ledger, is_live=False)).startswith("Interrupted")
    assert stop_sentence(account_of(ledger)).startswith("Running, or interrupted")


def test_what_a_page_wrote_cannot_steer_the_terminal(ledger: Ledger) -> None:
    """Control characters of a reference are shown, not obeyed."""
    ledger.emit(
        ledger.fetch(ledger.seed("http://a.example/")),
        rejected=(("url.malformed", "http://\x1b[2J\nowned\u202e"),),
    )
    text = render_long(account_of(ledger))
    assert "http://\\x1b[2J\\nowned\\u202e" in text


@given(st.text(), st.integers(10, 80))
def test_a_shortened_text_keeps_both_ends(text: str, width: int) -> None:
    """It is never longer than asked, and unchanged where it fits."""
    short = layout.shorten(text, width)
    assert len(short) <= width
    assert short == text if len(text) <= width else short[:3] == text[:3]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (59.6, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3600, "1 h 0 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_duration_is_told_in_two_units(seconds: float, words: str) -> None:
    """The larger units tell enough."""
    assert layout.duration(seconds) == words


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 0, "-"),
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 3, "33.3 %"),
        (1, 100_000, "<0.1 %"),
        (99_999, 100_000, ">99.9 %"),
    ],
)
def test_a_share_is_whole_only_where_it_is(part: int, whole: int, words: str) -> None:
    """A single failure among many is not rounded away."""
    assert layout.share(part, whole) == words
