"""A Hypothesis state machine over the world: whatever the order of events, all invariants hold after each step."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from .schedules import VERBS
from .world import World

NUMBERS = st.integers(0, 999)


class StoreAndSchedule(RuleBasedStateMachine):
    """Its rules are the steps of the world, one each."""

    world: World

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        """A new store, a first process."""
        shared = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
        self.world = World(self.folder, random.Random(seed))

    @invariant()
    def all_invariants_hold(self) -> None:
        """Design, section 4."""
        if hasattr(self, "world"):
            self.world.inspect(wholly=self.world.process.commits % 4 == 0)

    @rule()
    def settle(self) -> None:
        """Everything comes to its end, and goes on from there."""
        self.world.settle()

    def teardown(self) -> None:
        """Let it end, and take it away."""
        if hasattr(self, "world"):
            try:
                self.world.settle()
            finally:
                self.world.process.die()
                shutil.rmtree(self.folder, ignore_errors=True)


def _step(name: str, count: int) -> Any:
    def step(self: StoreAndSchedule, numbers: tuple[int, ...]) -> None:
        getattr(self.world, name)(*numbers)

    step.__name__ = name
    return rule(numbers=st.tuples(*[NUMBERS] * count))(step)


for _name, (_, _count) in VERBS.items():
    setattr(StoreAndSchedule, _name, _step(_name, _count))

StoreAndSchedule.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoreAndSchedule = StoreAndSchedule.TestCase
