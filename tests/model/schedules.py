"""Seeded schedules: the steps of a world drawn from one number, so that any of them can be played again."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .world import World

STEPS: Final = 55
"""Steps of a schedule; then everything is let come to its end."""

VERBS: Final[dict[str, tuple[int, int]]] = {
    "refer": (10, 2),
    "commit": (22, 1),
    "hand_out": (16, 1),
    "start": (14, 1),
    "answer": (12, 1),
    "fail": (4, 2),
    "drop": (1, 1),
    "yield_child": (6, 2),
    "finish": (8, 2),
    "redirect": (3, 2),
    "tick": (5, 1),
    "renew": (3, 1),
    "expire": (5, 1),
    "redeliver": (3, 1),
    "conflict": (3, 1),
    "late": (4, 2),
    "defer": (2, 1),
    "release": (2, 1),
    "crash": (4, 4),
    "close": (1, 2),
}
"""Step to its weight and how many numbers it takes."""

Told = Callable[[str], None]


def steps(luck: random.Random, count: int) -> list[tuple[str, tuple[int, ...]]]:
    """The steps of a schedule, drawn."""
    names = list(VERBS)
    weights = [VERBS[name][0] for name in names]
    return [
        (name, tuple(luck.randrange(1000) for _ in range(VERBS[name][1])))
        for name in luck.choices(names, weights, k=count)
    ]


def play(seed: int, folder: Path, told: Told = lambda _: None, count: int = STEPS) -> Counter[str]:
    """Play one schedule; raises what it finds. Returns how often what happened."""
    luck = random.Random(seed)
    world = World(folder, luck)
    world.adds_up_each = 8
    try:
        for number, (name, numbers) in enumerate(steps(luck, count), 1):
            told(f"{number:3} {name}{numbers}")
            getattr(world, name)(*numbers)
            world.inspect()
        told("    settle")
        world.settle()
    finally:
        world.process.die()
    world.counts["transitions"] = len(world.book.ledger)
    return Counter(world.counts)


def play_in_memory(seed: int, told: Told = lambda _: None) -> Counter[str]:
    """Play one schedule in a folder of its own, in memory where the system has a place for that."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
    try:
        return play(seed, folder, told)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
