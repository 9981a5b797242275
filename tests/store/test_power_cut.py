"""A power cut under `synchronous = NORMAL` takes commits back: the leases they granted stay void for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from apply_bench import Bench
from store_kinds import Stores

from scrapy_frontier.states import State
from scrapy_frontier.store.opening import open_store

PARTS = ("store.db", "store.db-wal")


def copy(source: Path, target: Path) -> None:
    """The files of a store as they are now."""
    target.mkdir()
    for name in PARTS:
        shutil.copyfile(source / name, target / name)


def test_a_lease_that_a_power_cut_took_back_gives_no_right(tmp_path: Path) -> None:
    """A worker that survived holds a lease that nobody remembers; another has the same attempt number by now."""
    (tmp_path / "before").mkdir()
    with open_store(
        f"sqlite:///{tmp_path / 'before' / 'store.db'}", create=True, synchronous="NORMAL"
    ) as store:
        bench = Bench(store)
        number = bench.refer("a").identity_id
        copy(tmp_path / "before", tmp_path / "after")
        stale = bench.dispatch(number)
    with open_store(f"sqlite:///{tmp_path / 'after' / 'store.db'}", synchronous="NORMAL") as store:
        resumed = Bench(store, bench.run)
        lease = resumed.dispatch(number)
        assert lease.attempt_id == stale.attempt_id
        assert lease.generation > stale.generation
        assert not resumed.respond(stale)
        assert resumed.state(number) is State.FETCHING
        assert resumed.respond(lease)
        assert not resumed.respond(stale)
        assert not resumed.finish(stale)
        assert resumed.finish(lease)
        assert resumed.account.attempts.late == 2
        resumed.assert_sound()


ASK = {
    "sqlite": ("PRAGMA synchronous", {"NORMAL": 1, "FULL": 2}),
    "postgresql": ("SHOW synchronous_commit", {"NORMAL": "off", "FULL": "on"}),
}
"""What a connection flushes, by kind of store: the question, and the answers by `synchronous`."""


@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
def test_a_durable_block_flushes_and_leaves_the_setting_as_it_was(
    stores: Stores, synchronous: str
) -> None:
    """The session of a run is committed in one: it is the epoch of the generations that it grants."""
    question, answers = ASK[stores.kind]
    with open_store(stores.new_url(), create=True, synchronous=synchronous) as store:

        def ask() -> object:
            cursor = store.writer_connection().connection.cursor()
            cursor.execute(question)
            ((answer,),) = cursor.fetchall()
            store.writer_connection().connection.rollback()
            return answer

        with store.durably():
            inside = ask()
        assert (inside, ask()) == (answers["FULL"], answers[synchronous])
