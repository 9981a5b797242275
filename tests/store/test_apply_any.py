"""Any messages, in any groups: the ledger is the same, sound, and the event loop learns of all it needs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from apply_bench import (
    ADMITTED,
    EXCLUDED,
    LINK,
    NOW,
    SEED,
    Bench,
    disposition_of,
    dump,
    reference,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.report.verify import verify
from scrapy_frontier.states import Event, State
from scrapy_frontier.store.messages import (
    Committed,
    Dispatch,
    Due,
    Emission,
    Finding,
    Lease,
    Message,
    Move,
    Reason,
    Rejected,
    Retry,
    Source,
    Transit,
)
from scrapy_frontier.store.opening import open_store

PAGES = st.sampled_from(["a", "b", "c"])


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """What may happen to three pages: verbs with their inputs. Times move on by one each step."""
    step = st.one_of(
        st.tuples(
            st.just("refer"),
            st.fixed_dictionaries(
                {
                    "path": PAGES,
                    "is_visit": st.booleans(),
                    "delay": st.sampled_from([0, 0, 2]),
                    "seed": st.sampled_from([0, 0, 1, 2]),
                    "verdict": st.sampled_from([ADMITTED, ADMITTED, EXCLUDED]),
                    "record": st.sampled_from(["{}", "{}", None]),
                    "from_page": st.booleans(),
                }
            ),
        ),
        st.tuples(st.just("dispatch"), st.fixed_dictionaries({"path": PAGES})),
        st.tuples(
            st.just("move"),
            st.fixed_dictionaries({"lease": st.integers(0, 5), "event": st.sampled_from(Event)}),
        ),
        st.tuples(
            st.just("retry"),
            st.fixed_dictionaries({"lease": st.integers(0, 5), "delay": st.sampled_from([0, 3])}),
        ),
        st.tuples(st.just("due"), st.fixed_dictionaries({})),
        st.tuples(
            st.just("transit"),
            st.fixed_dictionaries(
                {
                    "path": PAGES,
                    "event": st.sampled_from(
                        [Event.RECLAIM, Event.EXCLUDE, Event.DEFER, Event.READMIT, Event.CANCEL]
                    ),
                }
            ),
        ),
        st.tuples(
            st.just("emit"),
            st.fixed_dictionaries({"path": PAGES, "rejected": st.integers(0, 2)}),
        ),
    )
    return draw(st.lists(step, max_size=25))


class Teller:
    """Tells a story to one bench, in groups of any size."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.ids: dict[str, int] = {}
        self.leases: list[Lease] = []
        self.answers: list[Any] = []
        self.committed: list[Committed] = []

    def tell(self, story: Sequence[tuple[str, dict[str, Any]]], groups: Sequence[int]) -> None:
        """Send the messages of the story in groups of these sizes, over and over."""
        self.number_pages()
        messages = [
            message
            for step, (verb, inputs) in enumerate(story)
            for message in getattr(self, verb)(NOW + step, **inputs)
        ]
        sizes = itertools.cycle(groups)
        while messages:
            size = next(sizes)
            self.committed.append(self.bench.apply(*messages[:size]))
            messages = messages[size:]

    def number_pages(self) -> None:
        """The pages are known, by number, before the story begins."""
        for path in ("a", "b", "c"):
            self.ids[path] = self.bench.refer(path).identity_id

    def refer(
        self, now: int, *, path: str, delay: int, seed: int, from_page: bool, **fields: Any
    ) -> list[Message]:
        due_ms = now + delay if delay else 0
        source = Source(self.ids["a"], 0) if from_page else Source()
        kind = SEED if seed else LINK
        return [
            reference(
                path,
                at_ms=now,
                due_ms=due_ms,
                seed=seed,
                kind=kind,
                source=source,
                on_commit=self.answers.append,
                **fields,
            )
        ]

    def dispatch(self, now: int, *, path: str) -> list[Message]:
        self.leases.append(Lease(self.ids[path]))
        return [Dispatch(self.leases[-1], now, Reason("band.0"), self.answers.append)]

    def move(self, now: int, *, lease: int, event: Event) -> list[Message]:
        if lease >= len(self.leases) or event is Event.DISPATCH:
            return []
        finding = Finding("http.200", 200, 1) if event is Event.RESPOND else Finding("ended")
        return [
            Move(
                self.leases[lease],
                event,
                Reason("a.reason"),
                now,
                disposition_of(event),
                finding,
                self.answers.append,
            )
        ]

    def retry(self, now: int, *, lease: int, delay: int) -> list[Message]:
        if lease >= len(self.leases):
            return []
        due_ms = now + delay if delay else 0
        return [
            Retry(
                self.leases[lease],
                Reason("retry"),
                now,
                due_ms,
                "{}",
                0,
                Finding("http.503"),
                None,
                self.answers.append,
            )
        ]

    def due(self, now: int) -> list[Message]:
        return [Due(list(self.ids.values()), now, self.answers.append)]

    def transit(self, now: int, *, path: str, event: Event) -> list[Message]:
        reason = Reason("request.unserialisable" if event is Event.DEFER else "a.reason")
        return [
            Transit(
                [self.ids[path]], event, reason, now, disposition_of(event), self.answers.append
            )
        ]

    def emit(self, now: int, *, path: str, rejected: int) -> list[Message]:
        found = [Rejected("userinfo", "http://u@h/")] * rejected
        return [Emission(Source(self.ids["b"], 0), LINK, [self.ids[path]], 0, found)]


@settings(max_examples=60, deadline=None)
@given(stories(), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_grouping_changes_nothing(
    story: list[tuple[str, dict[str, Any]]], groups: list[int]
) -> None:
    """The same messages make the same ledger and the same answers, however they are grouped."""
    with open_store("sqlite://", create=True) as one, open_store("sqlite://", create=True) as other:
        single, grouped = Teller(Bench(one)), Teller(Bench(other))
        single.tell(story, [1])
        grouped.tell(story, groups)
        assert dump(grouped.bench) == dump(single.bench)
        assert grouped.answers == single.answers
        assert verify(one).findings == ()
        assert verify(other).findings == ()


@settings(max_examples=40, deadline=None)
@given(stories(), st.integers(1, 6))
def test_the_loop_learns_of_all_that_it_may_hand_out(
    story: list[tuple[str, dict[str, Any]]], size: int
) -> None:
    """Every identity that a group leaves scheduled by a move of its own, or waiting for a time, is announced."""
    with open_store("sqlite://", create=True) as store:
        teller = Teller(Bench(store))
        teller.tell(story, [size])
        bench = teller.bench
        standing = dict(bench.rows("SELECT identity_id, state FROM current"))
        times = dict(bench.rows("SELECT identity_id, due_ms FROM current WHERE due_ms > 0"))
        announced = {head.identity_id for c in teller.committed for head in c.scheduled}
        begun = set(teller.ids.values())
        scheduled = {number for number, state in standing.items() if state == State.SCHEDULED}
        assert scheduled <= announced | begun
        timed = {(due, number) for c in teller.committed for due, number in c.timed}
        assert {(due, number) for number, due in times.items()} <= timed
