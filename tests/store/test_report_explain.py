"""A URL is explained by its own state and its origin's gate, and its history is told whole."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from report_ledger import START_MS, Ledger

from scrapy_frontier.identity.keys import fetch_key
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.explain import Explanation, IdentityExplained, explain
from scrapy_frontier.report.history import history
from scrapy_frontier.report.lookup import look_up
from scrapy_frontier.report.render_url import render_explanation, render_history
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.edges import Observation
from scrapy_frontier.store.messages import OriginTiming, Reason, Reference, Source, Verdict

URL = "http://a.example/page"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """An empty store with one open run."""
    made = Ledger()
    yield made
    made.store.close()


def explained(
    ledger: Ledger, url: str = URL, *, is_live: bool | None = True, now_ms: int = START_MS
) -> Explanation:
    """What the ledger's run knows of a URL."""
    with ledger.read() as connection:
        return explain(connection, ledger.run_id, url, now_ms=now_ms, is_live=is_live)


def only(explanation: Explanation) -> IdentityExplained:
    """Its one identity."""
    (identity,) = explanation.identities
    return identity


def test_a_scheduled_url_waits_behind_others(ledger: Ledger) -> None:
    """Its place in the queue of its origin is counted."""
    ledger.seed("http://a.example/first")
    ledger.seed("http://b.example/elsewhere")
    ledger.seed(URL)
    assert "behind 1 others" in only(explained(ledger)).state_sentence


def test_a_url_under_way_depends_on_its_process(ledger: Ledger) -> None:
    """While the process lives an attempt is under way; else a resume takes it back."""
    ledger.dispatch(ledger.seed(URL))
    assert "under way since" in only(explained(ledger)).state_sentence
    assert "a resume takes it" in only(explained(ledger, is_live=False)).state_sentence


def test_a_fetched_url_is_being_processed_or_was_cut_off(ledger: Ledger) -> None:
    """A response without the end of its page is not yet an answer."""
    ledger.fetch(ledger.seed(URL))
    assert "is being processed" in only(explained(ledger)).state_sentence
    assert "ended within its page" in only(explained(ledger, is_live=False)).state_sentence


def test_a_retryable_url_names_the_failure_and_the_time(ledger: Ledger) -> None:
    """Why it failed, and when it is tried again."""
    ledger.retry(ledger.dispatch(ledger.seed(URL)), due_ms=START_MS * 2)
    sentence = only(explained(ledger)).state_sentence
    assert "failed (download.timeout)" in sentence
    assert "not before 20" in sentence


def test_a_held_back_url_names_the_rule(ledger: Ledger) -> None:
    """Until a time, or until somebody releases it."""
    ledger.refer(URL, due_ms=START_MS * 2)
    assert "by the rule not_before until 20" in only(explained(ledger)).state_sentence
    ledger.refer(URL + "/2", verdict=Verdict(Event.DEFER, Reason("budget.family")))
    sentence = only(explained(ledger, URL + "/2")).state_sentence
    assert sentence == "It is held back by the rule budget.family until it is released."


@pytest.mark.parametrize(
    ("rule", "detail", "words"),
    [
        (
            "trap.sort",
            '{"family": "/list?sort={text}", "dry": 5}',
            "trap.sort, as are others of its family /list?sort={text}, until"
            " `scrapy frontier release` lets it, its family or its origin go.",
        ),
        (
            "budget.origin_urls",
            '{"pattern": "http://h.example", "limit": 4000, "used": 4000}',
            "budget.origin_urls (limit 4,000 for http://h.example) until"
            " FRONTIER_MAX_URLS_PER_ORIGIN is raised, or `scrapy frontier release` lets it go.",
        ),
        (
            "budget.urls",
            '{"pattern": "", "limit": 5, "used": 5}',
            "budget.urls (limit 5 for the run) until FRONTIER_MAX_URLS is raised, or"
            " `scrapy frontier release` lets it go.",
        ),
        ("budget.pending", '{"pattern": "", "limit": 5}', "until there is room in the queue."),
    ],
)
def test_what_traps_and_budgets_hold_names_what_is_held_and_what_releases_it(
    ledger: Ledger, rule: str, detail: str, words: str
) -> None:
    """The family or the limit, and the way out."""
    ledger.refer(URL, verdict=Verdict(Event.DEFER, Reason(rule, detail)))
    sentence = only(explained(ledger)).state_sentence
    assert sentence.startswith(f"It is held back by the rule {rule}")
    assert sentence.endswith(words)


def test_an_excluded_url_names_the_rule_and_its_inputs(ledger: Ledger) -> None:
    """The text of the rule that decided stands in the sentence."""
    reason = Reason("scope.path", '{"rule": "exclude /page"}')
    ledger.refer(URL, verdict=Verdict(Event.EXCLUDE, reason))
    sentence = only(explained(ledger)).state_sentence
    assert sentence == "It is excluded by the rule scope.path (rule exclude /page)."


@pytest.mark.parametrize(
    ("disposition", "event", "words"),
    [
        (Disposition.SUCCEEDED, Event.PROCESS, "page processed"),
        (Disposition.HTTP_ERROR, Event.PROCESS, "answered with an error"),
        (Disposition.CALLBACK_ERROR, Event.PROCESS, "its callback raised"),
        (Disposition.GONE, Event.PROCESS, "is gone"),
        (Disposition.REDIRECTED, Event.REDIRECT, "on to another URL"),
        (Disposition.NOT_MODIFIED, Event.NOT_MODIFY, "has not changed"),
        (Disposition.FAILED, Event.GIVE_UP, "failed for good"),
    ],
)
def test_a_terminal_url_tells_how_it_ended(
    ledger: Ledger, disposition: Disposition, event: Event, words: str
) -> None:
    """One phrase for each disposition, with the reason and the number of attempts."""
    lease = ledger.dispatch(ledger.seed(URL))
    ledger.respond(lease)
    ledger.process(lease, disposition, event, "http.418")
    identity = only(explained(ledger))
    assert words in identity.state_sentence
    assert "(http.418)" in identity.state_sentence
    assert "after 1 attempt." in identity.state_sentence
    assert identity.disposition == disposition.label


def test_the_gate_of_a_running_run(ledger: Ledger) -> None:
    """Open, busy, or shut until a time."""
    ledger.seed(URL)
    assert "is open" in only(explained(ledger)).gate_sentence
    ledger.dispatch(ledger.seed("http://a.example/other"))
    assert "1 request in flight" in only(explained(ledger)).gate_sentence
    ledger.send(OriginTiming(1, START_MS + 5000))
    assert "is shut: not before" in only(explained(ledger)).gate_sentence
    assert "(in 5.0 s)" in only(explained(ledger)).gate_sentence


def test_the_gate_of_a_run_that_is_not_running(ledger: Ledger) -> None:
    """What a resume would be allowed."""
    ledger.seed(URL)
    interrupted = only(explained(ledger, is_live=False)).gate_sentence
    assert interrupted == (
        "The run is interrupted: resumed, it may send to http://a.example at once."
    )
    ledger.send(OriginTiming(1, START_MS + 5000))
    ledger.close("stopped", "operator")
    assert "The run is stopped: resumed, it may send" in only(explained(ledger)).gate_sentence
    ledger.close("finished")
    assert "The run is finished" in only(explained(ledger)).gate_sentence


def test_where_a_url_was_first_seen(ledger: Ledger) -> None:
    """Its page, its kind, and how the page spelled it."""
    page = ledger.fetch(ledger.seed("http://a.example/"))
    number = ledger.refer(URL, page=page)
    line = Observation(0, "../page#top", "top", text="The page").line()
    ledger.emit(page, targets=(number,), observations=((number, line),))

    identity = only(explained(ledger))

    first = identity.first_seen
    assert (first.kind, first.page) == ("link", "http://a.example/")
    assert (first.observed, first.fragment, first.text) == ("../page#top", "top", "The page")
    assert (identity.references.total, identity.references.pages) == (2, ("http://a.example/",))


def test_a_seed_has_no_page(ledger: Ledger) -> None:
    """It comes from `start()`."""
    ledger.seed(URL)
    first = only(explained(ledger)).first_seen
    assert (first.kind, first.page, first.observed) == ("seed", None, None)


def test_the_spelling_of_the_question_does_not_matter(ledger: Ledger) -> None:
    """A URL is resolved and compared as the crawl compares it."""
    ledger.seed("http://a.example/%7Euser/")
    for asked in ("HTTP://A.example:80/~user/", "http://a.example/x/../%7euser/#part"):
        assert only(explained(ledger, asked)).url == "http://a.example/%7Euser/"


def test_parameter_rules_of_the_run_count(ledger: Ledger) -> None:
    """A run that leaves a parameter out of the key knows the URL with it, too."""
    rules = '{"FRONTIER_PARAMETER_RULES": ["tracking"]}'
    ledger.tamper("UPDATE policy SET text = :text", text=rules)
    ledger.seed(URL)
    assert only(explained(ledger, URL + "?utm_source=mail")).url == URL


def test_every_method_of_a_url_is_explained(ledger: Ledger) -> None:
    """The same URL asked for with GET and with POST: two identities."""
    ledger.seed(URL)
    ledger.send(
        Reference(
            key=fetch_key("POST", URL, b"x"),
            method="POST",
            url=URL,
            origin="http://a.example",
            partition=0,
            source=Source(),
            kind=ReferenceKind.SEED,
            depth=0,
            record=None,
            rank=0,
            due_ms=0,
            verdict=Verdict(Event.ENQUEUE, Reason("admission.scope")),
            at_ms=ledger.now(),
        )
    )
    explanation = explained(ledger)
    assert [identity.method for identity in explanation.identities] == ["GET", "POST"]
    assert f"POST {URL}" in render_explanation(explanation, 1)


def test_a_rejected_reference_names_its_rule(ledger: Ledger) -> None:
    """It has no identity, but the run has seen it."""
    page = ledger.fetch(ledger.seed("http://a.example/"))
    ledger.emit(page, rejected=(("scheme.unsupported", "mailto:x@y"),))
    explanation = explained(ledger, "mailto:x@y")
    assert explanation.is_known
    assert (explanation.rule, explanation.identities) == ("scheme.unsupported", ())
    assert "rejected by the rule scheme.unsupported" in render_explanation(explanation, 1)
    assert "http://a.example/" in render_explanation(explanation, 1)


def test_an_unknown_url_is_unknown(ledger: Ledger) -> None:
    """Not seen in this run; where a rule would reject it, that is said."""
    explanation = explained(ledger, "ftp://a.example/")
    assert not explanation.is_known
    assert "has not seen ftp://a.example/; such a reference would be rejected by the rule" in (
        render_explanation(explanation, 1)
    )


def test_the_history_has_every_transition_in_order(ledger: Ledger) -> None:
    """Each step begins where the last one ended; reasons come with their inputs."""
    number = ledger.seed(URL)
    ledger.retry(ledger.dispatch(number))
    ledger.open_session()
    ledger.give_up(ledger.dispatch(number))

    with ledger.read() as connection:
        steps = history(connection, number)

    assert [step.event for step in steps] == [
        "discover",
        "admit",
        "enqueue",
        "dispatch",
        "fail",
        "become_due",
        "dispatch",
        "give_up",
    ]
    assert all(one.target == two.source for one, two in itertools.pairwise(steps))
    assert [step.attempt for step in steps] == [None, None, None, 1, 1, 1, 2, 2]
    assert (steps[-1].disposition, steps[-1].reason) == ("failed", "download.timeout")
    assert steps[-1].detail == {"times": 2}
    assert (steps[0].worker, steps[-1].worker) == ("host:101", "host:102")
    assert steps[0].policy_version == "p1digest"


def test_the_history_as_text_names_each_session_once(ledger: Ledger) -> None:
    """A line for each transition, the inputs of a reason below it."""
    number = ledger.seed(URL)
    ledger.give_up(ledger.dispatch(number))
    with ledger.read() as connection:
        lookup = look_up(connection, ledger.run_id, URL)
        steps = history(connection, number)
    text = render_history(lookup, [(lookup.identities[0], steps)], ledger.run_id)
    assert text.startswith(f"{URL}\n  session 1 on host:101, policy version p1digest\n")
    assert "fetching -> terminal (failed)  attempt 1   download.timeout\n" in text
    assert text.endswith('{"times": 2}\n')


def test_a_chain_that_bites_its_tail_ends(ledger: Ledger) -> None:
    """A damaged ledger does not hang the command."""
    number = ledger.seed(URL)
    ledger.tamper("UPDATE transition SET prev_seq = 3 WHERE seq = 1")
    with ledger.read() as connection:
        assert len(history(connection, number)) == 3
