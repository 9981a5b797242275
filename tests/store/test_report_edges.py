"""The edges of a page come back as they went in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier.errors import StoreError
from scrapy_frontier.store.edges import (
    Observation,
    pack,
    pack_observations,
    pack_texts,
    unpack,
    unpack_observations,
)

observations = st.builds(
    Observation,
    target=st.integers(0, 2**62),
    observed=st.text(),
    fragment=st.text(),
    tag=st.sampled_from(["", "a", "link"]),
    rel=st.text(),
    text=st.text(),
    is_followed=st.booleans(),
)


@given(st.lists(st.integers(0, 2**62)))
def test_targets_come_back_in_their_order(identity_ids: list[int]) -> None:
    """Packing targets loses neither their order nor their repetitions."""
    assert unpack(pack(identity_ids)) == identity_ids


def test_new_targets_of_a_page_take_one_byte_each() -> None:
    """Ids given out one after the other, as those of new links are, cost a byte a link."""
    assert len(pack(range(1_000_000, 1_000_020))) == 3 + 19


def test_a_cut_row_is_an_error() -> None:
    """A damaged row is named, not read as something else."""
    with pytest.raises(StoreError, match="inside a number"):
        unpack(pack([1, 1_000_000])[:-1])


@given(st.lists(observations))
def test_observations_come_back(seen: list[Observation]) -> None:
    """Every spelling, whatever it holds, comes back as observed."""
    assert unpack_observations(pack_observations(seen)) == seen


@given(st.lists(observations))
def test_lines_made_elsewhere_pack_alike(seen: list[Observation]) -> None:
    """The lines can be made where the page is read, and packed where ids are known."""
    assert pack_texts([(o.target, o.line()) for o in seen]) == pack_observations(seen)


def test_damaged_observations_are_an_error() -> None:
    """A damaged row is named, not read as something else."""
    with pytest.raises(StoreError, match="cannot be read"):
        unpack_observations(b"not compressed")
