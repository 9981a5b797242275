"""The selector: fair between gates, weighted between priority bands, and never starving."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.politeness import OriginPolicy
from scrapy_frontier.scheduling import BandTable, Gate
from scrapy_frontier.scheduling.flows import COMPACT_AT, Flow
from scrapy_frontier.scheduling.selector import DEFAULT_SHARES, GREATEST_RANK, LEAST_RANK, Selector


def flow(selector: Selector, name: str, *bands: int) -> Flow:
    """A flow whose gate is open, with a never-ending queue in each of `bands`."""
    made = Flow(name, Gate(OriginPolicy(1), 0.0), selector.next_ticket())
    made.bands = sum(1 << band for band in bands)
    selector.open(made)
    return made


def take(selector: Selector) -> tuple[int, str]:
    taken = selector.take()
    assert taken is not None
    return taken[0], taken[1].key


def test_default_bands() -> None:
    """The ranges of Scrapy priorities (rank = -priority), most urgent first."""
    table = BandTable()
    priorities = [10**6, 100, 99, 10, 9, 1, 0, -1, -10, -11, -100, -101, -(10**6)]
    assert [table.band_of(-p) for p in priorities] == [0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6]
    assert table.shares == DEFAULT_SHARES


@given(st.lists(st.integers(-1000, 1000), unique=True, max_size=8), st.integers(-2000, 2000))
def test_bands_are_contiguous_ranges_of_rank(priorities: list[int], rank: int) -> None:
    """Every rank lies in exactly one band, the one whose range holds it."""
    table = BandTable(sorted(priorities, reverse=True), [1] * (len(priorities) + 1))
    ranges = [table.ranks(band) for band in range(len(table))]
    assert ranges[0][0] == LEAST_RANK
    assert ranges[-1][1] == GREATEST_RANK
    assert all(one[1] + 1 == other[0] for one, other in pairwise(ranges))
    least, greatest = ranges[table.band_of(rank)]
    assert least <= rank <= greatest


@pytest.mark.parametrize(
    ("priorities", "shares"),
    [((1, 2), (1, 1, 1)), ((1, 1), (1, 1, 1)), ((1,), (1,)), ((1,), (1, 0)), ((1,), (1, -1))],
)
def test_a_table_that_would_starve_a_band_is_refused(
    priorities: tuple[int, ...], shares: tuple[float, ...]
) -> None:
    """Each band has a range and a share above 0."""
    with pytest.raises(ConfigError):
        BandTable(priorities, shares)


@settings(max_examples=60)
@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=7), st.integers(1, 400))
def test_each_band_gets_its_share(shares: list[float], turns: int) -> None:
    """While all have work, no band is ever ahead or behind by more than a turn per band."""
    selector = Selector(BandTable(range(len(shares) - 1, 0, -1), shares))
    for band in range(len(shares)):
        flow(selector, str(band), band)
    served = Counter(take(selector)[0] for _ in range(turns))
    for band, share in enumerate(shares):
        fair = turns * share / sum(shares)
        assert abs(served[band] - fair) <= len(shares)


@settings(max_examples=60)
@given(
    st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=2, max_size=12),
    st.lists(st.sampled_from([1, 2, 5]), min_size=3, max_size=3),
)
def test_nobody_starves(bands: list[set[int]], shares: list[int]) -> None:
    """Each flow is served within as many turns of its band as the band has flows."""
    selector = Selector(BandTable((1, 0), shares))
    for number, own in enumerate(bands):
        flow(selector, str(number), *own)
    bound = len(bands) * (sum(shares) // min(shares) + 3)
    served = {take(selector)[1] for _ in range(bound)}
    assert served == {str(number) for number in range(len(bands))}


def test_flows_of_a_band_take_turns() -> None:
    """Round robin, in the order in which they came."""
    selector = Selector(BandTable())
    for name in "abc":
        flow(selector, name, 3)
    assert [take(selector)[1] for _ in range(6)] == list("abcabc")


def test_heads_in_several_bands_give_no_more_turns() -> None:
    """A flow in two bands and one in a single band are served alike."""
    selector = Selector(BandTable((0,), (1, 1)))
    flow(selector, "both", 0, 1)
    flow(selector, "one", 0)
    flow(selector, "other", 1)
    served = Counter(take(selector)[1] for _ in range(300))
    assert max(served.values()) - min(served.values()) <= 3


def test_an_urgent_request_goes_out_next() -> None:
    """Whatever else is waiting, however long ago its band was served last (FC62)."""
    selector = Selector(BandTable())
    for number in range(20):
        flow(selector, f"low{number}", 3, 6)
    for _ in range(57):
        take(selector)
    flow(selector, "high", 0)
    assert take(selector) == (0, "high")


def test_a_band_does_not_save_its_turns_up() -> None:
    """A band that was empty for long does not lock the others out when it gets work."""
    selector = Selector(BandTable((0,), (1, 1)))
    flow(selector, "steady", 1)
    for _ in range(1000):
        take(selector)
    flow(selector, "late", 0)
    served = Counter(take(selector)[1] for _ in range(100))
    assert 49 <= served["steady"] <= 51


def test_a_newcomer_stands_behind_those_who_are_there() -> None:
    """An endless stream of new origins does not starve the old ones."""
    selector = Selector(BandTable())
    old = flow(selector, "old", 3)
    newcomers, served = [], []
    for number in range(30):
        newcomers.append(flow(selector, f"new{number}", 3))
        taken = selector.take()
        assert taken is not None
        served.append(taken[1])
        if taken[1] is not old:
            selector.shut(taken[1])
    assert served[:2] == [old, newcomers[0]]
    assert served.count(old) >= 5


def test_shut_flows_are_passed_over_and_come_back() -> None:
    """Only open gates are served; opening is enough to be served again."""
    selector = Selector(BandTable())
    first, _ = flow(selector, "a", 3), flow(selector, "b", 3)
    selector.shut(first)
    assert [take(selector)[1] for _ in range(3)] == ["b", "b", "b"]
    selector.open(first)
    assert take(selector)[1] == "a"


def test_times_wake_each_flow_once_in_their_order() -> None:
    """A flow that got another time, or was opened or shut, is not woken by the old one."""
    selector = Selector(BandTable())
    a, b, c, d = (flow(selector, name, 3) for name in "abcd")
    selector.shut(a, 10.0)
    selector.shut(b, 5.0)
    selector.shut(b, 20.0)
    selector.shut(c, 6.0)
    selector.open(c)
    selector.shut(d, 7.0)
    selector.shut(d)
    assert selector.pop_due(9.9) is None
    assert selector.pop_due(30.0) is a
    assert selector.pop_due(30.0) is b
    assert selector.pop_due(30.0) is None
    assert selector.next_time() is None


def test_the_next_time_is_that_of_an_entry_in_force() -> None:
    """What was overtaken by another event does not count."""
    selector = Selector(BandTable())
    a, b = flow(selector, "a", 3), flow(selector, "b", 3)
    selector.shut(a, 5.0)
    selector.shut(a, 9.0)
    selector.shut(b, 7.0)
    selector.open(b)
    assert selector.next_time() == 9.0


def test_a_flow_without_work_sets_no_alarm() -> None:
    """`next_time` is the time of something that can be handed out."""
    selector = Selector(BandTable())
    done = flow(selector, "a", 3)
    selector.shut(done, 5.0)
    done.bands = 0
    assert selector.next_time() is None


def test_entries_out_of_date_do_not_pile_up() -> None:
    """Flows that come and go while others are served leave no memory behind."""
    selector = Selector(BandTable((0,), (1000, 1)))
    flow(selector, "steady", 0)
    flow(selector, "rare", 1)
    for _ in range(4):
        take(selector)
    first = flow(selector, "back", 1)
    selector.shut(first)
    most = 0
    for number in range(3000):
        passing = flow(selector, str(number), 1)
        selector.shut(passing, 1e9 + number)
        selector.shut(passing, 2e9 + number)
        passing.wake = passing.bands = 0
        assert take(selector)[1] in {"steady", "rare"}
        most = max(most, *(len(rota) for rota in selector._rotas))
    assert most <= COMPACT_AT
    assert len(selector._times) <= 2 * COMPACT_AT
    selector.open(first)
    assert "back" in {take(selector)[1] for _ in range(3000)}
